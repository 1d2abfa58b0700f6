#include "cuda/backend.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/cuda_processor.h"
#include "cuda/device.h"
#include "cuda/frame_memory.h"

namespace patternd::cuda {
namespace {

constexpr std::int64_t kFirstPauseNs = 1'000'000'000;
constexpr std::int64_t kLongestPauseNs = 60'000'000'000;

// The GPU, opened once for all that use it at the same time, so that processors read the frames'
// memory in place; one that has failed is opened anew.
Result<std::shared_ptr<const Device>> open_device(const ComputeOptions& options) {
  static std::mutex mutex;
  static std::string last_key;
  static std::weak_ptr<const Device> last;
  const std::string key =
      options.driver + '\n' + std::to_string(options.device) + '\n' + options.image;
  const std::lock_guard<std::mutex> lock(mutex);
  auto in_use = key == last_key ? last.lock() : nullptr;
  if (in_use != nullptr && !in_use->is_given_up()) return in_use;
  auto driver = Driver::open(options.driver);
  if (!driver) return tl::make_unexpected(driver.error());
  auto device = Device::open(*driver, options.device, options.image);
  if (!device) return device;
  last_key = key;
  last = *device;
  return device;
}

// The GPU's processor, after everything that could speak against it.
Result<std::unique_ptr<FrameProcessor>> open_gpu(const ComputeOptions& options,
                                                 const ProcessorConfig& config) {
  const auto device = open_device(options);
  if (!device) return tl::make_unexpected(device.error());
  if (auto ok = self_test(*device, options.memory); !ok) return tl::make_unexpected(ok.error());
  return make_cuda_processor(*device, options.memory, config, options.streams);
}

// The GPU with the CPU behind it.
class SupervisedProcessor final : public FrameProcessor {
 public:
  SupervisedProcessor(std::unique_ptr<FrameProcessor> gpu, std::unique_ptr<FrameProcessor> cpu,
                      const ComputeOptions& options, const ProcessorConfig& config)
      : gpu_(std::move(gpu)),
        cpu_(std::move(cpu)),
        options_(options),
        config_(config),
        frames_(gpu_->depth()) {}

  [[nodiscard]] std::size_t depth() const override { return frames_.size(); }
  [[nodiscard]] Result<void> submit(const RawImageView& frame) override;
  [[nodiscard]] bool ready() const override { return !frames_[first_].on_gpu || gpu_->ready(); }
  [[nodiscard]] Result<void> collect(FrameResult& result) override;
  [[nodiscard]] const char* backend() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return gpu_ ? "cuda" : "cpu";
  }
  [[nodiscard]] std::string description() const override;

 private:
  // A frame in flight; what the GPU does not compute the CPU does when it is collected.
  struct Frame {
    RawImageView image;
    bool on_gpu = false;
  };
  void note_failure(const Error& error);
  void reopen();

  // Written by the frames' thread alone, under the lock that other threads read under.
  mutable std::mutex mutex_;
  std::unique_ptr<FrameProcessor> gpu_;  // null while it is lost
  std::uint64_t frames_by_cpu_ = 0;
  std::string last_error_;

