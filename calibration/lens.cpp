#include "calibration/lens.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "calibration/polynomial.h"

namespace patternd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// 1 + c0 q + c1 q² + c2 q³ and its derivative by q.
struct CubicValue {
  double value;
  double slope;
};
CubicValue cubic(const std::array<double, 3>& c, double q) {
  return {1 + q * (c[0] + q * (c[1] + q * c[2])), c[0] + q * (2 * c[1] + q * 3 * c[2])};
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> result(a.size() + b.size() - 1, 0.0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) result[i + j] += a[i] * b[j];
  }
  return result;
}

double determinant(const Jacobian2& j) { return j[0] * j[3] - j[1] * j[2]; }

}  // namespace

LensDistortion::LensDistortion(const Lens& lens) : model_(lens.model) {
  const std::array<double, 8>& d = lens.distortion;
  switch (model_) {
    case LensModel::kNone:
      break;
    case LensModel::kBrownConrady:
      denominator_ = {d[5], d[6], d[7]};
      [[fallthrough]];
    case LensModel::kUnitPolynomial:
      numerator_ = {d[0], d[1], d[4]};
      p1_ = d[2];
      p2_ = d[3];
      break;
    case LensModel::kFisheye:
      fisheye_ = {d[0], d[1], d[2], d[3]};
      break;
  }
  fold_radius_ = find_fold_radius();
}

double LensDistortion::find_fold_radius() const {
  if (model_ == LensModel::kNone) return kInfinity;
  if (model_ == LensModel::kFisheye) {
    const auto roots =
        positive_roots({1, 3 * fisheye_[0], 5 * fisheye_[1], 7 * fisheye_[2], 9 * fisheye_[3]});
    if (roots.empty()) return kInfinity;
    const double angle = std::sqrt(roots.front());
    return angle < std::acos(0.0) ? std::tan(angle) : kInfinity;
  }
  // d(r N/D)/dr has the sign of N D + 2q (N' D − N D'), q = r²; a root of D is a pole.
  const std::vector<double> n{1, numerator_[0], numerator_[1], numerator_[2]};
  const std::vector<double> d{1, denominator_[0], denominator_[1], denominator_[2]};
  const std::vector<double> n_slope{n[1], 2 * n[2], 3 * n[3]};
  const std::vector<double> d_slope{d[1], 2 * d[2], 3 * d[3]};
  std::vector<double> sign = product(n, d);
  const std::vector<double> plus = product(n_slope, d);
  const std::vector<double> minus = product(n, d_slope);
  for (std::size_t i = 0; i < plus.size(); ++i) sign[i + 1] += 2 * (plus[i] - minus[i]);
  double q = kInfinity;
  for (const auto& roots : {positive_roots(sign), positive_roots(d)}) {
    if (!roots.empty()) q = std::min(q, roots.front());
  }
  return std::sqrt(q);
}

double LensDistortion::distorted_radius(double radius) const {
  if (model_ == LensModel::kFisheye) {
    const double angle = std::atan(radius);
    const double t = angle * angle;
    return angle *
           (1 + t * (fisheye_[0] + t * (fisheye_[1] + t * (fisheye_[2] + t * fisheye_[3]))));
  }
  const double q = radius * radius;
  return radius * cubic(numerator_, q).value / cubic(denominator_, q).value;
}

double LensDistortion::radial_slope(double radius) const {
  if (model_ == LensModel::kFisheye) {
    const double t = std::atan(radius) * std::atan(radius);
    const double slope =
        1 +
        t * (3 * fisheye_[0] + t * (5 * fisheye_[1] + t * (7 * fisheye_[2] + t * 9 * fisheye_[3])));
    return slope / (1 + radius * radius);
  }
  const double q = radius * radius;
  const CubicValue n = cubic(numerator_, q);
  const CubicValue d = cubic(denominator_, q);
  return n.value / d.value + 2 * q * (n.slope * d.value - n.value * d.slope) / (d.value * d.value);
}

Point2 LensDistortion::distort_brown(Point2 p, Jacobian2& jacobian) const {
  const double q = p.x * p.x + p.y * p.y;
  const CubicValue n = cubic(numerator_, q);
  const CubicValue d = cubic(denominator_, q);
  const double radial = n.value / d.value;
  const double twice_slope = 2 * (n.slope * d.value - n.value * d.slope) / (d.value * d.value);
  const double xy = p.x * p.y;
  jacobian = {radial + p.x * p.x * twice_slope + 2 * p1_ * p.y + 6 * p2_ * p.x,
              xy * twice_slope + 2 * p1_ * p.x + 2 * p2_ * p.y,
              xy * twice_slope + 2 * p1_ * p.x + 2 * p2_ * p.y,
              radial + p.y * p.y * twice_slope + 6 * p1_ * p.y + 2 * p2_ * p.x};
  return {p.x * radial + 2 * p1_ * xy + p2_ * (q + 2 * p.x * p.x),
          p.y * radial + p1_ * (q + 2 * p.y * p.y) + 2 * p2_ * xy};
}

