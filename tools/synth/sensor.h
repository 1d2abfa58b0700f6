// What a camera adds: light, blur, noise, whole numbers.
#pragma once

#include <cstdint>

#include "pipeline/image.h"
#include "pipeline/result.h"
#include "tools/synth/scene.h"

namespace patternd::synth {

// The factor that light has at pixel (x, y) of a picture of the given size.
[[nodiscard]] double light_factor(const Light& light, double x, double y, int width, int height);

// Gaussian blur in place, kGrayF32, mirrored at the borders; sigma 0 does nothing.
[[nodiscard]] Result<void> blur(MutableImageView picture, double sigma_px);

// Adds noise (standard deviation in grey levels of 8 bit) and rounds to `format`, kGray8 or kGray16
// (grey levels times 257). Each row's noise depends on (seed, frame, row) alone.
[[nodiscard]] Result<Image> expose(const ImageView& exact, PixelFormat format, double noise_sigma,
                                   std::uint64_t seed, int frame);

}  // namespace patternd::synth
