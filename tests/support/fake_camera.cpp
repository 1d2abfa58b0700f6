#include "tests/support/fake_camera.h"

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

namespace {

class FakeProcessor : public FrameProcessor {
 public:
  FakeProcessor(std::size_t patterns, int delay_us) : patterns_(patterns), delay_us_(delay_us) {}

  Result<void> submit(const RawImageView& frame) override {
    frame_ = frame;
    return {};
  }
  bool ready() const override { return true; }
  Result<void> collect(FrameResult& result) override {
    if (delay_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    std::uint32_t number = 0;
    std::memcpy(&number, frame_.data, sizeof number);
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
  std::size_t patterns_;
  int delay_us_;
  RawImageView frame_;
};

}  // namespace

std::unique_ptr<FrameProcessor> make_fake_processor(const ProcessorConfig& config, int delay_us) {
  return std::make_unique<FakeProcessor>(config.patterns.size(), delay_us);
}

}  // namespace patternd::test
