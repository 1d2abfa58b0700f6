// Which neighbours of a grey or colour picture are alike (R5), as bits of one row after another.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/components_rows.h"
#include "pipeline/image.h"

namespace patternd::components {

// Keeps copies of two rows, a plane a channel with margins, so that the comparisons may read beyond
// both ends.
class SimilarityRows {
 public:
  // Allocates for pictures of this width and format (kGray8, kGray16, kRgb8).
  void configure(int width, PixelFormat format, double most_difference);
  // Takes row y in; the row taken in before becomes the row above.
  void load(const ImageView& image, int y);
  // The first pixels of the runs of the row taken in last.
  void starts(std::uint64_t* bits) const;
  // Its touches with the row above, in memory of this object; up to the next call.
  [[nodiscard]] SimilarityBits touches(const std::uint64_t* starts,
                                       const std::uint64_t* upper_starts);
  // The row taken in last as grey: as it is, or luma of a colour row, (77 R + 150 G + 29 B + 128) /
  // 256. For 8-bit formats; 16-bit below.
  [[nodiscard]] const std::uint8_t* grey8();
  [[nodiscard]] const std::uint16_t* grey16() const;

 private:
  void compare(std::size_t row_a, std::ptrdiff_t shift, std::size_t row_b,
               std::uint64_t* bits) const;

  int width_ = 0;
  PixelFormat format_ = PixelFormat::kGray8;
  std::uint32_t limit_ = 0;
  std::size_t now_ = 0;    // which of the two rows was taken in last
  std::size_t plane_ = 0;  // elements of a plane, margins included
  std::vector<std::uint8_t> rows8_[2];
  std::vector<std::uint16_t> rows16_[2];
  std::vector<std::uint8_t> luma_;
  std::vector<std::uint64_t> up_, left_, right_;
};

}  // namespace patternd::components
