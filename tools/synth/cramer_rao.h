// How exactly a pose can be known at all: the Cramér–Rao bound of an instance in its picture.
#pragma once

#include <cstddef>
#include <optional>

#include "pipeline/result.h"
#include "tools/synth/render.h"

namespace patternd::synth {

// Smallest standard deviation that an unbiased estimate can have.
struct PoseBound {
  double x_std_px = 0;
  double y_std_px = 0;
  double angle_std_deg = 0;
};

// For pixels I_i = a·P_i(x, y, angle) + b + noise of variance σ², with a and b unknown too (NCC
// normalises them away), the information about (x, y, angle, a, b) is
//
//   F = 1/σ² · Σ_i g_i g_iᵀ,   g = (∂P/∂x, ∂P/∂y, ∂P/∂angle, P, 1),
//
// and the bound is the square root of the diagonal of F⁻¹. The derivatives are those of the
// rendered picture before noise (light, blur, camera included), from the pattern's spline; the sum
// runs over the pixels of the picture that lie wholly within the visible pattern, so what the
// outline against the background tells is left out, as a matcher leaves it. σ² is the noise's plus
// that of rounding, 1/12 of a squared grey level (of the format's own levels).
//
// For a picture seen by a camera this bounds what the raw picture tells; rectification can only
// lose. Source: S. Kay, Fundamentals of Statistical Signal Processing I, 3.9 (vector parameter,
// Gaussian noise). Nothing where the pixels do not determine the pose.
[[nodiscard]] Result<std::optional<PoseBound>> cramer_rao_bound(const SceneRenderer& renderer,
                                                                int frame, std::size_t instance);

}  // namespace patternd::synth
