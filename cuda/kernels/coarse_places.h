// What the coarse search knows of a position beside its picture, and what becomes of one whose
// score is over the threshold.
#pragma once

#include "cuda/kernels/device.h"

namespace patternd::cuda {

// What a score depends on beside the picture: n, ΣT over the n pixels that are visible, and
// 1 / sqrt(n ΣT² − (ΣT)²).
struct PlaceTerms {
  i64 pixels;
  i64 pattern_sum;
  double inverse_norm;
};
// Of a position in the border block `kind`.
PATTERND_DEVICE PlaceTerms border_terms(const CoarsePlane& plane, int kind, int x) {
  const CoarseBorder& border = global<const CoarseBorder>(plane.border)[kind];
  const int i = x % kCoarseBlock;
  return {border.pixels[i], border.sum[i], border.inverse_norm[i]};
}
PATTERND_DEVICE PlaceTerms terms_of(const CoarsePlane& plane, int x, int y) {
  const int kind = global<const int>(plane.block_class)[y * plane.blocks + x / kCoarseBlock];
  if (kind < 0) return {plane.pixels, 0, plane.inverse_norm};
  return border_terms(plane, kind, x);
}

// ΣTS, ΣS and ΣS² of a window.
struct WindowSums {
  i64 dot;
  i64 sum;
  i64 square;
};

// Negative where inverted; 0 where it is not over the threshold.
PATTERND_DEVICE float score_of(const CoarsePlane& plane, const PlaceTerms& terms,
                               const WindowSums& window) {
  const i64 energy = terms.pixels * window.square - window.sum * window.sum;
  if (energy <= 0) return 0.0F;
  const i64 numerator = terms.pixels * window.dot - terms.pattern_sum * window.sum;
  const double score =
      static_cast<double>(numerator) * terms.inverse_norm / root(static_cast<double>(energy));
  const double size = score < 0 ? -score : score;
  if (size <= plane.threshold || (score < 0 && plane.any_polarity == 0)) return 0.0F;
  const float kept = static_cast<float>(size < 1.0 ? size : 1.0);
  return score < 0 ? -kept : kept;
}

// Puts a scored position into its place of the frame's list, where there is room, and into its
// plane's map, which suppression clears by the list.
PATTERND_DEVICE void store_score(const CoarseParameters& p, u32 slot,
                                 const CoarsePosition& position) {
  if (slot >= p.position_capacity) return;
  const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[position.plane];
  global<CoarsePosition>(p.positions)[slot] = position;
  global<float>(plane.scores)[position.y * plane.blocks * kCoarseBlock + position.x] =
      position.score;
}

}  // namespace patternd::cuda
