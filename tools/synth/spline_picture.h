// A picture as a smooth function of the plane: the interpolating cubic B-spline through its pixels.
#pragma once

#include <array>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd::synth {

// Values are grey levels of 8 bit (16-bit pictures are divided by 257). Beyond its borders the
// picture is mirrored, again and again, so that it covers the plane (positions up to ±1e9).
//
// Why this kernel: it passes through the pixels, is twice continuously differentiable (so gradients
// and Cramér–Rao bounds are well defined), and is symmetric, so it moves nothing: a picture sampled
// at a shift of d is displaced by exactly d, whatever d is. Bilinear interpolation is symmetric
// too, but blurs by an amount that depends on the sub-pixel phase, which pulls matches towards
// pixel centres. Source: Unser, Aldroubi, Eden, "B-spline signal processing", 1993.
class SplinePicture {
 public:
  // `picture`: kGray8, kGray16 or kGrayF32 (grey levels of 8 bit); else kInvalidArgument.
  [[nodiscard]] static Result<SplinePicture> create(const ImageView& picture);

  struct Sample {
    double value = 0;
    double dx = 0;  // derivative along x, grey levels a pixel
    double dy = 0;
  };
  [[nodiscard]] double value(double x, double y) const;
  [[nodiscard]] Sample sample(double x, double y) const;

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }

 private:
  SplinePicture() = default;
  // The 4×4 coefficients from (first_x, first_y) on, row by row; beyond the picture they are
  // gathered in `mirror`.
  [[nodiscard]] std::array<const float*, 4> rows_at(int first_x, int first_y,
                                                    std::array<float, 16>& mirror) const;
  int width_ = 0;
  int height_ = 0;
  std::vector<float> coefficients_;  // row by row
};

}  // namespace patternd::synth
