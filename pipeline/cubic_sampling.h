// Sampling of the picture by the cubic through four pixels along each axis (Lagrange's), for the
// last steps of refinement.
//
// Bilinear samples of a fine texture seem to lie off their place by up to f(1−f)(1−2f)/6 times its
// squared frequency, f the place between two pixels. Where a pattern lies along the pixels, f is
// the same all over and that does not average out: 0.02 px, and 0.02 degrees where it changes
// slowly. This cubic has no third-order term; Catmull and Rom's has the same as bilinear samples.
#pragma once

#include <array>

#include "pipeline/trace_kernel.h"

namespace patternd {

// Weights of the pixels at −1, 0, 1 and 2 for the place t in [0, 1].
[[nodiscard]] std::array<double, 4> cubic_weights(double t);

// Puts cubic samples in the place of the bilinear ones in `patch`, wherever their sixteen pixels
// exist; the others stay. kGray8 or kGray16; grey values on the scale of 8 bit. Allocates nothing.
void sample_cubic(const ImageView& image, const SamplingGrid& grid, const Patch& patch);

}  // namespace patternd
