#include "tests/support/fake_camera.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "pipeline/sources/frame_ring.h"
#include "pipeline/stage.h"

namespace patternd::test {

class FakeSource : public Source {
 public:
  explicit FakeSource(FakeCamera& camera) : camera_(camera) {}

  Result<SourceFormat> start(FrameAllocator& allocator, int buffer_count) override {
    std::unique_lock<std::mutex> lock(camera_.mutex_);
    ++camera_.starts_;
    camera_.changed_.wait(lock, [this] { return !camera_.starts_blocked_; });
    if (camera_.error_) return tl::make_unexpected(*camera_.error_);
    format_.width = camera_.width_;
    format_.height = camera_.height_;
    format_.stride_bytes = static_cast<std::size_t>(format_.width);
    const std::size_t bytes = format_.stride_bytes * static_cast<std::size_t>(format_.height);
    if (auto ready = ring_.prepare(allocator, bytes, static_cast<std::size_t>(buffer_count));
        !ready) {
      return tl::make_unexpected(ready.error());
    }
    return format_;
  }

  Result<FrameBuffer*> next(int timeout_ms, bool) override {
    std::unique_lock<std::mutex> lock(camera_.mutex_);
    const auto something = [this] {
      const bool frame = camera_.allowed_ > 0 && !camera_.stalled_;
      return camera_.error_ || frame || (camera_.ends_ && camera_.allowed_ == 0) || interrupted_;
    };
    camera_.changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms), something);
    interrupted_ = false;
    if (camera_.error_) return tl::make_unexpected(*camera_.error_);
    if (camera_.ends_ && camera_.allowed_ == 0)
      return fail(ErrorCode::kEndOfStream, "the fake recording has ended");
    FrameBuffer* buffer = camera_.allowed_ > 0 && !camera_.stalled_ ? ring_.take() : nullptr;
    if (buffer == nullptr) return fail(ErrorCode::kTimeout, "no frame");
    --camera_.allowed_;
    ++camera_.taken_;
    fill(*buffer);
    return buffer;
  }

  void release(FrameBuffer* buffer) override {
    const std::lock_guard<std::mutex> lock(camera_.mutex_);
    ring_.give_back(buffer);
    camera_.changed_.notify_all();
  }
  void stop() override {}
  void interrupt() override {
    const std::lock_guard<std::mutex> lock(camera_.mutex_);
    interrupted_ = true;
    camera_.changed_.notify_all();
  }
  bool is_live() const override { return camera_.live_; }
  CapturePath capture_path() const override { return CapturePath::kDecoded; }
  std::string description() const override { return "fake camera"; }

 private:
  void fill(FrameBuffer& buffer) {
    std::memset(buffer.data, 0, buffer.size_bytes);
    const auto number = static_cast<std::uint32_t>(count_);
    std::memcpy(buffer.data, &number, sizeof number);
    buffer.image = {buffer.data,          buffer.size_bytes, format_.width, format_.height,
                    format_.stride_bytes, format_.format,    format_.bayer};
    buffer.info = FrameInfo();
    buffer.info.seq = count_++;
    buffer.info.captured_mono_ns = buffer.info.received_mono_ns = monotonic_ns();
  }

  FakeCamera& camera_;
  FrameRing ring_;
  SourceFormat format_;
  std::uint64_t count_ = 0;
  bool interrupted_ = false;
};

void FakeCamera::allow(std::uint64_t frames) {
  const std::lock_guard<std::mutex> lock(mutex_);
  allowed_ += frames;
  changed_.notify_all();
}

void FakeCamera::fail_with(const Error& error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  error_ = error;
  changed_.notify_all();
}

void FakeCamera::heal() {
  const std::lock_guard<std::mutex> lock(mutex_);
  error_.reset();
  changed_.notify_all();
}

void FakeCamera::stall(bool stalled) {
  const std::lock_guard<std::mutex> lock(mutex_);
  stalled_ = stalled;
  changed_.notify_all();
}

