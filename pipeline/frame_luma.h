// The conversions behind to_luma, for the formats without a luma plane.
#pragma once

#include <array>
#include <cstdint>

#include "pipeline/frame.h"

namespace patternd {

// Weights of a mosaic's 3×3 neighbourhood that give 1024 × luma at one kind of site: bilinear
// interpolation of the two missing colours and (77 R + 150 G + 29 B) / 256 in one, so that nothing
// is rounded in between. Beyond the picture's edge the row or column before it counts (…2 1 0 1
// 2…), which keeps the colours in step.
struct BayerWeights {
  std::uint32_t centre = 0;
  std::uint32_t horizontal = 0;  // left and right
  std::uint32_t vertical = 0;    // above and below
  std::uint32_t diagonal = 0;
};
// For the site (column parity, row parity).
[[nodiscard]] BayerWeights bayer_weights(BayerOrder order, int column, int row);

// A row of a mosaic and its neighbours.
struct BayerRows {
  const void* above;
  const void* row;
  const void* below;
};

// Writes `raw`'s luma into `out` (same size, luma_format(raw.format)); not for formats that have a
// luma plane.
void convert_to_luma(const RawImageView& raw, MutableImageView out);

}  // namespace patternd
