// What the coarse search and its suppression work from on the GPU, for all patterns at once: made
// once for a configuration, the same for all frames in flight. The tables are the CPU's.
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
  PixelFormat format = PixelFormat::kGray8;
  DeviceView valid;  // where the level that it searches is valid; address 0: everywhere
  int most_selected = 0;
};

struct CoarsePlan {
  // Copies the tables to the device; waits. Searches by matrix units (kernels/coarse_score.cu)
  // where the device has them, pictures have 8 bits and all windows find room in shared memory;
  // else in single precision (kernels/coarse_search.cu). kUnsupported for a template too large for
  // that.
  [[nodiscard]] static Result<CoarsePlan> create(const std::shared_ptr<const Device>& device,
                                                 const std::vector<CoarseJob>& jobs);

  // Pixels that the searches of an image read, counted from its pixel (0, 0).
  struct Reach {
    int left = 0;
    int top = 0;
    int right = 0;
    int bottom = 0;
  };

  // As the kernels read them, with the tables' addresses; those of a frame's own memory are 0.
  std::vector<CoarseImage> images;
  std::vector<CoarseGroup> groups;
  std::vector<CoarsePlane> planes;
  std::vector<Reach> reaches;     // an image each
  std::vector<int> levels;        // of the picture's pyramid, an image each
  CoarseParameters parameters{};  // the same
  DeviceBuffer tables;

  bool by_matrix_units = false;
  Kernel score;  // by matrix units alone
  Kernel prepare, bound, search, judge;
  Kernel peaks, across, select;
  Shape score_shape, prepare_shape, bound_shape, search_shape, judge_shape, list_shape,
      planes_shape, select_shape;
};

}  // namespace patternd::cuda
