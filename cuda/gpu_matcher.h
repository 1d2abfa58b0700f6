// Pattern search on the GPU: the stages of a frame behind rectification, in the CPU's order and
// with its plans and tables. Enqueues only; the host's part is the choice among the refined
// candidates.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuda/coarse_stage.h"
#include "cuda/pyramid_stage.h"
#include "cuda/trace_stage.h"
#include "pipeline/matcher.h"
#include "pipeline/matcher_plan.h"

namespace patternd::cuda {

class GpuMatcher {
 public:
  // `base` is level 0, filled before enqueue_pyramid runs. The same refusals as Matcher::create,
  // and kUnsupported for what is too large for the device.
  [[nodiscard]] static Result<GpuMatcher> create(const std::shared_ptr<const Device>& device,
                                                 const MatcherConfig& config,
                                                 const DeviceView& base);

  // The stages, in order.
  [[nodiscard]] Result<void> enqueue_pyramid(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_search(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_suppression(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_trace(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_refine(const Stream& stream) const;

  // After the stream has passed them: appends the matches, sorted. kExhausted where more candidates
  // came up than there is room for: the frame is the CPU's. Allocates nothing.
  [[nodiscard]] Result<void> collect(std::vector<Match>& matches);

 private:
  struct PatternState {
    PatternPlan plan;
    std::vector<Candidate> candidates;
    std::vector<Refinement> refinements;
    std::vector<Candidate> losers;
  };
  DeviceView base_;
  std::vector<PatternState> patterns_;
  std::vector<DevicePicture> valid_;  // the masks of the levels; empty: all valid
  std::optional<PyramidStage> pyramid_;
  std::optional<CoarseStage> coarse_;
  std::optional<TraceStage> trace_;
};

}  // namespace patternd::cuda