void FakeCamera::block_starts(bool blocked) {
  const std::lock_guard<std::mutex> lock(mutex_);
  starts_blocked_ = blocked;
  changed_.notify_all();
}

void FakeCamera::end_when_empty() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ends_ = true;
  changed_.notify_all();
}

void FakeCamera::set_size(int width, int height) {
  const std::lock_guard<std::mutex> lock(mutex_);
  width_ = width;
  height_ = height;
}

std::uint64_t FakeCamera::taken() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return taken_;
}

std::uint64_t FakeCamera::starts() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return starts_;
}

std::unique_ptr<Source> FakeCamera::make_source() { return std::make_unique<FakeSource>(*this); }

void FakeDevice::hold(bool held) {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ = held;
  changed_.notify_all();
}

void FakeDevice::fail_collecting(std::uint32_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failing_collect_ = number;
}

void FakeDevice::fail_submitting(std::uint32_t number) {
  const std::lock_guard<std::mutex> lock(mutex_);
  failing_submit_ = number;
}

void FakeDevice::wait_for_in_flight(std::size_t frames) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this, frames] { return in_flight_ >= frames; });
}

std::size_t FakeDevice::most_in_flight() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return most_in_flight_;
}

class FakeProcessor : public FrameProcessor {
 public:
  FakeProcessor(std::size_t patterns, std::shared_ptr<FakeDevice> device)
      : patterns_(patterns), device_(std::move(device)) {
    frames_.reserve(device_->depth_);
  }

  std::size_t depth() const override { return device_->depth_; }
  Result<void> submit(const RawImageView& frame) override {
    const std::lock_guard<std::mutex> lock(device_->mutex_);
    if (frames_.size() == device_->depth_) return fail(ErrorCode::kInternal, "too many frames");
    if (device_->failing_submit_ == number_of(frame))
      return fail(ErrorCode::kDevice, "the frame was made to fail");
    frames_.push_back({frame, monotonic_ns() + std::int64_t{device_->delay_us_} * 1000});
    device_->most_in_flight_ = std::max(device_->most_in_flight_, ++device_->in_flight_);
    device_->changed_.notify_all();
    return {};
  }
  bool ready() const override {
    const std::lock_guard<std::mutex> lock(device_->mutex_);
    return !device_->held_ && monotonic_ns() >= frames_.front().done_ns;
  }
  Result<void> collect(FrameResult& result) override {
    std::unique_lock<std::mutex> lock(device_->mutex_);
    if (frames_.empty()) return fail(ErrorCode::kInternal, "no frame is in flight");
    device_->changed_.wait(lock, [this] { return !device_->held_; });
    const Frame frame = frames_.front();
    frames_.erase(frames_.begin());
    --device_->in_flight_;
    const std::uint32_t number = number_of(frame.image);
    const bool fails = device_->failing_collect_ == number;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::nanoseconds(frame.done_ns - monotonic_ns()));
    if (fails) return fail(ErrorCode::kDevice, "the frame was made to fail");
    result.times = StageTimes();
    result.blobs.clear();
    result.matches.assign(patterns_, Match());
    for (std::size_t i = 0; i < patterns_; ++i) {
      result.matches[i].pattern = static_cast<int>(i);
      result.matches[i].x_px = number;
    }
    return {};
  }
  const char* backend() const override { return "cpu"; }
  std::string description() const override { return "fake processor"; }

 private:
  struct Frame {
    RawImageView image;
    std::int64_t done_ns = 0;
  };
  static std::uint32_t number_of(const RawImageView& frame) {
    std::uint32_t number = 0;
    std::memcpy(&number, frame.data, sizeof number);
    return number;
  }

  const std::size_t patterns_;
  const std::shared_ptr<FakeDevice> device_;
  std::vector<Frame> frames_;  // in flight, guarded by the device's lock
};

std::unique_ptr<FrameProcessor> make_fake_processor(const ProcessorConfig& config,
                                                    std::shared_ptr<FakeDevice> device) {
  return std::make_unique<FakeProcessor>(config.patterns.size(), std::move(device));
}

}  // namespace patternd::test
