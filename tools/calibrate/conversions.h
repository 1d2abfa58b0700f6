// Calibrations of other programs.
#pragma once

#include <string>

#include "calibration/camera_model.h"
#include "pipeline/result.h"

namespace patternd::calibrate {

// OpenCV's FileStorage (YAML, XML or JSON) as its calibration sample writes it: image_width,
// image_height, camera_matrix, distortion_coefficients (4, 5 or 8; with fisheye_model: 1 its four).
[[nodiscard]] Result<CameraModel> from_opencv(const std::string& path);
// The lens alone, in the same keys.
[[nodiscard]] Result<void> to_opencv(const CameraModel& model, const std::string& path);
// ROS camera_info as YAML: plumb_bob, rational_polynomial or equidistant.
[[nodiscard]] Result<CameraModel> from_ros(const std::string& path);

}  // namespace patternd::calibrate
