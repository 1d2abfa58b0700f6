// The way down the pyramid and refinement on the GPU, for all patterns of a frame at once; the
// method is in kernels/trace.cu and kernels/refine.cu.
#pragma once

#include <memory>
#include <vector>

#include "cuda/coarse_stage.h"
#include "cuda/picture.h"
#include "cuda/stream.h"
#include "pipeline/matcher_plan.h"

namespace patternd::cuda {

// What a frame found of one pattern, as the host reads it in place.
struct FoundPattern {
  const TracedCandidate* candidates = nullptr;
  int candidate_count = 0;
  const TracedLoser* losers = nullptr;
  int loser_count = 0;
  bool overflow = false;  // more was found than there was room for: the frame is the CPU's
};

class TraceStage {
 public:
  // `levels` are the picture's, level 0 first; `valid` their masks (empty: all valid), which must
  // outlive this stage, as the coarse stage must.
  [[nodiscard]] static Result<TraceStage> create(const std::shared_ptr<const Device>& device,
                                                 const std::vector<const PatternPlan*>& plans,
                                                 const std::vector<DeviceView>& levels,
                                                 const std::vector<DeviceView>& valid,
                                                 const CoarseStage& coarse);

  // Enqueue: all levels but the finest; then the finest, whose results land in host memory.
  [[nodiscard]] Result<void> enqueue_trace(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_refine(const Stream& stream) const;
  // After the stream has passed enqueue_refine.
  [[nodiscard]] FoundPattern found(std::size_t pattern) const;

 private:
  // One launch of the trace: a step of every pattern that has one.
  struct Step {
    Address patterns = 0;
    Address regressions = 0;
    bool chooses = false;  // not all candidates may be followed
    unsigned glances = 1;  // candidates that these may be
    int team_blocks = 1;   // a candidate
    Shape shape;           // with one block for each that is followed
  };
  [[nodiscard]] Result<void> create_levels(const std::shared_ptr<const Device>& device,
                                           const std::vector<DeviceView>& levels,
                                           const std::vector<DeviceView>& valid);
  [[nodiscard]] Result<void> create_tables(const std::shared_ptr<const Device>& device,
                                           const std::vector<const PatternPlan*>& plans);
  [[nodiscard]] Result<void> create_results(const std::shared_ptr<const Device>& device);

  std::vector<Texture> textures_;
  std::vector<TraceImage> images_;
  DeviceBuffer tables_;
  DeviceBuffer scratch_;
  SharedBuffer results_;
  TraceParameters parameters_{};
  RefineParameters refine_{};
  std::vector<Step> steps_;
  Shape refine_shape_;
  std::size_t candidates_offset_ = 0;
  std::size_t losers_offset_ = 0;
  Kernel glance_, follow_, step_, keep_, refine_kernel_;
};

}  // namespace patternd::cuda
