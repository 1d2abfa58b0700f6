// The compute thread: frames from the queue through the processor to the publisher, in order, as
// many in flight as the processor takes. A result that is there is published before anything else
// is done, so that no frame waits for the next one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "daemon/capture.h"
#include "daemon/generation.h"
#include "daemon/publisher.h"
#include "daemon/rate_limit.h"

namespace patternd {

class Compute {
 public:
  // More are not kept in flight, whatever a processor takes.
  static constexpr std::size_t kMostInFlight = 8;

  // `generation_started`: called on the compute thread when a generation meets its first frame.
  Compute(FrameQueue& queue, Publisher& publisher, std::function<void()> generation_started);
  // finish(), unless it has been called.
  ~Compute();
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  // Takes over between two frames, at the first that it can take, once those before it have been
  // published. The old one is destroyed on a thread that asks for it by take_retired(), not in a
  // frame's way.
  void set_next(std::shared_ptr<Generation> generation);
  // Generations that are no longer used.
  [[nodiscard]] std::shared_ptr<Generation> take_retired();

  // Computes what is in the queue, which must be closed, and ends the thread, within `patience_ms`
  // (negative: however long it takes). False: it still works on frames; finish() may be called
  // again, and the destructor waits.
  bool finish(int patience_ms = -1);

  // Frames that no result came from: the device failed, or no processor fitted.
  [[nodiscard]] std::uint64_t failed() const { return failed_.load(); }
  [[nodiscard]] std::uint64_t computed() const { return computed_.load(); }
  // CLOCK_MONOTONIC of the last round; a thread that waits for frames makes some each second.
  [[nodiscard]] std::int64_t last_round_ns() const { return last_round_ns_.load(); }

 private:
  void run();
  [[nodiscard]] bool has_room() const;
  [[nodiscard]] std::optional<CapturedFrame> next_frame();
  void begin(CapturedFrame frame);
  [[nodiscard]] Result<void> submit(const CapturedFrame& frame);
  [[nodiscard]] Result<void> adopt(const RawImageView& image, std::uint64_t seq);
  void collect_oldest();
  void collect_all();
  [[nodiscard]] Result<void> collect(const CapturedFrame& frame, ResultSlot& slot);
  void watch_drift(const std::vector<Match>& matches);
  void tell_drift();
  void count_failure(const CapturedFrame& frame, const std::string& reason);

  FrameQueue& queue_;
  Publisher& publisher_;
  const std::function<void()> generation_started_;
  std::shared_ptr<Generation> current_;   // the compute thread's
  std::uint64_t lost_before_ = 0;         // frames without a result since the last one
  bool drift_changed_ = false;            // not yet told
  std::vector<CapturedFrame> in_flight_;  // in the processor of current_, the oldest first
  std::int64_t last_step_ns_ = 0;         // of the last frame begun or collected
  RateLimit failure_limit_;

  std::mutex mutex_;  // guards next_, retired_ and done_
  std::condition_variable done_changed_;
  bool done_ = false;  // the thread has nothing left to do
  std::shared_ptr<Generation> next_;
  std::shared_ptr<Generation> retired_;
  std::atomic<bool> has_next_{false};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::uint64_t> computed_{0};
  std::atomic<std::int64_t> last_round_ns_{0};
  std::thread thread_;
};

}  // namespace patternd
