// The coarse search and its suppression on the GPU, for all patterns of a frame at once; the method
// is in kernels/coarse_search.cu and kernels/suppress.cu, the tables are the CPU's.
#pragma once

#include <memory>
#include <vector>

#include "cuda/picture.h"
#include "cuda/stream.h"
#include "pipeline/coarse_search.h"

namespace patternd::cuda {

// One pattern's search.
struct CoarseJob {
  CoarseTables tables;
  CoarseConfig config;
  DeviceView level;  // the picture's level that it searches
  DeviceView valid;  // where that is valid; address 0: everywhere
  int most_selected = 0;
};

class CoarseStage {
 public:
  // Copies the tables and allocates what a frame needs. kUnsupported for a template too large for
  // the device's shared memory.
  [[nodiscard]] static Result<CoarseStage> create(const std::shared_ptr<const Device>& device,
                                                  const std::vector<CoarseJob>& jobs);

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
  struct Layout;
  [[nodiscard]] Result<void> find_kernels(const Device& device);
  [[nodiscard]] std::size_t lay_out_tile(const Layout& layout, int warps, std::size_t limit);
  [[nodiscard]] Result<void> choose_search_shape(const Device& device, Layout& layout);
  void choose_other_shapes(const Device& device, const Layout& layout);
  [[nodiscard]] Result<void> allocate(const std::shared_ptr<const Device>& device, Layout& layout);
  [[nodiscard]] Result<void> fill_tables(const std::shared_ptr<const Device>& device,
                                         const std::vector<CoarseJob>& jobs, Layout& layout);

  CoarseParameters parameters_{};
  DeviceBuffer scratch_;
  DeviceBuffer tables_;
  Kernel prepare_, bound_, search_, judge_, peaks_, across_, select_;
  Shape prepare_shape_, bound_shape_, search_shape_, judge_shape_, list_shape_, planes_shape_,
      select_shape_;
};

}  // namespace patternd::cuda
