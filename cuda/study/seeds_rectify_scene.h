// The picture and camera that the rectification studies share, and what the CPU makes of them.
#pragma once

#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "cuda/device.h"  // before the parameters, whose kWarpSize it has as an attribute too
#include "cuda/study/study_parameters.h"
#include "pipeline/image.h"

namespace patternd::cuda {

struct RectifyScene {
  CameraModel model;
  StudyCamera camera{};  // the same for the study's kernels
  Image picture;         // kGrayF32, 0..1
  // By output pixel: the value, kOutside, or kUndecided (the source lies so near the edge that
  // single precision may see it on the other side).
  std::vector<float> expected;
  static constexpr float kOutside = -1;
  static constexpr float kUndecided = -2;
};

// A Brown–Conrady model with a plane, as far as k1 and k2, for the study's kernels.
[[nodiscard]] StudyCamera study_camera(const CameraModel& model);

// A plane tilted by 45 degrees at distance 3, focal factor 2.1, polynomial 1 + 0.04 r² + 0.01 r⁴,
// `size` square; `turned` by 90 degrees, so that neighbouring output pixels read different rows
// (T7). The expected values come from double-precision positions and interpolation.
[[nodiscard]] RectifyScene make_rectify_scene(int size, bool turned);

// The largest deviation of `output` from what is expected, in units of the picture's range. Throws
// (StudyFailure, naming `what` and the pixel) where it is more than one grey level of 8 bit.
[[nodiscard]] double check_rectified(const RectifyScene& scene, const ImageView& output,
                                     const std::string& what);

}  // namespace patternd::cuda
