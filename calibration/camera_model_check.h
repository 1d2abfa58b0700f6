// What can be wrong with a camera model, by the key that it is wrong at.
#pragma once

#include <string>
#include <vector>

#include "calibration/camera_model.h"

namespace patternd {

// Beyond these a number is no camera's but another program's mistake, and products of it would
// overflow. Bounds count as inside.
inline constexpr int kMaxModelSide = 32767;  // pipeline/image.h's kMaxImageSide
inline constexpr double kMinFocalPx = 0.1;
inline constexpr double kMaxFocalPx = 1e7;
inline constexpr double kMaxPrincipalPx = 1e6;  // either way from the picture's first pixel
inline constexpr double kMaxCoefficient = 1e9;  // of a lens, either sign
inline constexpr double kMaxHomography = 1e12;  // of its nine numbers, either sign
inline constexpr double kMaxMmPerPx = 1e6;
inline constexpr double kMaxOriginPx = 1e9;
inline constexpr double kMaxBorder = 1e9;

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
