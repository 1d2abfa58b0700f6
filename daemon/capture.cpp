#include "daemon/capture.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "pipeline/stage.h"

namespace patternd {
namespace {

// Beside those that are computed: one captured, one waiting, one for the driver.
constexpr int kOtherBuffers = 3;
constexpr int kWaitMs = 100;
constexpr int kShortestBackoffMs = 100;
constexpr int kLongestBackoffMs = 5000;
constexpr double kStallFrames = 10;

}  // namespace

void release_frame(CapturedFrame& frame) {
  if (frame.buffer != nullptr) frame.from->source->release(frame.buffer);
  frame = CapturedFrame();
}

std::uint64_t SequenceCounter::number(std::uint64_t source_seq) {
  if (!offset_known_) {
    offset_ = any_ && source_seq + offset_ <= last_ ? last_ + 1 - source_seq : offset_;
    offset_known_ = true;
  }
  std::uint64_t seq = source_seq + offset_;
  if (any_ && seq <= last_) seq = last_ + 1;
  any_ = true;
  last_ = seq;
  return seq;
}

Capture::Capture(std::unique_ptr<Source> source, CaptureMemory memory, FrameQueue& queue,
                 SequenceCounter& sequence, CaptureCallbacks callbacks, double max_silence_s)
    : open_source_(std::make_shared<OpenSource>()),
      queue_(queue),
      sequence_(sequence),
      callbacks_(std::move(callbacks)),
      live_(source->is_live()),
      max_silence_s_(max_silence_s) {
  open_source_->source = std::move(source);
  open_source_->memory = std::move(memory);
  last_round_ns_ = monotonic_ns();
}

Capture::~Capture() { stop(); }

Result<SourceFormat> Capture::open() {
  const CaptureMemory& memory = open_source_->memory;
  auto format = open_source_->source->start(
      *memory.frames, static_cast<int>(memory.most_in_flight) + kOtherBuffers);
  if (!format) {
    open_source_->source->stop();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (state_.frames == 0) state_.reason = format.error().message;
    return format;
  }
  is_open_ = true;
  format_ = *format;
  opened_ns_ = monotonic_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.description = open_source_->source->description();
  const CapturePath path = open_source_->source->capture_path();
  state_.path = name_of(path);
  state_.capture = std::string(sentence_of(path)) + ", " + memory.frames->kind() + " memory";
  state_.reason = "opened, no frame yet";
  return format;
}

void Capture::start() {
  last_round_ns_ = monotonic_ns();
  opened_ns_ = last_round_ns_;
  sequence_.begin_source();
  thread_ = std::thread([this] { run(); });
}

void Capture::carry_on(const CaptureState& before) {
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.frames = before.frames;
  state_.dropped = before.dropped;
  state_.copied = before.copied;
  state_.reopened = before.reopened + 1;
  state_.last_frame_ns = before.last_frame_ns;
}

void Capture::request_stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  open_source_->source->interrupt();
}

bool Capture::wait_stopped(int timeout_ms) {
  if (!thread_.joinable()) return true;
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                           [this] { return run_ended_; });
}

void Capture::stop() {
  request_stop();
  if (thread_.joinable()) thread_.join();
  if (is_open_) open_source_->source->stop();
  is_open_ = false;
}

CaptureState Capture::state() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  CaptureState state = state_;
  state.copied += open_source_->source->counters().copied;
  return state;
}

void Capture::run() {
  capture_frames();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    run_ended_ = true;
  }
  changed_.notify_all();
}

void Capture::capture_frames() {
  while (!stopping_) {
    last_round_ns_ = monotonic_ns();
    if (!is_open_ && !reopen()) continue;
    auto buffer = open_source_->source->next(kWaitMs, live_);
    if (buffer) {
      deliver(**buffer);
    } else if (buffer.error().code == ErrorCode::kTimeout) {
      if (live_ && has_stalled()) {
        std::array<char, 120> text{};
        std::snprintf(text.data(), text.size(),
                      "no frame for more than %g s; check cable, power and trigger",
                      max_silence_s_);
        lose(text.data());
      }
    } else if (!handle_failure(buffer.error())) {
      return;
    }
  }
}

// False where no frame can come any more.
bool Capture::handle_failure(const Error& error) {
  if (live_) {
    lose(error.message);
    return true;
  }
  const bool good_end = error.code == ErrorCode::kEndOfStream;
  callbacks_.ended(good_end ? std::nullopt : std::optional<Error>(error));
  return false;
}

bool Capture::has_stalled() const {
  if (max_silence_s_ <= 0) return false;
  const double frames_s = format_.fps > 0 ? kStallFrames / format_.fps : 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::int64_t silence_ns = monotonic_ns() - std::max(state_.last_frame_ns, opened_ns_);
  return static_cast<double>(silence_ns) / 1e9 > std::max(max_silence_s_, frames_s);
}

bool Capture::reopen() {
  if (backoff_ms_ > 0) wait(backoff_ms_);
  if (stopping_) return false;
  backoff_ms_ = std::clamp(backoff_ms_ * 2, kShortestBackoffMs, kLongestBackoffMs);
  const auto format = open();
  const Result<void> taken =
      format ? callbacks_.opened(*format) : Result<void>(tl::make_unexpected(format.error()));
  if (taken) {
    sequence_.begin_source();
    const std::lock_guard<std::mutex> lock(mutex_);
    ++state_.reopened;
    return true;
  }
  lose(taken.error().message);
  return false;
}

void Capture::lose(const std::string& reason) {
  if (is_open_) open_source_->source->stop();
  is_open_ = false;
  bool news = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    news = !state_.lost || state_.reason != reason;
    state_.lost = true;
    state_.reason = reason;
  }
  if (news) callbacks_.camera(true, reason);
}

void Capture::wait(int ms) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return stopping_.load(); });
}

void Capture::deliver(FrameBuffer& buffer) {
  const std::int64_t now = monotonic_ns();
  CapturedFrame frame;
  frame.from = open_source_;
  frame.buffer = &buffer;
  frame.image = buffer.image;
  frame.info = buffer.info;
  frame.info.seq = sequence_.number(buffer.info.seq);
  frame.started_ns = live_ ? buffer.info.captured_mono_ns : now;
  bool back = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    back = state_.lost;
    state_.lost = false;
    state_.last_frame_ns = now;
    ++state_.frames;
    state_.dropped += frame.info.dropped;
  }
  if (back) {
    backoff_ms_ = 0;
    callbacks_.camera(false, open_source_->source->description());
  }
  if (callbacks_.frame) callbacks_.frame(frame.image, frame.info);
  live_ ? deliver_newest(std::move(frame)) : deliver_in_turn(std::move(frame));
}

// The frame that still waits has been overtaken: it is dropped, and counted on the newer one.
void Capture::deliver_newest(CapturedFrame frame) {
  if (auto overtaken = queue_.try_pop()) {
    frame.info.dropped += overtaken->info.dropped + 1;
    release_frame(*overtaken);
    const std::lock_guard<std::mutex> lock(mutex_);
    ++state_.dropped;
  }
  if (!queue_.try_push(frame)) release_frame(frame);  // the service is ending
}

void Capture::deliver_in_turn(CapturedFrame frame) {
  while (!queue_.push(frame, std::chrono::milliseconds(kWaitMs))) {
    last_round_ns_ = monotonic_ns();
    if (stopping_ || queue_.closed()) return release_frame(frame);
  }
}

}  // namespace patternd
