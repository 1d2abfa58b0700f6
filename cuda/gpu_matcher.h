// Pattern search on the GPU: the stages of a frame behind rectification, in the CPU's order.
// Enqueues only; the host's part is the choice among the refined
// candidates.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuda/coarse_stage.h"
#include "cuda/gpu_matcher_plan.h"
#include "cuda/pyramid_stage.h"
#include "cuda/stage_clock.h"
#include "cuda/trace_stage.h"

namespace patternd::cuda {

class GpuMatcher {
 public:
  // Allocates what a frame needs. `base` is level 0, filled before enqueue_pyramid runs.
  [[nodiscard]] static Result<GpuMatcher> create(const std::shared_ptr<const Device>& device,
                                                 std::shared_ptr<const GpuMatcherPlan> plan,
                                                 const DeviceView& base);

  // The stages, in order.
  [[nodiscard]] Result<void> enqueue_pyramid(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_search(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_suppression(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_trace(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_refine(const Stream& stream) const;

  // After the stream has passed them: sets how long each took.
  void read_times(StageTimes& times) const;
  // The same time: appends the matches, sorted. kExhausted where more candidates came up than there
  // is room for: the search is the CPU's. kDevice where its blocks lost each other. Allocates
  // nothing.
  [[nodiscard]] Result<void> collect(std::vector<Match>& matches);

 private:
  void reserve(const GpuMatcherPlan& plan);
  [[nodiscard]] Result<void> check_found() const;
  // What a frame found of a pattern, in the form that the host chooses from.
  void take(const PatternPlan& plan, const FoundPattern& found);

  std::shared_ptr<const GpuMatcherPlan> plan_;
  DeviceView base_;
  std::optional<StageClock> clock_;
  std::optional<PyramidStage> pyramid_;
  std::optional<CoarseStage> coarse_;
  std::optional<TraceStage> trace_;
  // One pattern's at a time.
  std::vector<Candidate> candidates_;
  std::vector<Refinement> refinements_;
  std::vector<Candidate> losers_;
};

}  // namespace patternd::cuda
