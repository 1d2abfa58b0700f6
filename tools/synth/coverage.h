// How much of a pixel, or of a cell of one, a pattern covers.
#pragma once

#include "calibration/camera_model.h"
#include "tools/synth/scene.h"

namespace patternd::synth {

// The share of a small parallelogram in which a linear function is positive: `f` is the function at
// its centre, `a` and `b` (0 or more) its change along the two sides. Exact.
//   positive_share(0, 1, 1) == 0.5;  positive_share(0.25, 1, 0) == 0.75
[[nodiscard]] double positive_share(double f, double a, double b);

// The pixels of a pattern that show: its shape without the covered part.
class VisibleShape {
 public:
  VisibleShape(const ScenePattern& pattern, double cover);
  enum class Place { kOutside, kInside, kEdge };
  // Where the parallelogram about (u, v) with the sides' halves summing to (half_u, half_v) lies.
  // kEdge where it cannot be told at once.
  [[nodiscard]] Place place(double u, double v, double half_u, double half_v) const;
  // The share of the parallelogram at (u, v) that shows. `sides`: d(u, v) along the first side is
  // (sides[0], sides[2]), along the second (sides[1], sides[3]).
  [[nodiscard]] double share(double u, double v, const Jacobian2& sides) const;

 private:
  [[nodiscard]] double ellipse_share(double u, double v, const Jacobian2& sides) const;

  double low_u_, high_u_, low_v_, high_v_;
  double centre_u_, centre_v_, radius_u_, radius_v_;
  bool ellipse_;
  bool covered_;
};

}  // namespace patternd::synth
