// Pictures that are hard, or typical, for connected components; the parity tests and the benchmark
// share them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/image.h"

namespace patternd::bench {

// Names of the pictures that make_label_picture knows: noise10 … noise90, dots, blocks4, spiral,
// comb, serpentine, checkerboard, full, blank, spots.
[[nodiscard]] const std::vector<std::string>& label_picture_names();

// One of them: foreground 255 on 0, kGray8. `seed` counts for noise, blocks and spots.
//   noiseP       P per cent of the pixels, each by itself
//   dots         every other pixel of every other row
//   blocks4      4×4 blocks, half of them
//   spiral       one line of width 1, gap 1, from the corner to the middle
//   comb         every other column, joined by the last row: unions come at the very end
//   serpentine   one line that runs right, left, right, …
//   spots        300 discs of radius 2 to 6 for each 2048×2048 pixels
[[nodiscard]] Image make_label_picture(const std::string& name, int width, int height,
                                       std::uint32_t seed);

}  // namespace patternd::bench
