// A picture's coarsest level laid out for the search: sliding pairs of pixels, and row sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/coarse_search_kernel.h"
#include "pipeline/image.h"

namespace patternd {

// A pyramid level laid out for the kernel, shared by all patterns that start there. Pixels outside
// the picture and outside its valid area are 0, so that no sum sees them: S = 0 there, whatever the
// picture holds.
class CoarseImage {
 public:
  CoarseImage() = default;
  // `margin`: pixels around the picture that a search may read. `valid`: kGray8 of the level's
  // size, 0 where the picture has no content, which must live as long; empty: all valid.
  CoarseImage(int width, int height, int margin, const ImageView& valid = {});
  void build(const ImageView& level);
  [[nodiscard]] CoarseRows rows() const;
  [[nodiscard]] int margin() const { return margin_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  void build_row(const ImageView& level, int y);

  int width_ = 0;
  int height_ = 0;
  int margin_ = 0;
  std::ptrdiff_t stride_ = 0;
  ImageView valid_;
  std::vector<std::int32_t> samples_;  // of a row, and a 0 after its last
  std::vector<std::int32_t> pairs_;
  std::vector<std::uint32_t> sums_;
  std::vector<std::uint32_t> squares_;
};

}  // namespace patternd
