// Small scenes with known truth for the matcher's tests: a pattern pasted at any pose, with noise
// and a light gradient, area-averaged over 4×4 samples a pixel.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/match.h"

namespace patternd::test {

struct Placed {
  double x = 0;  // where the pattern's centre lies
  double y = 0;
  double angle_deg = 0;
  double scale = 1;
  bool inverted = false;
};

struct MatchScene {
  int width = 640;
  int height = 480;
  PixelFormat format = PixelFormat::kGray8;
  std::vector<Placed> placed;
  double noise_sigma = 0;
  double light_gradient = 0;  // ±share of brightness from one side to the other, along (1, 0.5)
  unsigned seed = 1;
};

// `background` is repeated (mirrored) over the scene; empty: flat grey. `mask`: pattern pixels of 0
// show the background; empty: none.
[[nodiscard]] Image render_scene(const MatchScene& scene, const ImageView& pattern,
                                 const ImageView& mask, const ImageView& background);

// A pattern of smooth random texture (octaves of value noise), the same for the same seed.
[[nodiscard]] Image made_texture(int width, int height, unsigned seed,
                                 PixelFormat format = PixelFormat::kGray8);

// NCC of a pattern with a picture at a pose, in double precision straight from the formula; samples
// outside the picture don't count. The yardstick of the matcher's scores.
[[nodiscard]] double reference_score(const ImageView& picture, const ImageView& pattern,
                                     const ImageView& mask, const Placed& pose);

}  // namespace patternd::test
