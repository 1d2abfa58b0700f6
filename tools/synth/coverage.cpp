#include "tools/synth/coverage.h"

#include <algorithm>
#include <cmath>

namespace patternd::synth {
namespace {

double squared_if_positive(double value) { return value > 0 ? value * value : 0; }

// The share of a parallelogram between low and high along one coordinate.
double share_between(double value, double low, double high, double a, double b) {
  const double share = positive_share(value - low, a, b) + positive_share(high - value, a, b) - 1;
  return std::max(share, 0.0);
}

}  // namespace

double positive_share(double f, double a, double b) {
  const double reach = (a + b) / 2;
  if (f >= reach) return 1;
  if (f <= -reach) return 0;
  const double longer = std::max(a, b);
  const double shorter = std::min(a, b);
  if (shorter < 1e-5 * longer) return std::clamp(0.5 + f / longer, 0.0, 1.0);
  // The integral over both sides of the step function: a second difference of f²/2.
  const double half_difference = (longer - shorter) / 2;
  const double sum = squared_if_positive(f + reach) - squared_if_positive(f + half_difference) -
                     squared_if_positive(f - half_difference);
  return std::clamp(sum / (2 * longer * shorter), 0.0, 1.0);
}

VisibleShape::VisibleShape(const ScenePattern& pattern, double cover)
    : low_u_(-0.5 + cover * pattern.width),
      high_u_(pattern.width - 0.5),
      low_v_(-0.5),
      high_v_(pattern.height - 0.5),
      centre_u_(pattern.ref_x()),
      centre_v_(pattern.ref_y()),
      radius_u_(pattern.width / 2.0),
      radius_v_(pattern.height / 2.0),
      ellipse_(pattern.shape == ScenePattern::Shape::kEllipse),
      covered_(cover > 0) {}

VisibleShape::Place VisibleShape::place(double u, double v, double half_u, double half_v) const {
  if (u + half_u <= low_u_ || u - half_u >= high_u_ || v + half_v <= low_v_ ||
      v - half_v >= high_v_)
    return Place::kOutside;
  if (u - half_u < low_u_ || u + half_u > high_u_ || v - half_v < low_v_ || v + half_v > high_v_)
    return Place::kEdge;
  if (!ellipse_) return Place::kInside;
  const double far_u = (std::abs(u - centre_u_) + half_u) / radius_u_;
  const double far_v = (std::abs(v - centre_v_) + half_v) / radius_v_;
  return far_u * far_u + far_v * far_v <= 1 ? Place::kInside : Place::kEdge;
}

double VisibleShape::share(double u, double v, const Jacobian2& sides) const {
  if (!ellipse_) {
    return share_between(u, low_u_, high_u_, std::abs(sides[0]), std::abs(sides[1])) *
           share_between(v, low_v_, high_v_, std::abs(sides[2]), std::abs(sides[3]));
  }
  // The rectangle's other sides touch the ellipse from outside and take nothing from it.
  const double uncovered = positive_share(u - low_u_, std::abs(sides[0]), std::abs(sides[1]));
  return (covered_ ? uncovered : 1) * ellipse_share(u, v, sides);
}

// The ellipse is 1 − √(p² + q²) > 0, which is linear enough across a cell.
double VisibleShape::ellipse_share(double u, double v, const Jacobian2& sides) const {
  const double p = (u - centre_u_) / radius_u_;
  const double q = (v - centre_v_) / radius_v_;
  const double distance = std::sqrt(p * p + q * q);
  if (distance < 0.5) return 1;
  const double slope_u = p / (distance * radius_u_);
  const double slope_v = q / (distance * radius_v_);
  return positive_share(1 - distance, std::abs(slope_u * sides[0] + slope_v * sides[2]),
                        std::abs(slope_u * sides[1] + slope_v * sides[3]));
}

}  // namespace patternd::synth
