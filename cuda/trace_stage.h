// The way down the pyramid and refinement on the GPU, for all patterns of a frame at once; the
// method is in kernels/trace.cu and kernels/refine.cu.
#pragma once

#include <memory>
#include <vector>

#include "cuda/coarse_stage.h"
#include "cuda/picture.h"
#include "cuda/stage_clock.h"
#include "cuda/stream.h"
#include "cuda/trace_plan.h"

namespace patternd::cuda {

// What a frame found of one pattern, as the host reads it in place.
struct FoundPattern {
  const TracedCandidate* candidates = nullptr;
  int candidate_count = 0;
  const ResultLoser* losers = nullptr;  // that may be a match's runner-up
  int loser_count = 0;
  bool overflow = false;  // more was found than there was room for: the frame is the CPU's
  bool broken = false;    // blocks waited in vain for each other: the GPU is of no more use
};

class TraceStage {
 public:
  // Allocates what a frame needs. `levels` are the picture's, level 0 first; `valid` their masks
  // (empty: all valid), which must outlive this stage, as the coarse stage and the clock must.
  [[nodiscard]] static Result<TraceStage> create(const std::shared_ptr<const Device>& device,
                                                 std::shared_ptr<const TracePlan> plan,
                                                 const std::vector<DeviceView>& levels,
                                                 const std::vector<DevicePicture>& valid,
                                                 const CoarseStage& coarse,
                                                 const StageClock& clock);

  // Enqueue: all levels but the finest; then the finest, whose results land in host memory.
  [[nodiscard]] Result<void> enqueue_trace(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_refine(const Stream& stream) const;
  // After the stream has passed enqueue_refine.
  [[nodiscard]] FoundPattern found(std::size_t pattern) const;

 private:
  [[nodiscard]] Result<void> create_levels(const std::shared_ptr<const Device>& device,
                                           const std::vector<DeviceView>& levels,
                                           const std::vector<DevicePicture>& valid);
  [[nodiscard]] Result<void> allocate_scratch(const std::shared_ptr<const Device>& device);
  [[nodiscard]] Result<void> allocate_results(const std::shared_ptr<const Device>& device);
  void set_refinement(const StageClock& clock);

  std::shared_ptr<const TracePlan> plan_;
  std::vector<Texture> textures_;
  DeviceBuffer images_;  // TraceImage[levels]
  DeviceBuffer scratch_;
  SharedBuffer results_;
  TraceParameters parameters_{};
  RefineParameters refine_{};
  std::size_t candidates_offset_ = 0;
  std::size_t losers_offset_ = 0;
};

}  // namespace patternd::cuda
