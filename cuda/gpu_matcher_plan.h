// Everything that the search for a configuration's patterns works from and no frame changes, with
// the CPU's plans and tables: made once, shared by all frames in flight.
#pragma once

#include <memory>
#include <vector>

#include "cuda/coarse_plan.h"
#include "cuda/trace_plan.h"
#include "pipeline/matcher.h"
#include "pipeline/matcher_plan.h"
#include "pipeline/thread_pool.h"

namespace patternd::cuda {

struct GpuMatcherPlan {
  // The same refusals as Matcher::create, and kUnsupported for what is too large for the device.
  // The patterns are shared out among the threads of `pool`, which may be null. Waits for its
  // copies to the device.
  [[nodiscard]] static Result<GpuMatcherPlan> create(const std::shared_ptr<const Device>& device,
                                                     const MatcherConfig& config, ThreadPool* pool);

  std::vector<PatternPlan> patterns;
  int levels = 0;                    // of the picture's pyramid, above level 0
  std::vector<DevicePicture> valid;  // the masks of the levels; empty: all valid
  CoarsePlan coarse;
  TracePlan trace;
};

}  // namespace patternd::cuda
