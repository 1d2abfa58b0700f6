#include "daemon/backend.h"

#include "pipeline/sources/aligned_frames.h"

namespace patternd {
namespace {

cuda::ComputeOptions options_of(const ComputeConfig& compute) {
  cuda::ComputeOptions options;
  switch (compute.backend) {
    case ComputeConfig::Backend::kAuto:
      options.backend = cuda::ComputeOptions::Backend::kAuto;
      break;
    case ComputeConfig::Backend::kCpu:
      options.backend = cuda::ComputeOptions::Backend::kCpu;
      break;
    case ComputeConfig::Backend::kCuda:
      options.backend = cuda::ComputeOptions::Backend::kCuda;
      break;
  }
  options.device = compute.device;
  options.memory = compute.memory;
  options.image = compute.image;
  options.streams = compute.streams;
  options.names = compute.names;
  return options;
}

}  // namespace

cuda::Choice make_configured_processor(const ComputeConfig& compute,
                                       const ProcessorConfig& config) {
  return cuda::make_processor(options_of(compute), config);
}

std::unique_ptr<FrameAllocator> make_configured_frame_memory(const ComputeConfig& compute) {
  return cuda::make_frame_memory(options_of(compute), std::make_unique<AlignedFrameAllocator>());
}

}  // namespace patternd
