#include "tools/synth/plane_camera.h"

#include <cmath>

#include "calibration/matrix3.h"

namespace patternd::synth {
namespace {

// Twice the signed area of a triangle; positive where it turns clockwise on the screen.
double turn(Point2 a, Point2 b, Point2 c) {
  return (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
}

}  // namespace

Result<std::array<double, 9>> square_to_corners(const Corners& corners) {
  for (std::size_t i = 0; i < 4; ++i) {
    if (!(turn(corners[i], corners[(i + 1) % 4], corners[(i + 2) % 4]) > 0)) {
      return fail(ErrorCode::kInvalidArgument,
                  "corners: not a convex four-sided figure; give upper left, upper right, lower "
                  "right, lower left");
    }
  }
  const auto& [p0, p1, p2, p3] = corners;
  const Point2 d1{p1.x - p2.x, p1.y - p2.y};
  const Point2 d2{p3.x - p2.x, p3.y - p2.y};
  const Point2 sum{p0.x - p1.x + p2.x - p3.x, p0.y - p1.y + p2.y - p3.y};
  const double area = d1.x * d2.y - d2.x * d1.y;  // not 0: the corner at p2 turns
  const double g = (sum.x * d2.y - d2.x * sum.y) / area;
  const double h = (d1.x * sum.y - sum.x * d1.y) / area;
  return std::array<double, 9>{p1.x - p0.x + g * p1.x,
                               p3.x - p0.x + h * p3.x,
                               p0.x,
                               p1.y - p0.y + g * p1.y,
                               p3.y - p0.y + h * p3.y,
                               p0.y,
                               g,
                               h,
                               1};
}

Result<CameraModel> camera_from_corners(int image_width, int image_height, const Lens& lens,
                                        const Corners& raw_corners, int plane_width,
                                        int plane_height) {
  CameraModel camera;
  camera.image_width = image_width;
  camera.image_height = image_height;
  camera.lens = lens;
  if (plane_width < 2 || plane_height < 2) {
    return fail(ErrorCode::kInvalidArgument, "plane: " + std::to_string(plane_width) + "x" +
                                                 std::to_string(plane_height) +
                                                 " pixels; both sides must be 2 or more");
  }
  if (auto ok = check_camera_model(camera, "camera"); !ok) return tl::make_unexpected(ok.error());
  Corners undistorted;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto point = camera.to_output(raw_corners[i]);
    if (!point) {
      return fail(ErrorCode::kInvalidArgument,
                  "corners: number " + std::to_string(i + 1) +
                      " lies where the lens shows nothing (its polynomial has folded back)");
    }
    undistorted[i] = *point;
  }
  const auto square = square_to_corners(undistorted);
  if (!square) return tl::make_unexpected(square.error());
  Plane plane;
  plane.width = plane_width;
  plane.height = plane_height;
  plane.homography =
      product(*square, {1.0 / (plane_width - 1), 0, 0, 0, 1.0 / (plane_height - 1), 0, 0, 0, 1});
  camera.plane = plane;
  if (auto ok = check_camera_model(camera, "camera"); !ok) return tl::make_unexpected(ok.error());
  return camera;
}

CameraModel tilted_plane(int size, bool turned) {
  CameraModel model;
  model.image_width = size;
  model.image_height = size;
  const double c = (size - 1) / 2.0;
  const double s = size / 2.0;
  model.lens.model = LensModel::kBrownConrady;
  model.lens.camera_matrix = {s, 0, c, 0, s, c, 0, 0, 1};
  model.lens.distortion = {0.04, 0.01};
  const Matrix3 to_unit = {1 / s, 0, -c / s, 0, 1 / s, -c / s, 0, 0, 1};
  const Matrix3 quarter = {0, 1, 0, -1, 0, 0, 0, 0, 1};
  const double half = std::sqrt(0.5);
  const Matrix3 view = {2.1, 0, 0, 0, 2.1 * half, 0, 0, half, 3};
  const Matrix3 to_pixel = {s, 0, c, 0, s, c, 0, 0, 1};
  const Matrix3 plane = turned ? product(quarter, to_unit) : to_unit;
  model.plane = Plane{product(to_pixel, product(view, plane)), size, size, 0, {}};
  return model;
}

Result<CameraModel> moved_camera(const CameraModel& camera, Point2 shift_px) {
  if (!camera.plane) {
    return fail(ErrorCode::kInvalidArgument,
                "a camera that looks at no plane cannot be moved; give one with a plane");
  }
  CameraModel moved = camera;
  Matrix3& h = moved.plane->homography;
  for (std::size_t row = 0; row < 3; ++row)
    h[3 * row + 2] += h[3 * row] * shift_px.x + h[3 * row + 1] * shift_px.y;
  if (auto ok = check_camera_model(moved, "the moved camera"); !ok)
    return tl::make_unexpected(ok.error());
  return moved;
}

}  // namespace patternd::synth
