// The rectified picture of a plane: which part of the plane, and how fine.
#pragma once

#include <optional>
#include <vector>

#include "calibration/camera_model.h"
#include "calibration/matrix3.h"
#include "pipeline/result.h"

namespace patternd {

// What the user fixes; the rest is chosen.
struct PlaneWishes {
  std::optional<double> mm_per_px;
  std::optional<Point2> size_px;    // width, height
  std::optional<Point2> origin_px;  // the output pixel that is (0, 0) mm
};

// `homography`: millimetres on the plane to undistorted pixels; `points_mm`: the points that it was
// fitted to. Unless told otherwise the output shows what the camera sees of the plane, up to the
// points' own extent beyond them on each side, and less where the lens folds back there; one output
// pixel is as wide as one input pixel where the camera sees the points best, so that no detail is
// lost and none invented there; sides end at 4096 pixels (coarser then). Fails where the result
// would not pass check_camera_model.
[[nodiscard]] Result<CameraModel> with_plane(const CameraModel& lens, const Matrix3& homography,
                                             const std::vector<Point2>& points_mm,
                                             const PlaneWishes& wishes);

}  // namespace patternd
