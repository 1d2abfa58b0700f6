// The inner loops of trace and refine: sampling the picture in the pattern's own upright frame, and
// the sums of the NCC there. Grey values are floats on the scale of 8 bit.
#pragma once

#include <cstddef>
#include <vector>

#include "pipeline/image.h"

namespace patternd {

// Where sample (i, j) of a patch lies in a picture: (x + i·ux + j·vx, y + i·uy + j·vy).
struct SamplingGrid {
  double x = 0;
  double y = 0;
  double ux = 0;
  double uy = 0;
  double vx = 0;
  double vy = 0;
};

// Samples; `stride` floats a row, of which the ones past `width` up to the stride are finite.
struct Patch {
  float* values = nullptr;
  float* visible = nullptr;  // 1 where the sample has a source, else 0; only where asked for
  std::ptrdiff_t stride = 0;
  int width = 0;
  int height = 0;
};

// Row strides of patches and patterns are multiples of this, so that vectors never need a tail.
inline constexpr int kPatchLanes = 16;
[[nodiscard]] inline std::ptrdiff_t patch_stride(int width) {
  return (static_cast<std::ptrdiff_t>(width) + kPatchLanes - 1) / kPatchLanes * kPatchLanes;
}

// Whether every sample has its four sources so far inside that sample_inside may be used.
[[nodiscard]] bool grid_is_inside(const ImageView& image, const SamplingGrid& grid, int width,
                                  int height);
// Bilinear samples of a grid that is inside. kGray8 or kGray16.
void sample_inside(const ImageView& image, const SamplingGrid& grid, const Patch& patch);
// Bilinear samples of any grid. A sample is visible where the picture's nearest pixel exists (that
// is, up to half a pixel past the outermost pixels' centres, where it takes the outermost value)
// and is valid; others are 0. `valid`: kGray8 of the picture's size, 0 where invalid, or empty.
void sample_partly(const ImageView& image, const ImageView& valid, const SamplingGrid& grid,
                   const Patch& patch);

// A pattern upright at one level: T zero-mean over the mask and 0 elsewhere, mask 1 or 0; rows of
// `stride` floats, zeros past the width.
struct UprightPattern {
  int width = 0;
  int height = 0;
  std::ptrdiff_t stride = 0;
  std::vector<float> values;
  std::vector<float> mask;
  double pixels = 0;
  double energy = 0;  // ΣT²
};

// NCC of the pattern with the patch from its sample (dx, dy) on. All samples visible. 0 where the
// window's standard deviation is under `least_contrast`.
[[nodiscard]] double score_at(const UprightPattern& pattern, const Patch& patch, int dx, int dy,
                              double least_contrast);
// The same over the visible samples only; their number comes back in `visible_pixels`. Exact to
// floats where `middle` is near the samples' mean.
[[nodiscard]] double score_partly_at(const UprightPattern& pattern, const Patch& patch, int dx,
                                     int dy, double least_contrast, double& visible_pixels,
                                     double middle = 128);
// The NCC at (0, 0) with all samples visible, exact to floats: the mean is taken off first.
[[nodiscard]] double score_whole(const UprightPattern& pattern, const Patch& patch,
                                 double least_contrast);
// Mean of the visible samples under the pattern's mask.
[[nodiscard]] double mean_of(const UprightPattern& pattern, const Patch& patch);

}  // namespace patternd
