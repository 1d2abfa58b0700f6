// The service: capture, compute and publish, each on its own thread, and what happens to them over
// the service's life.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/capture.h"
#include "daemon/compute.h"
#include "daemon/configuration.h"
#include "daemon/file_descriptor.h"
#include "daemon/frame_sender.h"
#include "daemon/generation.h"
#include "daemon/publisher.h"

namespace patternd {

using SourceFactory = std::function<Result<std::unique_ptr<Source>>(const CameraConfig&)>;

// Memory for frames that suits what computes them.
using FrameMemoryFactory = std::function<std::unique_ptr<FrameAllocator>(const ComputeConfig&)>;

// Where sources, processors and frames' memory come from; tests put their own here.
struct ServiceParts {
  SourceFactory make_source;
  ProcessorFactory make_processor;
  FrameMemoryFactory make_frame_memory = nullptr;  // plain memory
};

struct ServiceOptions {
  std::string config_path;
  ConfigurationOverrides overrides;
};

// Used by one thread (the program's main one) unless said otherwise. The order: create, open,
// start, then tick() whenever the bell rings and at least each 250 ms, then stop.
class Service {
 public:
  // Binds every address, with the socket of `inherited` where that has it. Clients that connect now
  // wait until open() has found out what they are greeted with.
  [[nodiscard]] static Result<std::unique_ptr<Service>> create(
      ServiceOptions options, Configuration configuration, ServiceParts parts,
      std::vector<Listener> inherited = {});
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Opens the camera and makes the processor. A live camera that is not there is no error (it is
  // waited for); one that can never work is.
  [[nodiscard]] Result<void> open();
  void start();
  void tick();
  // Captures no more, computes and publishes what has been captured, and lets clients read it for
  // at most `patience_ms`; computing takes at most `compute_ms` (negative: as long as it takes).
  // False where the camera is just being opened, or a frame just being searched, and does not let
  // go of its thread yet: all else is done, and the destructor would wait for it.
  bool stop(int patience_ms, int compute_ms = -1);

  // Reads the configuration again; whole or not at all. The outcome is logged, and told to `client`
  // where one asked. A reload that waits for its first frame is answered by tick().
  void reload(std::optional<std::uint64_t> client);
  // A reload has been asked for by a client since the last call.
  [[nodiscard]] std::vector<std::uint64_t> take_reload_requests();

  // Readable when tick() has something to do.
  [[nodiscard]] const Bell& bell() const { return bell_; }
  // No frame will come any more: the recording ended, or end_error() says why.
  [[nodiscard]] bool ended() const { return ended_.load(); }
  [[nodiscard]] std::optional<Error> end_error() const;

  // Any thread.
  [[nodiscard]] Json status() const;
  [[nodiscard]] Json latency() const;
  // One line: what the service is doing.
  [[nodiscard]] std::string status_text() const;
  // Every thread made a round within `limit_ns`. A lost camera is a state, not a hang.
  [[nodiscard]] bool makes_progress(std::int64_t limit_ns) const;
  [[nodiscard]] std::uint64_t client_count() const { return publisher_->counters().clients; }
  [[nodiscard]] std::uint64_t result_count() const { return publisher_->counters().results; }
  [[nodiscard]] std::vector<Address> bound_addresses() const {
    return publisher_->bound_addresses();
  }

 private:
  Service(ServiceOptions options, Configuration configuration, ServiceParts parts);

  // A reload whose first frame has not come yet.
  struct Pending {
    std::shared_ptr<Generation> generation;
    std::optional<std::uint64_t> client;
    std::int64_t deadline_ns = 0;
  };
  // What a reload has made ready beside the running service.
  struct Prepared {
    std::shared_ptr<const Configuration> configuration;
    std::vector<Listener> new_listeners;
    std::vector<Address> kept_addresses;
    std::shared_ptr<LatencyLog> latency_log;
    std::shared_ptr<Generation> generation;     // null until the camera's format is known
    std::optional<BackendNote> unseen_backend;  // what would compute then
  };

  [[nodiscard]] std::shared_ptr<const Configuration> configuration() const;
  [[nodiscard]] std::shared_ptr<Capture> capture() const;
  [[nodiscard]] Result<std::shared_ptr<Capture>> make_capture(const Configuration& configuration);
  [[nodiscard]] Result<void> open_camera();
  [[nodiscard]] Result<void> camera_opened(const SourceFormat& format);
  void camera_changed(bool lost, const std::string& reason);
  void camera_ended(const std::optional<Error>& error);
  void use(const std::shared_ptr<Generation>& generation);
  // Logs it where it is not what was told last.
  void tell_backend(const BackendNote& note);

  [[nodiscard]] Result<Prepared> prepare_reload() const;
  [[nodiscard]] Result<void> prepare_outputs(Prepared& prepared) const;
  [[nodiscard]] Result<void> keep_socket(const Address& address, const Configuration& running,
                                         const Configuration& next) const;
  [[nodiscard]] Result<void> prepare_generation(Prepared& prepared,
                                                const SourceFormat& format) const;
  [[nodiscard]] Result<void> keep_camera(Prepared& prepared) const;
  [[nodiscard]] Result<void> change_camera(Prepared& prepared);
  [[nodiscard]] Result<void> try_camera(Prepared& prepared, Capture& camera) const;
  [[nodiscard]] Result<void> swap_device(Prepared& prepared, Capture& wanted);
  void restart_camera(const std::shared_ptr<Capture>& camera);
  void commit(Prepared prepared, std::optional<std::uint64_t> client);
  void refuse_reload(const Error& error, std::optional<std::uint64_t> client);
  void answer_pending();

  const ServiceOptions options_;
  const ServiceParts parts_;
  Bell bell_;
  LatencyStatistics statistics_;
  const std::int64_t started_ns_;

  mutable std::mutex state_mutex_;  // guards these, each only for a moment
  std::shared_ptr<const Configuration> configuration_;
  std::shared_ptr<Capture> capture_;
  std::optional<SourceFormat> format_;
  std::shared_ptr<Generation> generation_;  // the newest made
  std::shared_ptr<LatencyLog> latency_log_;
  std::uint32_t configuration_number_ = 1;
  std::optional<Error> end_error_;
  std::vector<std::uint64_t> reload_requests_;
  std::string last_reload_ = "none";
  BackendNote told_backend_;

  // Held while a generation is made and put in place, so that a camera that comes back during a
  // reload meets one configuration or the other.
  std::mutex change_mutex_;

  FrameQueue queue_;
  SequenceCounter sequence_;
  std::vector<Listener> listeners_;           // until open()
  std::vector<Address> inherited_addresses_;  // whose sockets systemd made
  std::unique_ptr<Publisher> publisher_;
  std::unique_ptr<Compute> compute_;
  std::unique_ptr<FrameSender> frame_sender_;
  std::vector<Pending> pending_;
  std::atomic<bool> ended_{false};
  bool started_ = false;
  bool stopped_ = false;
};

}  // namespace patternd