Point2 LensDistortion::distort_fisheye(Point2 p, Jacobian2& jacobian) const {
  const double radius = std::hypot(p.x, p.y);
  if (radius < 1e-8) {  // θ_d / r = 1 − r²/3 + k1 r² …: 1 to the last bit here
    jacobian = {1, 0, 0, 1};
    return p;
  }
  const double factor = distorted_radius(radius) / radius;
  const double c = p.x / radius;
  const double s = p.y / radius;
  const double along = radial_slope(radius) - factor;
  jacobian = {factor + c * c * along, c * s * along, c * s * along, factor + s * s * along};
  return {p.x * factor, p.y * factor};
}

std::optional<Point2> LensDistortion::distort(Point2 undistorted, Jacobian2* jacobian) const {
  Jacobian2 slopes{1, 0, 0, 1};
  Point2 result = undistorted;
  if (model_ != LensModel::kNone) {
    if (!(std::hypot(undistorted.x, undistorted.y) < fold_radius_)) return std::nullopt;
    result = model_ == LensModel::kFisheye ? distort_fisheye(undistorted, slopes)
                                           : distort_brown(undistorted, slopes);
    // Tangential terms can fold it a little earlier than the radial part alone.
    if (!(determinant(slopes) > 0)) return std::nullopt;
  }
  if (jacobian != nullptr) *jacobian = slopes;
  return result;
}

Point2 LensDistortion::evaluate(Point2 p, Jacobian2& by_point,
                                std::array<double, 16>& by_coefficient) const {
  by_coefficient = {};
  by_point = {1, 0, 0, 1};
  const double q = p.x * p.x + p.y * p.y;
  if (model_ == LensModel::kNone) return p;
  if (model_ == LensModel::kFisheye) {
    const double radius = std::sqrt(q);
    const double angle = std::atan(radius);
    double power = radius > 0 ? angle * angle * angle / radius : 0;
    for (std::size_t i = 0; i < 4; ++i, power *= angle * angle) {
      by_coefficient[2 * i] = p.x * power;
      by_coefficient[2 * i + 1] = p.y * power;
    }
    return distort_fisheye(p, by_point);
  }
  const double d = cubic(denominator_, q).value;
  const double n = cubic(numerator_, q).value;
  const auto set = [&](std::size_t i, double dx, double dy) {
    by_coefficient[2 * i] = dx;
    by_coefficient[2 * i + 1] = dy;
  };
  double power = q;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{4}}) {  // k1 k2 k3
    const std::size_t below = i == 4 ? 7 : i + 5;                                 // k4 k5 k6
    set(i, p.x * power / d, p.y * power / d);
    set(below, -p.x * n * power / (d * d), -p.y * n * power / (d * d));
    power *= q;
  }
  set(2, 2 * p.x * p.y, q + 2 * p.y * p.y);
  set(3, q + 2 * p.x * p.x, 2 * p.x * p.y);
  return distort_brown(p, by_point);
}

std::optional<double> LensDistortion::undistorted_radius(double distorted) const {
  double low = 0;
  double high = fold_radius_;
  if (!std::isfinite(high)) {
    high = std::max(1.0, distorted);
    while (distorted_radius(high) < distorted) {
      if (high > 1e8) return std::nullopt;
      high *= 2;
    }
  }
  double radius = std::min(distorted, high);
  for (int i = 0; i < 100; ++i) {
    const double excess = distorted_radius(radius) - distorted;
    (excess > 0 ? high : low) = radius;
    if (std::abs(excess) < kTolerance || high - low < 1e-15 * high) break;
    double next = radius - excess / radial_slope(radius);
    if (!(next > low && next < high)) next = (low + high) / 2;
    radius = next;
  }
  return radius;
}

std::optional<Point2> LensDistortion::undistort(Point2 distorted) const {
  if (model_ == LensModel::kNone) return distorted;
  const double distorted_r = std::hypot(distorted.x, distorted.y);
  if (!std::isfinite(distorted_r)) return std::nullopt;
  const std::optional<double> start = undistorted_radius(distorted_r);
  if (!start) return std::nullopt;
  // Just within the fold where the radial part alone has no root; tangential terms may give one.
  const double radius = std::min(*start, fold_radius_ * (1 - 1e-6));
  const double scale = distorted_r > 0 ? radius / distorted_r : 1.0;
  Point2 p{distorted.x * scale, distorted.y * scale};

  double best = kInfinity;
  Point2 best_p = p;
  Point2 step{};
  for (int i = 0; i < 60; ++i) {
    Jacobian2 j{};
    const std::optional<Point2> image = distort(p, &j);
    if (!image && best == kInfinity) {  // the start lies past the fold: towards the axis
      p = {p.x * 0.97, p.y * 0.97};
      continue;
    }
    const double dx = image ? image->x - distorted.x : kInfinity;
    const double dy = image ? image->y - distorted.y : kInfinity;
    const double residual = std::hypot(dx, dy);
    if (residual < best) {
      best = residual;
      best_p = p;
      const double det = determinant(j);
      step = {(j[3] * dx - j[1] * dy) / det, (j[0] * dy - j[2] * dx) / det};
    } else {
      step = {step.x / 2, step.y / 2};  // past the fold or uphill: half the step
    }
    if (best <= kTolerance / 100 || std::hypot(step.x, step.y) < 1e-16) break;
    p = {best_p.x - step.x, best_p.y - step.y};
  }
  if (!(best <= kTolerance * std::max(1.0, distorted_r))) return std::nullopt;
  return best_p;
}

}  // namespace patternd
