// A turned pattern as the integers that the coarse search multiplies with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/coarse_search_kernel.h"
#include "pipeline/pattern_pyramid.h"

namespace patternd {

// T with ΣT = 0 exactly, and for each row the running sums that give the count, ΣT and ΣT² of any
// stretch of it.
struct CoarseTemplate {
  TurnedPattern shape;
  std::vector<std::int16_t> weights;
  std::vector<std::int32_t> count_before;  // (width + 1) a row
  std::vector<std::int64_t> sum_before;
  std::vector<std::int64_t> square_before;
  int pixels = 0;
  std::int64_t energy = 0;  // ΣT²
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
