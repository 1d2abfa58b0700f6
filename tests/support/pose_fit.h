// An estimator that wastes nothing: least squares over every pixel of an instance. Far too slow to
// search with; it shows what a made scene allows.
#pragma once

#include "pipeline/image.h"
#include "tools/synth/scene.h"

namespace patternd::test {

struct PoseFit {
  synth::Pose pose;
  // The Cramér–Rao bound for the pixels and the unknowns of the fit: σ²·(JᵀJ)⁻¹, J the model's
  // derivatives. No unbiased estimate from these pixels that knows the light no better is more
  // exact.
  double x_bound_px = 0;
  double y_bound_px = 0;
  double angle_bound_deg = 0;
};

// Fits (x, y, angle) so that the picture's pixels inside the pattern become
// (a + c·dx + d·dy)·P + b, a linear fall of light; P is the spline through the taught picture. A
// rim of half a pixel inside the outermost pixels' centres is left out, where the spline would
// guess. Gauss–Newton from `start`, which must lie within about half a pixel of the best.
// `noise_sigma` is the pixels' own, for the bounds.
[[nodiscard]] PoseFit fit_pose(const ImageView& picture, const ImageView& pattern,
                               const synth::Pose& start, double noise_sigma);

}  // namespace patternd::test
