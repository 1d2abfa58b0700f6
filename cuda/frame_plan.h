// Everything of a configuration that no frame changes, on the host and on the device: planned and
// uploaded once, shared by all slots of a processor, and freed with the last of them.
#pragma once

#include <memory>
#include <optional>

#include "cuda/blob_stage.h"
#include "cuda/gpu_matcher_plan.h"
#include "cuda/luma_plan.h"
#include "pipeline/frame_processor.h"
#include "pipeline/thread_pool.h"

namespace patternd::cuda {

struct FramePlan {
  // Waits for its copies to the device. `pool` works on the dark frame. Refuses what no GPU, or not
  // this one, could do.
  [[nodiscard]] static Result<std::shared_ptr<const FramePlan>> create(
      const std::shared_ptr<const Device>& device, MemoryMode mode, const ProcessorConfig& config,
      ThreadPool* pool);

  ProcessorConfig config;
  MemoryMode mode = MemoryMode::kCopy;
  BlobReference reference;
  LumaPlan luma;
  std::optional<GpuMatcherPlan> matcher;  // where there are patterns
};

}  // namespace patternd::cuda
