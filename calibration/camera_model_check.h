// What can be wrong with a camera model, by the key that it is wrong at.
#pragma once

#include <string>
#include <vector>

#include "calibration/camera_model.h"

namespace patternd {

// `key` as in the calibration file ("plane.homography"), what is wrong, and what is accepted.
struct ModelFault {
  std::string key;
  std::string wrong;
  std::string accepted;
};

// Everything that load_camera_model's comment lists, in the file's order; empty where the model is
// sound. A fault that hides others (a size of zero) is reported alone.
[[nodiscard]] std::vector<ModelFault> find_faults(const CameraModel& model);

// The names of a lens model's coefficients, in the order of Lens::distortion: "k1, k2, p1, p2, k3".
[[nodiscard]] const std::vector<std::string>& coefficient_names(LensModel model);

}  // namespace patternd
