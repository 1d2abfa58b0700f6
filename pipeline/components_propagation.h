// The report's program A (R1): number every pixel, set each to the smallest number among its
// connected neighbours, repeat until nothing moves. Kept for measuring.
#pragma once

#include <cstdint>

#include "pipeline/image.h"

namespace patternd::components {

// Labels `image` by similarity (kGray8, kGray16, kRgb8; neighbours differ by at most
// `most_difference`): `labels` (kLabel32, no background) receives 1, 2, … in scan order of each
// component's first pixel. Returns how many.
std::int64_t propagate_similar(const ImageView& image, double most_difference, bool eight,
                               MutableImageView labels);
// The same for a picture of foreground: `labels` comes with 0 for background and anything else for
// foreground.
std::int64_t propagate_foreground(bool eight, MutableImageView labels);

}  // namespace patternd::components
