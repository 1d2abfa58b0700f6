#include "cuda/backend.h"

#include <algorithm>

#include "cuda/cuda_processor.h"
#include "cuda/device.h"

namespace patternd::cuda {
namespace {

constexpr std::int64_t kFirstPauseNs = 1'000'000'000;
constexpr std::int64_t kLongestPauseNs = 60'000'000'000;

// The GPU's processor, after everything that could speak against it.
Result<std::unique_ptr<FrameProcessor>> open_gpu(const ComputeOptions& options,
                                                 const ProcessorConfig& config) {
  auto driver = Driver::open(options.driver);
  if (!driver) return tl::make_unexpected(driver.error());
  auto device = Device::open(*driver, options.device, options.image);
  if (!device) return tl::make_unexpected(device.error());
  if (auto ok = self_test(*device, options.memory); !ok) return tl::make_unexpected(ok.error());
  return make_cuda_processor(*device, options.memory, config);
}

// The GPU with the CPU behind it.
class SupervisedProcessor final : public FrameProcessor {
 public:
  SupervisedProcessor(std::unique_ptr<FrameProcessor> gpu, std::unique_ptr<FrameProcessor> cpu,
                      const ComputeOptions& options, const ProcessorConfig& config)
      : gpu_(std::move(gpu)), cpu_(std::move(cpu)), options_(options), config_(config) {}

  [[nodiscard]] Result<void> process(const RawImageView& frame, FrameResult& result) override {
    if (!gpu_ && monotonic_ns() >= next_try_ns_) reopen();
    if (gpu_) {
      auto done = gpu_->process(frame, result);
      if (done || done.error().code == ErrorCode::kInvalidArgument) return done;
      note_failure(done.error());
    }
    ++frames_on_cpu_;
    return cpu_->process(frame, result);
  }
  [[nodiscard]] const char* backend() const override { return gpu_ ? "cuda" : "cpu"; }
  [[nodiscard]] std::string description() const override {
    std::string text = gpu_ ? gpu_->description() : cpu_->description();
    if (frames_on_cpu_ > 0) {
      text += "; " + std::to_string(frames_on_cpu_) +
              " frames done by the CPU, the GPU's last error: " + last_error_;
    }
    return text;
  }

 private:
  // Too many candidates is the frame's fault; anything else means that the GPU is of no more use.
  void note_failure(const Error& error) {
    last_error_ = error.message;
    if (error.code == ErrorCode::kExhausted) return;
    gpu_.reset();
    next_try_ns_ = monotonic_ns() + pause_ns_;
  }
  void reopen() {
    auto opened = open_gpu(options_, config_);
    if (opened) {
      gpu_ = std::move(*opened);
      pause_ns_ = kFirstPauseNs;
      return;
    }
    last_error_ = opened.error().message;
    pause_ns_ = std::min(2 * pause_ns_, kLongestPauseNs);
    next_try_ns_ = monotonic_ns() + pause_ns_;
  }

  std::unique_ptr<FrameProcessor> gpu_;  // null while it is lost
  std::unique_ptr<FrameProcessor> cpu_;
  ComputeOptions options_;
  ProcessorConfig config_;
  std::int64_t next_try_ns_ = 0;
  std::int64_t pause_ns_ = kFirstPauseNs;
  std::uint64_t frames_on_cpu_ = 0;
  std::string last_error_;
};

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

}  // namespace patternd::cuda
