// Gives results out: one thread, epoll, TCP and Unix sockets, any number of clients that never wait
// for each other and never delay a frame. PROTOCOL.md says what goes over the wire.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "daemon/access.h"
#include "daemon/attempt_limit.h"
#include "daemon/bounded_queue.h"
#include "daemon/client.h"
#include "daemon/listener.h"
#include "daemon/messages.h"
#include "daemon/rate_limit.h"
#include "daemon/result_line.h"
#include "daemon/result_ring.h"
#include "pipeline/latency_histogram.h"
#include "pipeline/latency_log.h"

namespace patternd {

// A frame's result on its way from computing to publishing. There are few, all made at start.
struct ResultSlot {
  FrameInfo info;
  FrameResult result;
  // CLOCK_MONOTONIC from which `total` counts: the driver's stamp, or in a replay the moment at
  // which the frame was handed out.
  std::int64_t started_ns = 0;
  std::int64_t processed_ns = 0;
  std::shared_ptr<const ResultFormat> format;
};

// What clients ask the service for. `status` and `latency` are called on the publisher's thread and
// return soon; `reload` only starts one, and Publisher::reply() answers later.
struct PublisherCallbacks {
  std::function<Json()> status;
  std::function<Json()> latency;
  std::function<void(std::uint64_t client)> reload;
  // `record` and `snapshot`: frames and the reply come by send_bulk().
  std::function<Result<void>(std::uint64_t client, const ClientCommand& command)> frames;
  // A client has gone.
  std::function<void(std::uint64_t client)> gone;
};

struct PublisherCounters {
  std::uint64_t clients = 0;   // connected now
  std::uint64_t accepted = 0;  // ever
  std::uint64_t refused = 0;   // too many clients or no file descriptor left
  std::uint64_t denied = 0;    // from addresses that may not connect, or not now
  std::uint64_t failed_handshakes = 0;
  std::uint64_t wrong_tokens = 0;     // or none, with commands that need one
  std::uint64_t vanished = 0;         // clients whose machine answered no more
  std::uint64_t results = 0;          // result lines written
  std::uint64_t dropped_results = 0;  // lines that slow clients lost, over all clients
};

class Publisher {
 public:
  // Bounds that all clients share.
  static constexpr std::size_t kRingBytes = std::size_t{8} << 20;
  static constexpr std::size_t kRingLines = 4096;
  static constexpr std::size_t kMaxClients = 512;
  // File descriptors that clients leave for everything else (cameras and recordings open files).
  static constexpr std::size_t kReservedFiles = 40;
  // TLS handshakes under way, and the time that each may take.
  static constexpr std::size_t kMaxHandshakes = 64;
  static constexpr std::int64_t kHandshakeNs = 5'000'000'000;

  // `slots` results may be under way at once. `statistics` and `callbacks` outlive the publisher.
  // `peer_patience`: how long a client's machine may leave what it was sent unanswered.
  Publisher(std::vector<Listener> listeners, PublisherCallbacks callbacks,
            LatencyStatistics& statistics, std::size_t slots,
            std::chrono::milliseconds peer_patience = kPeerPatience);
  // finish(0), unless it has been called.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // A free slot, or null after `timeout`. Slots come back by submit() or abandon().
  [[nodiscard]] ResultSlot* acquire(std::chrono::milliseconds timeout);
  void submit(ResultSlot* slot);
  void abandon(ResultSlot* slot);

  // From any thread; done by the publisher's thread soon after. reply(): to a `reload`.
  void reply(std::uint64_t client, std::string line);
  // As Client::send_bulk(); nothing where the client has gone. Without `busy` it is the reply to
  // `record` or `snapshot`.
  void send_bulk(std::uint64_t client, std::string text, std::shared_ptr<std::atomic<bool>> busy);
  void tell_camera(bool lost, const std::string& reason,
                   const std::optional<FrameSize>& frame = std::nullopt);
  void tell_drift(const Drift& drift);
  // What was told of a drift counts no more: what comes is compared anew.
  void forget_drift();
  // What clients that connect from now on are greeted with.
  void greet_with(const Greeting& greeting);
  // Takes over the listeners; those with the address of a present one are not among them. `keep`:
  // addresses of present ones that stay. Clients stay connected.
  void change_listeners(std::vector<Listener> added, std::vector<Address> keep);
  // Who may connect over TCP and who may change something, from now on; never null. Until it is
  // called everybody may. Clients that it does not admit are told and closed.
  void set_access(std::shared_ptr<const Access> access);
  void set_latency_log(std::shared_ptr<LatencyLog> log);
  // Waits until everything asked before has been done.
  void settle();

  // Publishes what was submitted, lets clients read it for at most `patience_ms`, closes everything
  // and ends the thread. Nothing may be submitted after.
  void finish(int patience_ms);

  [[nodiscard]] PublisherCounters counters() const;
  // Addresses as bound, for logs and tests.
  [[nodiscard]] std::vector<Address> bound_addresses() const;
  // CLOCK_MONOTONIC of the thread's last round; it makes one at least each second.
  [[nodiscard]] std::int64_t last_round_ns() const { return last_round_ns_.load(); }

