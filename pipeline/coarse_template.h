// A turned pattern as the integers that the coarse search multiplies with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/coarse_search_kernel.h"
#include "pipeline/pattern_pyramid.h"

namespace patternd {

// Of some of a template's pixels: how many count, and their ΣT and ΣT².
struct TemplateSums {
  std::int64_t sum = 0;
  std::int64_t square = 0;
  std::int32_t pixels = 0;
};

// T with ΣT = 0 exactly, and the running sums that give those of any rectangle.
struct CoarseTemplate {
  TurnedPattern shape;
  std::vector<std::int16_t> weights;
  std::vector<TemplateSums> before;  // (height + 1) rows of (width + 1): above and to the left
  int pixels = 0;
  std::int64_t energy = 0;  // ΣT²

  // Over columns [left, right) and rows [top, bottom) of its box, which lie in it.
  [[nodiscard]] TemplateSums sums_of(int left, int right, int top, int bottom) const;
};

// Integers such that Σ|T|·max_sample stays below 2^31.
[[nodiscard]] CoarseTemplate make_coarse_template(TurnedPattern shape, int max_sample);

// Of the four phases (pixel centre, or half-way between pixels along x, y or both) the one that
// keeps most pixels; `pose` is set to it.
[[nodiscard]] TurnedPattern render_best_phase(const std::vector<PatternLevel>& pyramid, int level,
                                              TurnedPose& pose);

// The stretches of the pixels that count.
[[nodiscard]] std::vector<MaskRun> runs_of(const TurnedPattern& shape);

// The template's rows interleaved for bands: see BandPlace.
[[nodiscard]] BandWeights band_weights(const CoarseTemplate& t);

// The pixels of the first that count in all of them.
[[nodiscard]] TurnedPattern common_pixels(const std::vector<const TurnedPattern*>& shapes);

}  // namespace patternd
