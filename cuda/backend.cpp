#include "cuda/backend.h"

#include <mutex>
#include <utility>

#include "cuda/cuda_processor.h"
#include "cuda/device.h"
#include "cuda/frame_memory.h"
#include "cuda/supervised_processor.h"

namespace patternd::cuda {
namespace {

// What keeps the GPU from being used.
enum class GpuFault {
  kAbsent,   // there is none, as far as its driver tells
  kSetting,  // there is one, but not as the settings want it: the message names the one at fault
  kUnfit,    // it does not work
  kFrames,   // it does not take these frames or patterns
};

struct GpuRefusal {
  Error error;
  GpuFault fault;
};

// Of what opens or sets up a device, only wrong settings are kInvalidArgument.
GpuRefusal of_setting(const Error& error) {
  const bool wrong = error.code == ErrorCode::kInvalidArgument;
  return {error, wrong ? GpuFault::kSetting : GpuFault::kUnfit};
}

// The GPU, opened once for all that use it at the same time, so that processors read the frames'
// memory in place; one that has failed is opened anew.
tl::expected<std::shared_ptr<const Device>, GpuRefusal> open_device(const ComputeOptions& options) {
  static std::mutex mutex;
  static std::string last_key;
  static std::weak_ptr<const Device> last;
  const std::string key =
      options.driver + '\n' + std::to_string(options.device) + '\n' + options.image;
  const std::lock_guard<std::mutex> lock(mutex);
  auto in_use = key == last_key ? last.lock() : nullptr;
  if (in_use != nullptr && !in_use->is_given_up()) return in_use;
  auto driver = Driver::open(options.driver);
  if (!driver) return tl::make_unexpected(GpuRefusal{driver.error(), GpuFault::kAbsent});
  auto device = Device::open(*driver, options.device, options.image, options.names);
  if (!device) return tl::make_unexpected(of_setting(device.error()));
  last_key = key;
  last = *device;
  return *device;
}

// The GPU's processor, after everything that could speak against it.
tl::expected<std::unique_ptr<FrameProcessor>, GpuRefusal> open_gpu(const ComputeOptions& options,
                                                                   const ProcessorConfig& config) {
  const auto refuse = [](const Error& error, GpuFault fault) {
    return tl::make_unexpected(GpuRefusal{error, fault});
  };
  const auto device = open_device(options);
  if (!device) return tl::make_unexpected(device.error());
  const DeviceProperties& gpu = (*device)->properties();
  if (auto mode = memory_mode_for(gpu, options.memory, options.names.memory); !mode)
    return tl::make_unexpected(of_setting(mode.error()));
  if (auto ok = self_test(*device, options.memory); !ok)
    return refuse(ok.error(), GpuFault::kUnfit);
  auto made = make_cuda_processor(*device, options.memory, config, options.streams);
  if (!made) return refuse(made.error(), GpuFault::kFrames);
  return std::move(*made);
}

// The GPU's processor, and how it is opened anew; without the CPU's, frames that fail are lost.
std::unique_ptr<FrameProcessor> supervised(std::unique_ptr<FrameProcessor> gpu,
                                           std::unique_ptr<FrameProcessor> cpu,
                                           const ComputeOptions& options,
                                           const ProcessorConfig& config) {
  const auto open = [options, config]() -> Result<std::unique_ptr<FrameProcessor>> {
    auto opened = open_gpu(options, config);
    if (!opened) return tl::make_unexpected(opened.error().error);
    return std::move(*opened);
  };
  return make_supervised_processor(std::move(gpu), std::move(cpu), config.blobs,
                                   {open, monotonic_ns});
}

// The refusal of `cuda`.
tl::unexpected<Refusal> refuse_cuda(const ComputeOptions& options, const ProcessorConfig& config,
                                    const GpuRefusal& gpu) {
  if (gpu.fault == GpuFault::kSetting) return tl::make_unexpected(Refusal(gpu.error, true));
  if (gpu.fault == GpuFault::kFrames) {
    // What the CPU cannot do either is no fault of the backend.
    if (auto cpu = make_cpu_processor(config); !cpu)
      return tl::make_unexpected(Refusal(cpu.error()));
  }
  const auto error = not_available(options.names.backend + ": cuda", gpu.error, "auto or cpu");
  return tl::make_unexpected(Refusal(error.value(), true));
}

}  // namespace

Choice make_processor(const ComputeOptions& options, const ProcessorConfig& config) {
  using Backend = ComputeOptions::Backend;
  if (options.backend == Backend::kCuda) {
    auto gpu = open_gpu(options, config);
    if (!gpu) return refuse_cuda(options, config, gpu.error());
    return ChosenProcessor(supervised(std::move(*gpu), nullptr, options, config));
  }
  // First, because it refuses what could never work on either.
  auto cpu = make_cpu_processor(config);
  if (!cpu) return tl::make_unexpected(Refusal(cpu.error()));
  if (options.backend == Backend::kCpu) return ChosenProcessor(std::move(*cpu));
  auto gpu = open_gpu(options, config);
  if (!gpu) {
    ChosenProcessor chosen(std::move(*cpu), gpu.error().error.message);
    chosen.passes_gpu_over = gpu.error().fault != GpuFault::kAbsent;
    return chosen;
  }
  return ChosenProcessor(supervised(std::move(*gpu), std::move(*cpu), options, config),
                         "the GPU passed its self-test");
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