 private:
  using Task = std::function<void()>;
  // Somebody who connected but is no client yet.
  struct Handshake {
    Connection connection;
    IpAddress peer;
    std::int64_t deadline_ns = 0;
    std::uint32_t watched_events = 0;
    bool failed = false;  // and told so; what it still sends is thrown away
  };
  static constexpr std::uint64_t kFirstListenerTag = 1;
  // How long a client that is being turned away may take to read why.
  static constexpr std::int64_t kCloseNs = 2'000'000'000;

  void post(Task task);
  void run();
  void round(int timeout_ms);
  void run_tasks();
  // Tasks and results in the order in which they came about: what was posted before a result was
  // ready (a camera that is back) is told before it.
  void take_turn();
  // Results up to the `last`-th since the start, or all that are ready.
  void publish_ready(std::uint64_t last = std::numeric_limits<std::uint64_t>::max());
  void publish(ResultSlot& slot);
  void write_line(ResultSlot& slot);
  void flush_clients();
  [[nodiscard]] bool everything_sent() const;

  void accept_clients(const Listener& listener);
  void meet(FileDescriptor socket, const IpAddress& peer);
  void add_client(Connection connection, const std::optional<IpAddress>& peer);
  void begin_handshake(Connection plain, const IpAddress& peer);
  void continue_handshake(std::uint64_t id);
  void note_failure(const Handshake& handshake, const std::string& why);
  void end_overdue_handshakes();
  void deny(const IpAddress& peer, const std::string& why);
  void warn_denied(const IpAddress& peer, const std::string& why);
  [[nodiscard]] bool may_change(Client& client, const ClientCommand& command);
  void take_spare();
  void refuse_one(const Listener& listener);
  [[nodiscard]] bool make_room_for_client();
  void serve(Client& client, std::uint32_t events);
  void read_commands(Client& client);
  void read_on();
  void answer(Client& client, std::string_view line);
  void execute(Client& client, const ClientCommand& command);
  void execute_frames(Client& client, const ClientCommand& command);
  // Sends what can be sent and watches for what is missing; false when the client has gone, or has
  // closed its side and nothing more is to come to it.
  bool advance(Client& client);
  void watch(Client& client, bool blocked);
  void watch_listeners();
  void remove_client(std::uint64_t id);
  // Closes those whose time to read why is over, and hears those again who were held back.
  void look_after_clients();
  // Gives up those whose machine has vanished, a few times within the patience for them.
  void look_for_vanished();
  void note_vanished(const Client& client);
  void warn_refused(const char* why);

  PublisherCallbacks callbacks_;
  LatencyStatistics& statistics_;
  std::vector<std::unique_ptr<ResultSlot>> slots_;
  BoundedQueue<ResultSlot*> free_;
  BoundedQueue<ResultSlot*> ready_;
  Bell bell_;

  mutable std::mutex tasks_mutex_;
  std::vector<Task> tasks_;
  std::vector<Address> bound_;

  // The publisher's thread alone.
  FileDescriptor epoll_;
  FileDescriptor spare_;  // given up for a moment to turn a client away when none is left
  std::vector<Listener> listeners_;
  bool listening_ = false;
  std::shared_ptr<const Access> access_ = std::make_shared<const Access>();
  std::map<std::uint64_t, Handshake> handshakes_;  // the oldest first
  AttemptLimit attempts_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Client>> clients_;
  std::uint64_t next_client_;
  const std::size_t most_clients_;
  ResultRing ring_;
  std::vector<MatchSpan> spans_;
  std::string greeting_;
  std::string camera_lost_;   // the line that said so, while it is
  std::string camera_moved_;  // likewise
  std::vector<std::string> pattern_names_;
  std::shared_ptr<LatencyLog> latency_log_;
  RateLimit refused_limit_;
  RateLimit denied_limit_;
  RateLimit vanished_limit_;
  const std::chrono::milliseconds peer_patience_;
  std::int64_t next_look_ns_ = 0;  // for vanished clients
  std::vector<std::uint64_t> gone_;
  std::vector<std::uint64_t> asking_;  // clients whose lines have not all been answered
  std::vector<std::uint64_t> heard_;   // those of the round before

  std::atomic<std::uint64_t> client_count_{0};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> denied_{0};
  std::atomic<std::uint64_t> failed_handshakes_{0};
  std::atomic<std::uint64_t> wrong_tokens_{0};
  std::atomic<std::uint64_t> vanished_{0};
  std::atomic<std::uint64_t> results_{0};
  std::atomic<std::uint64_t> dropped_results_{0};
  std::atomic<std::uint64_t> submitted_{0};
  std::uint64_t published_ = 0;  // results taken from ready_; the publishing thread's
  std::atomic<std::int64_t> last_round_ns_{0};
  std::atomic<bool> finishing_{false};
  std::atomic<std::int64_t> finish_deadline_ns_{0};
  std::thread thread_;
};

}  // namespace patternd
