#include "cuda/backend.h"

#include <mutex>
#include <utility>

#include "cuda/cuda_processor.h"
#include "cuda/device.h"
#include "cuda/frame_memory.h"
#include "cuda/supervised_processor.h"

namespace patternd::cuda {
namespace {

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

// The GPU's processor, and how it is opened anew; without the CPU's, frames that fail are lost.
std::unique_ptr<FrameProcessor> supervised(std::unique_ptr<FrameProcessor> gpu,
                                           std::unique_ptr<FrameProcessor> cpu,
                                           const ComputeOptions& options,
                                           const ProcessorConfig& config) {
  const auto open = [options, config] { return open_gpu(options, config); };
  return make_supervised_processor(std::move(gpu), std::move(cpu), config.blobs,
                                   {open, monotonic_ns});
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
    return ChosenProcessor{supervised(std::move(*gpu), nullptr, options, config), "as configured"};
  }
  // First, because it refuses what could never work on either.
  auto cpu = make_cpu_processor(config);
  if (!cpu) return tl::make_unexpected(cpu.error());
  if (options.backend == Backend::kCpu) return ChosenProcessor{std::move(*cpu), "as configured"};
  auto gpu = open_gpu(options, config);
  if (!gpu) return ChosenProcessor{std::move(*cpu), gpu.error().message};
  return ChosenProcessor{supervised(std::move(*gpu), std::move(*cpu), options, config),
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
