#include "daemon/compute.h"

#include <algorithm>
#include <spdlog/spdlog.h>
#include <utility>

#include "daemon/log_value.h"

namespace patternd {
namespace {

constexpr std::chrono::milliseconds kWait{200};
constexpr std::int64_t kFailureLogNs = 10'000'000'000;
// While a frame is in flight and another may come, the device and the queue are watched by turns:
// without a pause at first, because most frames are done by then and would otherwise be published
// late; then with pauses of this share of the time waited, so that a slow one does not cost a core.
// Nobody could wait for both at once, short of a thread of its own for the device, whose waking
// would cost as much again. Where no further frame has room, collect() waits, and sleeps for a slow
// device.
constexpr std::int64_t kNoPauseNs = 1'000'000;
constexpr std::int64_t kPauseShare = 16;

}  // namespace

Compute::Compute(FrameQueue& queue, Publisher& publisher, std::function<void()> generation_started)
    : queue_(queue),
      publisher_(publisher),
      generation_started_(std::move(generation_started)),
      failure_limit_(kFailureLogNs) {
  last_round_ns_ = monotonic_ns();
  in_flight_.reserve(kMostInFlight);
  thread_ = std::thread([this] { run(); });
}

Compute::~Compute() {
  queue_.close();
  finish();
}

void Compute::set_next(std::shared_ptr<Generation> generation) {
  std::shared_ptr<Generation> unused;
  const std::lock_guard<std::mutex> lock(mutex_);
  unused.swap(next_);  // one that never met a frame
  next_ = std::move(generation);
  has_next_ = true;
}

std::shared_ptr<Generation> Compute::take_retired() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(retired_, nullptr);
}

bool Compute::finish(int patience_ms) {
  if (patience_ms >= 0) {
    std::unique_lock<std::mutex> lock(mutex_);
    const std::chrono::milliseconds patience(patience_ms);
    if (!done_changed_.wait_for(lock, patience, [this] { return done_; })) return false;
  }
  if (thread_.joinable()) thread_.join();
  return true;
}

void Compute::run() {
  for (;;) {
    last_round_ns_ = monotonic_ns();
    if (!in_flight_.empty() && (!has_room() || current_->processor->ready())) {
      collect_oldest();
    } else if (auto frame = next_frame()) {
      begin(std::move(*frame));
    } else if (queue_.closed() && queue_.size() == 0) {
      collect_all();
      break;
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  done_ = true;
  done_changed_.notify_all();
}

// With frames in flight: for a further one.
bool Compute::has_room() const {
  const std::size_t most = std::min(current_->processor->depth(), kMostInFlight);
  // A source that lends fewer buffers, because it was opened for fewer in flight, must not run out.
  return in_flight_.size() < std::min(most, in_flight_.front().from->memory.most_in_flight);
}

// Nothing where none has come; with frames in flight that is known soon.
std::optional<CapturedFrame> Compute::next_frame() {
  if (in_flight_.empty()) return queue_.pop(kWait);
  const std::int64_t waited_ns = monotonic_ns() - last_step_ns_;
  if (waited_ns >= kNoPauseNs) return queue_.pop(std::chrono::nanoseconds(waited_ns / kPauseShare));
  auto frame = queue_.try_pop();
  if (!frame) std::this_thread::yield();
  return frame;
}

void Compute::begin(CapturedFrame frame) {
  const auto begun = submit(frame);
  last_step_ns_ = monotonic_ns();
  if (begun) {
    in_flight_.push_back(std::move(frame));
    return;
  }
  // The loss is told with the next result, which must not be one of an earlier frame.
  collect_all();
  count_failure(frame, begun.error().message);
  release_frame(frame);
}

Result<void> Compute::submit(const CapturedFrame& frame) {
  if (auto adopted = adopt(frame.image, frame.info.seq); !adopted) return adopted;
  return current_->processor->submit(frame.image);
}

Result<void> Compute::adopt(const RawImageView& image, std::uint64_t seq) {
  if (has_next_) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (next_ != nullptr && next_->takes(image)) {
      std::shared_ptr<Generation> next = std::exchange(next_, nullptr);
      has_next_ = false;
      lock.unlock();
      collect_all();  // they are in the processor that goes
      if (current_ != nullptr && current_->drift().moved) publisher_.forget_drift();
      lock.lock();
      retired_ = std::exchange(current_, std::move(next));
    }
  }
  if (current_ == nullptr || !current_->takes(image))
    return fail(ErrorCode::kInvalidArgument, "its size or format is not the configured one");
  if (!current_->started) {
    current_->first_seq = seq;
    current_->started = true;
    generation_started_();
  }
  return {};
}

void Compute::collect_all() {
  while (!in_flight_.empty()) collect_oldest();
}

void Compute::collect_oldest() {
  CapturedFrame frame = std::move(in_flight_.front());
  in_flight_.erase(in_flight_.begin());
  ResultSlot* slot = nullptr;
  while (slot == nullptr) {
    slot = publisher_.acquire(kWait);
    last_round_ns_ = monotonic_ns();
  }
  if (const auto done = collect(frame, *slot); done) {
    ++computed_;
    publisher_.submit(slot);
    tell_drift();
  } else {
    publisher_.abandon(slot);
    count_failure(frame, done.error().message);
  }
  release_frame(frame);
  last_step_ns_ = last_round_ns_ = monotonic_ns();
}

Result<void> Compute::collect(const CapturedFrame& frame, ResultSlot& slot) {
  slot.format = current_->result_format;
  // Done once for each slot: vectors keep their memory.
  if (slot.result.matches.capacity() < match_bound(*slot.format))
    slot.result.matches.reserve(match_bound(*slot.format));
  if (auto done = current_->processor->collect(slot.result); !done) return done;
  slot.processed_ns = monotonic_ns();
  watch_drift(slot.result.matches);
  slot.started_ns = frame.started_ns;
  slot.info = frame.info;
  slot.info.configuration = current_->number;
  slot.info.dropped += std::exchange(lost_before_, 0);
  slot.result.times[Stage::kCapture] =
      std::max<std::int64_t>(frame.info.received_mono_ns - frame.info.captured_mono_ns, 0);
  return {};
}

void Compute::watch_drift(const std::vector<Match>& matches) {
  if (!current_->drift_watch) return;
  DriftWatch& watch = *current_->drift_watch;
  const std::uint64_t compared = watch.drift().compared;
  drift_changed_ = watch.feed(matches);
  if (watch.drift().compared != compared) current_->set_drift(watch.drift());
}

// After the result that tells it.
void Compute::tell_drift() {
  if (!std::exchange(drift_changed_, false)) return;
  const Drift& drift = current_->drift_watch->drift();
  publisher_.tell_drift(drift);
  if (drift.moved) {
    spdlog::warn("camera=moved worst_mm={:.3f} consequence=\"places in millimetres are off\"",
                 drift.worst_mm);
  } else {
    spdlog::info("camera=in_place worst_mm={:.3f}", drift.worst_mm);
  }
}

void Compute::count_failure(const CapturedFrame& frame, const std::string& reason) {
  ++failed_;
  lost_before_ += frame.info.dropped + 1;
  if (failure_limit_.allow(monotonic_ns())) {
    spdlog::error("frame=lost seq={} reason={} failed={} consequence=\"no result for it\"",
                  frame.info.seq, log_quoted(reason), failed_.load());
  }
}

}  // namespace patternd
