// A camera made from what one can see: where the corners of a flat rectangle land in its picture
// (T5).
#pragma once

#include <array>

#include "calibration/camera_model.h"
#include "pipeline/result.h"

namespace patternd::synth {

// Corners of a picture or rectangle in this order: upper left, upper right, lower right, lower
// left.
using Corners = std::array<Point2, 4>;

// The homography that takes the unit square's corners (0,0), (1,0), (1,1), (0,1) to `corners`, and
// whose third coordinate is positive over the square; kInvalidArgument where they are not those of
// a convex quadrilateral in that order. Source: P. Heckbert, Fundamentals of Texture Mapping,
// 1989, 2.2.3.
[[nodiscard]] Result<std::array<double, 9>> square_to_corners(const Corners& corners);

// The camera with this lens whose picture shows the corner pixels' centres of a width×height plane
// at `raw_corners` (pixels of the raw picture, lens distortion included: they are undistorted by
// Newton iteration first). Checked like a calibration file.
[[nodiscard]] Result<CameraModel> camera_from_corners(int image_width, int image_height,
                                                      const Lens& lens, const Corners& raw_corners,
                                                      int plane_width, int plane_height);

// The geometry that speed figures are quoted for: a plane tilted by 45 degrees at distance 3, focal
// factor 2.1, polynomial 1 + 0.04 r² + 0.01 r⁴, `size` square. `turned`: the plane turned by 90
// degrees, so that neighbouring output pixels read different input rows (T7).
[[nodiscard]] CameraModel tilted_plane(int size, bool turned);

// The same camera after a knock that lets everything on the plane seem `shift_px` plane pixels
// farther right and down in the picture rectified by the old calibration. kInvalidArgument where
// `camera` has no plane.
[[nodiscard]] Result<CameraModel> moved_camera(const CameraModel& camera, Point2 shift_px);

}  // namespace patternd::synth
