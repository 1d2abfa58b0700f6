// Points and directions between the camera's picture and the plane in millimetres, with their
// uncertainties: a covariance travels through a map by its Jacobian, J·C·Jᵀ.
#pragma once

#include <array>
#include <optional>

#include "calibration/camera_model.h"

namespace patternd {

// Symmetric: variance of x, covariance, covariance, variance of y.
using Covariance2 = std::array<double, 4>;

struct UncertainPoint {
  Point2 point;
  Covariance2 covariance{};
};

[[nodiscard]] Covariance2 carried(const Covariance2& covariance, const Jacobian2& jacobian);

// Each way between input pixels and millimetres on the plane; the model must have a plane with a
// scale. Nothing where the model has no point.
[[nodiscard]] std::optional<UncertainPoint> image_to_mm(const CameraModel& model,
                                                        const UncertainPoint& input_px);
[[nodiscard]] std::optional<UncertainPoint> mm_to_image(const CameraModel& model,
                                                        const UncertainPoint& point_mm);
// The same between output (rectified) pixels and millimetres.
[[nodiscard]] UncertainPoint output_to_mm(const CameraModel& model,
                                          const UncertainPoint& output_px);
[[nodiscard]] Point2 mm_to_output(const CameraModel& model, Point2 point_mm);

// The angle on the plane (clockwise from the plane's x axis, [-180, 180)) of a direction seen at an
// input pixel.
[[nodiscard]] std::optional<double> angle_on_plane_deg(const CameraModel& model, Point2 input_px,
                                                       double angle_deg);

}  // namespace patternd