  std::unique_ptr<FrameProcessor> cpu_;
  const ComputeOptions options_;
  const ProcessorConfig config_;
  std::vector<Frame> frames_;  // a ring; the oldest in flight is at first_
  std::size_t first_ = 0;
  std::size_t in_flight_ = 0;
  std::int64_t next_try_ns_ = 0;
  std::int64_t pause_ns_ = kFirstPauseNs;
  bool cpu_had_last_ = false;  // the frame collected last
};

Result<void> SupervisedProcessor::submit(const RawImageView& frame) {
  if (in_flight_ == frames_.size())
    return fail(ErrorCode::kInternal, "more frames submitted than may be in flight");
  if (!gpu_ && monotonic_ns() >= next_try_ns_) reopen();
  Frame& next = frames_[(first_ + in_flight_) % frames_.size()];
  next = {frame, gpu_ != nullptr};
  if (gpu_) {
    Result<void> begun = gpu_->submit(frame);
    if (!begun && begun.error().code == ErrorCode::kInvalidArgument) return begun;
    next.on_gpu = begun.has_value();
    if (!begun) note_failure(begun.error());
  }
  ++in_flight_;
  return {};
}

Result<void> SupervisedProcessor::collect(FrameResult& result) {
  if (in_flight_ == 0) return fail(ErrorCode::kInternal, "no frame is in flight");
  const Frame frame = frames_[first_];
  first_ = (first_ + 1) % frames_.size();
  --in_flight_;
  if (frame.on_gpu) {
    Result<void> done = gpu_->collect(result);
    if (done) {
      cpu_had_last_ = false;
      return done;
    }
    note_failure(done.error());
  }
  if (!std::exchange(cpu_had_last_, true)) cpu_->restart();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++frames_by_cpu_;
  }
  return cpu_->process(frame.image, result);
}

// Too many candidates is the frame's fault; anything else means that the GPU is of no more use, and
// that what else is in flight on it is the CPU's.
void SupervisedProcessor::note_failure(const Error& error) {
  std::unique_ptr<FrameProcessor> lost;  // ended without the lock: that may take a while
  const std::lock_guard<std::mutex> lock(mutex_);
  last_error_ = error.message;
  if (error.code == ErrorCode::kExhausted) return;
  lost.swap(gpu_);
  for (Frame& frame : frames_) frame.on_gpu = false;
  next_try_ns_ = monotonic_ns() + pause_ns_;
}

void SupervisedProcessor::reopen() {
  auto opened = open_gpu(options_, config_);
  const std::lock_guard<std::mutex> lock(mutex_);
  if (opened) {
    gpu_ = std::move(*opened);
    pause_ns_ = kFirstPauseNs;
    return;
  }
  last_error_ = opened.error().message;
  pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
  next_try_ns_ = monotonic_ns() + pause_ns_;
}

std::string SupervisedProcessor::description() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string text = gpu_ ? gpu_->description() : cpu_->description();
  if (frames_by_cpu_ > 0) {
    text += "; " + std::to_string(frames_by_cpu_) +
            " frames done by the CPU, the GPU's last error: " + last_error_;
  }
  return text;
}

}  // namespace

Result<ChosenProcessor> make_processor(const ComputeOptions& options,
                                       const ProcessorConfig& config) {
  using Backend = ComputeOptions::Backend;
  if (options.backend == Backend::kCuda) {
    auto gpu = open_gpu(options, config);
    if (!gpu) {
      return fail(gpu.error().code, "compute.backend: cuda is not available (" +
                                        gpu.error().message + "); set auto or cpu");
    }
    return ChosenProcessor{std::move(*gpu), "as configured"};
  }
  // First, because it refuses what could never work on either.
  auto cpu = make_cpu_processor(config);
  if (!cpu) return tl::make_unexpected(cpu.error());
  if (options.backend == Backend::kCpu) return ChosenProcessor{std::move(*cpu), "as configured"};
  auto gpu = open_gpu(options, config);
  if (!gpu) return ChosenProcessor{std::move(*cpu), gpu.error().message};
  return ChosenProcessor{
      std::make_unique<SupervisedProcessor>(std::move(*gpu), std::move(*cpu), options, config),
      "the GPU passed its self-test"};
}

std::unique_ptr<FrameAllocator> make_frame_memory(const ComputeOptions& options,
                                                  std::unique_ptr<FrameAllocator> plain) {
  if (options.backend == ComputeOptions::Backend::kCpu) return plain;
  const auto device = open_device(options);
  if (!device) return plain;
  const auto mode = memory_mode_for((*device)->properties(), options.memory);
  if (!mode) return plain;
  return std::make_unique<FrameMemory>(*device, *mode, std::move(plain));
}

}  // namespace patternd::cuda
