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
  // int[patterns], CoarseCounters.
  [[nodiscard]] Address selected() const { return parameters_.selected; }
  [[nodiscard]] Address selected_counts() const { return parameters_.selected_counts; }
  [[nodiscard]] Address counters() const { return parameters_.counters; }
  [[nodiscard]] int select_limit() const { return parameters_.select_limit; }

 private:
  struct Layout;
  [[nodiscard]] Result<void> find_kernels(const Device& device);
  [[nodiscard]] Result<void> choose_shapes(const Device& device, const Layout& layout);

  CoarseParameters parameters_{};
  DeviceBuffer tables_;
  DeviceBuffer scratch_;
  std::size_t counter_bytes_ = 0;  // from parameters_.counters on, zeroed for each frame
  Kernel prepare_, bound_, screen_, score_, peaks_, trim_, across_, select_;
  Shape prepare_shape_, bound_shape_, screen_shape_, list_shape_;
};

}  // namespace patternd::cuda
