// Foreground by the local mean: value > mean + offset, or value < mean − offset.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/image.h"

namespace patternd::components {

// Makes the bits of one row after another of a picture, in rising order. The mean is that of the
// window of 2·radius + 1 pixels squared, clipped at the picture's edges; sums are whole numbers and
// the comparison is exact but for the rounding of offset times the window's pixels.
class AdaptiveRows {
 public:
  // Allocates for pictures of this width.
  void configure(int width, int radius, double offset, bool below);
  // Starts at row y of `image` (kGray8 or kGray16, the same until the next start).
  void start(const ImageView& image, int y);
  // The bits of the next row (components_rows.h).
  void next_row(std::uint64_t* bits);

 private:
  template <class T>
  void add_row(int y, bool add);
  template <class T>
  void compare_row(std::uint64_t* bits) const;
  void set_limits(int rows);

  int radius_ = 0;
  double offset_ = 0;
  bool below_ = false;
  ImageView image_;
  int y_ = 0;
  int limit_rows_ = 0;                      // the window's rows that limits_ stands for
  std::vector<std::uint32_t> column_sums_;  // over the window's rows
  std::vector<std::uint64_t> prefix_;       // of column_sums_, prefix_[0] = 0
  std::vector<std::int64_t> counts_;        // pixels of the window around column x
  std::vector<std::int64_t> limits_;        // floor(offset · counts_)
};

}  // namespace patternd::components
