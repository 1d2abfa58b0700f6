// The coarse search and its suppression on the GPU, for all patterns of a frame at once; the method
// is in kernels/coarse_search.cu and kernels/suppress.cu.
#pragma once

#include <memory>
#include <vector>

#include "cuda/arena.h"
#include "cuda/coarse_plan.h"
#include "cuda/stage_clock.h"

namespace patternd::cuda {

class CoarseStage {
 public:
  // Allocates what a frame needs. `levels` are the picture's, level 0 first; `clock` must outlive
  // it.
  [[nodiscard]] static Result<CoarseStage> create(const std::shared_ptr<const Device>& device,
                                                  std::shared_ptr<const CoarsePlan> plan,
                                                  const std::vector<DeviceView>& levels,
                                                  const StageClock& clock);

  // Enqueue, in this order: scores at all positions; then the finds of each pattern, best first.
  [[nodiscard]] Result<void> enqueue_search(const Stream& stream) const;
  [[nodiscard]] Result<void> enqueue_suppression(const Stream& stream) const;

  // Where enqueue_suppression leaves them: TracedCandidate[patterns][select_limit()], their numbers
  // int[patterns], zeros int[patterns] for the trace's losers, CoarseCounters.
  [[nodiscard]] Address selected() const { return parameters_.selected; }
  [[nodiscard]] Address selected_counts() const { return parameters_.selected_counts; }
  [[nodiscard]] Address loser_counts() const { return parameters_.loser_counts; }
  [[nodiscard]] Address counters() const { return parameters_.counters; }
  [[nodiscard]] int select_limit() const { return parameters_.select_limit; }

 private:
  // The plan's, with the addresses of this frame's memory.
  struct Places {
    std::vector<CoarseImage> images;
    std::vector<CoarseGroup> groups;
    std::vector<CoarsePlane> planes;
  };
  void lay_out(ScratchLayout& memory, Places& places);
  [[nodiscard]] Result<void> allocate(const std::shared_ptr<const Device>& device, Places& places);
  [[nodiscard]] Result<void> fill_places(const std::shared_ptr<const Device>& device,
                                         const Places& places);

  std::shared_ptr<const CoarsePlan> plan_;
  CoarseParameters parameters_{};
  DeviceBuffer scratch_;
  DeviceBuffer places_;
};

}  // namespace patternd::cuda
