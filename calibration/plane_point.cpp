#include "calibration/plane_point.h"

#include <cmath>

#include "calibration/matrix3.h"

namespace patternd {
namespace {

const double kDegree = std::acos(-1.0) / 180;

}  // namespace

Covariance2 carried(const Covariance2& c, const Jacobian2& j) {
  const Jacobian2 left = product(j, Jacobian2(c));
  return product(left, Jacobian2{j[0], j[2], j[1], j[3]});
}

UncertainPoint output_to_mm(const CameraModel& model, const UncertainPoint& output_px) {
  const double scale = model.plane.value().mm_per_px;
  return {model.to_mm(output_px.point), carried(output_px.covariance, {scale, 0, 0, scale})};
}

Point2 mm_to_output(const CameraModel& model, Point2 point_mm) {
  const Plane& plane = model.plane.value();
  return {point_mm.x / plane.mm_per_px + plane.origin_px.x,
          point_mm.y / plane.mm_per_px + plane.origin_px.y};
}

std::optional<UncertainPoint> image_to_mm(const CameraModel& model,
                                          const UncertainPoint& input_px) {
  Jacobian2 j{};
  const auto output = model.to_output(input_px.point, &j);
  if (!output) return std::nullopt;
  return output_to_mm(model, {*output, carried(input_px.covariance, j)});
}

std::optional<UncertainPoint> mm_to_image(const CameraModel& model,
                                          const UncertainPoint& point_mm) {
  const double scale = 1 / model.plane.value().mm_per_px;
  Jacobian2 j{};
  const auto input = model.to_input(mm_to_output(model, point_mm.point), &j);
  if (!input) return std::nullopt;
  return UncertainPoint{*input,
                        carried(point_mm.covariance, product(j, Jacobian2{scale, 0, 0, scale}))};
}

std::optional<double> angle_on_plane_deg(const CameraModel& model, Point2 input_px,
                                         double angle_deg) {
  Jacobian2 j{};
  if (!model.to_output(input_px, &j)) return std::nullopt;
  const double c = std::cos(angle_deg * kDegree);
  const double s = std::sin(angle_deg * kDegree);
  const double angle = std::atan2(j[2] * c + j[3] * s, j[0] * c + j[1] * s) / kDegree;
  return angle >= 180 ? angle - 360 : angle;
}

}  // namespace patternd
