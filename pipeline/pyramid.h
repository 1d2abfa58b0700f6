// The image pyramid that all patterns of a frame share: factor 2 a level, exact 2×2 box (T12).
#pragma once

#include <vector>

#include "pipeline/image.h"
#include "pipeline/result.h"
#include "pipeline/thread_pool.h"

namespace patternd {

// Level l has (width >> l) × (height >> l) pixels: the last row and column of an odd level are
// dropped. A place x of level 0 lies at level_coordinate(x, l) of level l.
[[nodiscard]] inline double level_coordinate(double level0, int level) {
  return (level0 + 0.5) / static_cast<double>(1 << level) - 0.5;
}
[[nodiscard]] inline double level0_coordinate(double at_level, int level) {
  return (at_level + 0.5) * static_cast<double>(1 << level) - 0.5;
}

// Writes rows [first_row, first_row + rows) of `out`, which is half as large as `in` (rounded
// down); each pixel is (a + b + c + d + 2) / 4 of the four under it. kGray8 or kGray16, both alike.
// Allocates nothing. The second is the plain version that the first is tested against.
void halve(const ImageView& in, MutableImageView out, int first_row, int rows);
void halve_reference(const ImageView& in, MutableImageView out, int first_row, int rows);

class Pyramid {
 public:
  Pyramid() = default;
  // `levels` above level 0, at most until a side is one pixel: kInvalidArgument beyond that.
  [[nodiscard]] static Result<Pyramid> create(int width, int height, PixelFormat format,
                                              int levels);

  // `image` becomes level 0 (not copied: it must live as long as the levels are read). Allocates
  // nothing. `pool` may be null.
  void build(const ImageView& image, ThreadPool* pool);

  [[nodiscard]] int levels() const { return static_cast<int>(halved_.size()); }
  [[nodiscard]] ImageView level(int index) const {
    return index == 0 ? base_ : halved_[static_cast<std::size_t>(index) - 1].view();
  }

 private:
  void build_strip(int first, int last, int strip);

  ImageView base_;
  std::vector<Image> halved_;
};

// The most levels above level 0 that a picture of this size can have.
[[nodiscard]] int deepest_level(int width, int height);

}  // namespace patternd
