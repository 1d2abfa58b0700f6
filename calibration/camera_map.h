// A camera model made ready for many points: the chain of its steps, worked out once.
//
//   brown_conrady, fisheye, none:  output px → K⁻¹·H → distort → K → input px
//   unit_polynomial:               output px → normalise → distort → S·H → input px
// (K the camera matrix, the identity for `none`; S from the input's normalised coordinates to its
// pixels.)
#pragma once

#include <optional>

#include "calibration/camera_model.h"
#include "calibration/lens.h"
#include "calibration/matrix3.h"

namespace patternd {

class CameraMap {
 public:
  explicit CameraMap(const CameraModel& model);

  // As CameraModel::to_input and to_output.
  [[nodiscard]] std::optional<Point2> to_input(Point2 output_px,
                                               Jacobian2* jacobian = nullptr) const;
  [[nodiscard]] std::optional<Point2> to_output(Point2 input_px,
                                                Jacobian2* jacobian = nullptr) const;

  // For the checks: the homography's third coordinate at an output pixel, whose sign is the side of
  // the camera (nothing where the lens, if it comes first, has no point) …
  [[nodiscard]] std::optional<double> depth(Point2 output_px) const;
  // … whether the lens has folded back at this output pixel, and where the fold in its direction
  // appears in the input picture (nothing where it has not folded back).
  [[nodiscard]] std::optional<Point2> fold_in_input(Point2 output_px) const;

 private:
  // x·scale + offset, an axis each.
  struct Affine {
    Point2 scale{1, 1};
    Point2 offset{0, 0};
    [[nodiscard]] Point2 apply(Point2 p) const {
      return {p.x * scale.x + offset.x, p.y * scale.y + offset.y};
    }
    [[nodiscard]] Point2 invert(Point2 p) const {
      return {(p.x - offset.x) / scale.x, (p.y - offset.y) / scale.y};
    }
  };
  [[nodiscard]] std::optional<Point2> before_lens(Point2 output_px, Jacobian2& jacobian) const;
  [[nodiscard]] std::optional<Point2> after_lens(Point2 distorted, Jacobian2& jacobian) const;
  [[nodiscard]] std::optional<Point2> undo_homography(Point2 image) const;

  bool lens_first_ = false;
  Affine affine_;  // of the side where the homography is not
  Matrix3 homography_ = kIdentity3;
  Matrix3 inverse_ = kIdentity3;
  bool invertible_ = true;
  LensDistortion lens_;
};

}  // namespace patternd
