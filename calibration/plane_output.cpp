#include "calibration/plane_output.h"

#include <algorithm>
#include <cmath>

#include "calibration/camera_map.h"

namespace patternd {
namespace {

constexpr double kMostSide = 4096;
constexpr double kOutlineStep = 8;  // input pixels

struct Box {
  double left = 1e300;
  double top = 1e300;
  double right = -1e300;
  double bottom = -1e300;
  void add(Point2 p) {
    left = std::min(left, p.x);
    right = std::max(right, p.x);
    top = std::min(top, p.y);
    bottom = std::max(bottom, p.y);
  }
};

// A model whose output pixels are millimetres.
CameraModel in_millimetres(const CameraModel& lens, const Matrix3& homography) {
  CameraModel model = lens;
  model.plane = Plane{homography, lens.image_width, lens.image_height, 1, {}};
  return model;
}

// What of the plane lies in the picture, within the points' extent beyond the points.
Box visible_part(const CameraModel& millimetres, const std::vector<Point2>& points_mm) {
  const CameraMap map(millimetres);
  Box points;
  for (const Point2& p : points_mm) points.add(p);
  const double across = points.right - points.left;
  const double down = points.bottom - points.top;
  const Box most{points.left - across, points.top - down, points.right + across,
                 points.bottom + down};
  Box seen = points;
  const double w = millimetres.image_width - 1;
  const double h = millimetres.image_height - 1;
  const auto add = [&](double x, double y) {
    if (const auto mm = map.to_output({x, y})) {
      seen.add(
          {std::clamp(mm->x, most.left, most.right), std::clamp(mm->y, most.top, most.bottom)});
    }
  };
  for (double x = 0; x <= w; x += kOutlineStep) {
    for (double y = 0; y <= h; y += kOutlineStep) add(x, y);
  }
  add(w, h);
  return seen;
}

// Input pixels a millimetre where there are most, in the direction that has most.
double finest(const CameraModel& millimetres, const std::vector<Point2>& points_mm) {
  double most = 0;
  for (const Point2& p : points_mm) {
    Jacobian2 j{};
    if (!millimetres.to_input(p, &j)) continue;
    // The larger singular value.
    const double sum = j[0] * j[0] + j[1] * j[1] + j[2] * j[2] + j[3] * j[3];
    const double det = j[0] * j[3] - j[1] * j[2];
    most =
        std::max(most, std::sqrt((sum + std::sqrt(std::max(0.0, sum * sum - 4 * det * det))) / 2));
  }
  return most;
}

Box between(const Box& inner, const Box& outer, double share) {
  const auto mix = [&](double a, double b) { return a + (b - a) * share; };
  return {mix(inner.left, outer.left), mix(inner.top, outer.top), mix(inner.right, outer.right),
          mix(inner.bottom, outer.bottom)};
}

CameraModel showing(const CameraModel& lens, const Matrix3& homography, const Box& box,
                    double pixels_per_mm, const PlaneWishes& wishes) {
  double mm_per_px = wishes.mm_per_px.value_or(1 / pixels_per_mm);
  if (!wishes.mm_per_px) {
    mm_per_px = std::max(
        {mm_per_px, (box.right - box.left) / kMostSide, (box.bottom - box.top) / kMostSide});
  }
  const Point2 origin = wishes.origin_px.value_or(
      Point2{std::round(-box.left / mm_per_px), std::round(-box.top / mm_per_px)});
  const Point2 size =
      wishes.size_px.value_or(Point2{std::ceil((box.right - box.left) / mm_per_px) + 1,
                                     std::ceil((box.bottom - box.top) / mm_per_px) + 1});
  Plane plane;
  plane.homography = product(homography, Matrix3{mm_per_px, 0, -origin.x * mm_per_px, 0, mm_per_px,
                                                 -origin.y * mm_per_px, 0, 0, 1});
  // The last number 1, as most programs print a homography; its sign stays.
  if (const double scale = std::abs(plane.homography[8]); scale > 0) {
    for (double& v : plane.homography) v /= scale;
  }
  plane.width = static_cast<int>(std::clamp(size.x, 1.0, 32767.0));
  plane.height = static_cast<int>(std::clamp(size.y, 1.0, 32767.0));
  plane.mm_per_px = mm_per_px;
  plane.origin_px = origin;
  CameraModel model = lens;
  model.plane = plane;
  return model;
}

}  // namespace

Result<CameraModel> with_plane(const CameraModel& lens, const Matrix3& homography,
                               const std::vector<Point2>& points_mm, const PlaneWishes& wishes) {
  const CameraModel millimetres = in_millimetres(lens, homography);
  const double pixels_per_mm = finest(millimetres, points_mm);
  if (!(pixels_per_mm > 0)) {
    return fail(ErrorCode::kInvalidArgument, "the plane's points don't appear in the picture");
  }
  Box points;
  for (const Point2& p : points_mm) points.add(p);
  const Box seen = visible_part(millimetres, points_mm);
  // A lens fitted with few points in the corners may fold back just outside them, and a tilted
  // plane reaches the horizon: then less is shown, in steps down to the points' own extent.
  CameraModel model;
  Result<void> sound;
  for (double share = 1; share > 0.01; share *= 0.8) {
    model = showing(lens, homography, between(points, seen, share), pixels_per_mm, wishes);
    sound = check_camera_model(model, "the plane");
    if (sound || wishes.size_px) break;
  }
  if (!sound) return tl::make_unexpected(sound.error());
  return model;
}

}  // namespace patternd
