// Lens distortion on normalised coordinates, in both directions with Jacobians.
//
// Brown–Conrady (and the thesis's unit polynomial, eq. 2.2 and 5.1), with q = x² + y²:
//   radial = (1 + k1 q + k2 q² + k3 q³) / (1 + k4 q + k5 q² + k6 q³)
//   x_d = x·radial + 2 p1 x y + p2 (q + 2x²),   y_d = y·radial + p1 (q + 2y²) + 2 p2 x y
// Fisheye (Kannala–Brandt, OpenCV's form), with θ = atan r, r = √q:
//   θ_d = θ (1 + k1 θ² + k2 θ⁴ + k3 θ⁶ + k4 θ⁸),   (x_d, y_d) = (x, y)·θ_d / r
#pragma once

#include <array>
#include <optional>

#include "calibration/camera_model.h"

namespace patternd {

class LensDistortion {
 public:
  // Takes the model and coefficients of `lens`; its camera matrix is not used.
  explicit LensDistortion(const Lens& lens);

  // Where an undistorted point appears. Nothing at or beyond the radius at which the polynomial
  // folds back. `jacobian`, when given, receives d(distorted)/d(undistorted).
  [[nodiscard]] std::optional<Point2> distort(Point2 undistorted,
                                              Jacobian2* jacobian = nullptr) const;
  // The polynomial itself, folded back or not, for fits: also d(x_d, y_d)/d(coefficient), in the
  // order of Lens::distortion, x and y in turn.
  [[nodiscard]] Point2 evaluate(Point2 undistorted, Jacobian2& by_point,
                                std::array<double, 16>& by_coefficient) const;
  // The point whose image is `distorted`: the root of the radial part by safeguarded Newton, then
  // Newton in the plane, to `kTolerance`. Nothing where no point within the fold has this image.
  [[nodiscard]] std::optional<Point2> undistort(Point2 distorted) const;

  // The undistorted radius at which the radial part stops rising (infinite where it always rises).
  [[nodiscard]] double fold_radius() const { return fold_radius_; }
  // The radial part alone: the distorted radius of an undistorted one.
  [[nodiscard]] double distorted_radius(double radius) const;

  // Residual, in normalised coordinates, that undistort() works down to: 1e-9 px at a focal length
  // of 30,000 px.
  static constexpr double kTolerance = 3e-14;

 private:
  [[nodiscard]] Point2 distort_brown(Point2 p, Jacobian2& jacobian) const;
  [[nodiscard]] Point2 distort_fisheye(Point2 p, Jacobian2& jacobian) const;
  [[nodiscard]] double radial_slope(double radius) const;
  [[nodiscard]] std::optional<double> undistorted_radius(double distorted) const;
  [[nodiscard]] double find_fold_radius() const;

  LensModel model_;
  std::array<double, 3> numerator_{};    // k1 k2 k3
  std::array<double, 3> denominator_{};  // k4 k5 k6
  double p1_ = 0;
  double p2_ = 0;
  std::array<double, 4> fisheye_{};
  double fold_radius_ = 0;
};

}  // namespace patternd
