#include "calibration/camera_model.h"

#include "calibration/camera_map.h"

namespace patternd {

const char* name_of(LensModel model) {
  switch (model) {
    case LensModel::kNone:
      return "none";
    case LensModel::kBrownConrady:
      return "brown_conrady";
    case LensModel::kFisheye:
      return "fisheye";
    case LensModel::kUnitPolynomial:
      return "unit_polynomial";
  }
  return "unknown";
}

std::optional<Point2> CameraModel::to_input(Point2 output_px, Jacobian2* jacobian) const {
  return CameraMap(*this).to_input(output_px, jacobian);
}

std::optional<Point2> CameraModel::to_output(Point2 input_px, Jacobian2* jacobian) const {
  return CameraMap(*this).to_output(input_px, jacobian);
}

Point2 CameraModel::to_mm(Point2 output_px) const {
  const Plane& p = plane.value();
  return {(output_px.x - p.origin_px.x) * p.mm_per_px, (output_px.y - p.origin_px.y) * p.mm_per_px};
}

}  // namespace patternd
