#include "tests/support/reference_rectify.h"

#include <algorithm>
#include <cmath>

namespace patternd::test {
namespace {

struct Vector3 {
  double x, y, w;
};
Vector3 times(const std::array<double, 9>& h, double x, double y) {
  return {h[0] * x + h[1] * y + h[2], h[3] * x + h[4] * y + h[5], h[6] * x + h[7] * y + h[8]};
}

Point2 brown(const std::array<double, 8>& d, double x, double y) {
  const double r2 = x * x + y * y;
  const double r4 = r2 * r2;
  const double r6 = r4 * r2;
  const double radial =
      (1 + d[0] * r2 + d[1] * r4 + d[4] * r6) / (1 + d[5] * r2 + d[6] * r4 + d[7] * r6);
  return {x * radial + 2 * d[2] * x * y + d[3] * (r2 + 2 * x * x),
          y * radial + d[2] * (r2 + 2 * y * y) + 2 * d[3] * x * y};
}

Point2 fisheye(const std::array<double, 8>& d, double x, double y) {
  const double r = std::sqrt(x * x + y * y);
  if (r == 0) return {0, 0};
  const double a = std::atan(r);
  const double bent = a * (1 + d[0] * std::pow(a, 2) + d[1] * std::pow(a, 4) +
                           d[2] * std::pow(a, 6) + d[3] * std::pow(a, 8));
  return {x * bent / r, y * bent / r};
}

std::optional<Point2> unit_source(const CameraModel& model, double x, double y) {
  const double w = model.output_width();
  const double h = model.output_height();
  const double s = std::max(w, h) / 2;
  const Point2 bent = brown(model.lens.distortion, (x - (w - 1) / 2) / s, (y - (h - 1) / 2) / s);
  Vector3 p{bent.x, bent.y, 1};
  if (model.plane) p = times(model.plane->homography, bent.x, bent.y);
  if (p.w <= 0) return std::nullopt;
  const double in = std::max(model.image_width, model.image_height) / 2.0;
  return Point2{p.x / p.w * in + (model.image_width - 1) / 2.0,
                p.y / p.w * in + (model.image_height - 1) / 2.0};
}

double pixel(const ImageView& input, int x, int y) {
  if (input.format == PixelFormat::kGray8) return input.row<std::uint8_t>(y)[x];
  if (input.format == PixelFormat::kGray16) return input.row<std::uint16_t>(y)[x];
  return static_cast<double>(input.row<float>(y)[x]);
}

}  // namespace

std::optional<Point2> reference_source(const CameraModel& model, double x, double y) {
  if (model.lens.model == LensModel::kUnitPolynomial) return unit_source(model, x, y);
  Vector3 p{x, y, 1};
  if (model.plane) p = times(model.plane->homography, x, y);
  if (p.w <= 0) return std::nullopt;
  const Point2 undistorted{p.x / p.w, p.y / p.w};
  if (model.lens.model == LensModel::kNone) return undistorted;
  const auto& k = model.lens.camera_matrix;
  const double xn = (undistorted.x - k[2]) / k[0];
  const double yn = (undistorted.y - k[5]) / k[4];
  const Point2 bent = model.lens.model == LensModel::kFisheye
                          ? fisheye(model.lens.distortion, xn, yn)
                          : brown(model.lens.distortion, xn, yn);
  return Point2{bent.x * k[0] + k[2], bent.y * k[4] + k[5]};
}

double bilinear(const ImageView& input, double x, double y) {
  const int x0 = std::min(static_cast<int>(x), std::max(input.width - 2, 0));
  const int y0 = std::min(static_cast<int>(y), std::max(input.height - 2, 0));
  const int x1 = std::min(x0 + 1, input.width - 1);
  const int y1 = std::min(y0 + 1, input.height - 1);
  const double fx = x - x0;
  const double fy = y - y0;
  return (pixel(input, x0, y0) * (1 - fx) + pixel(input, x1, y0) * fx) * (1 - fy) +
         (pixel(input, x0, y1) * (1 - fx) + pixel(input, x1, y1) * fx) * fy;
}

std::optional<double> reference_pixel(const CameraModel& model, const ImageView& input, int x,
                                      int y) {
  const std::optional<Point2> p = reference_source(model, x, y);
  if (!p || !(p->x >= 0 && p->x <= input.width - 1 && p->y >= 0 && p->y <= input.height - 1)) {
    return std::nullopt;
  }
  return bilinear(input, p->x, p->y);
}

CameraModel tilted_plane(int size, bool turned) {
  CameraModel model;
  model.image_width = size;
  model.image_height = size;
  model.lens.model = LensModel::kBrownConrady;
  const double c = (size - 1) / 2.0;
  const double s = size / 2.0;
  model.lens.camera_matrix = {s, 0, c, 0, s, c, 0, 0, 1};
  model.lens.distortion = {0.04, 0.01, 0, 0, 0, 0, 0, 0};
  // Output pixel -> (X, Y), turned or not; (X, Y, 1) -> (2.1 X, 2.1 Y cos 45°, 3 + Y sin 45°);
  // -> undistorted pixel, which is s·(x, y) + c.
  const double half = std::sqrt(0.5);
  const double xx = turned ? 0 : 1 / s;
  const double xy = turned ? 1 / s : 0;
  const double yx = turned ? -1 / s : 0;
  const double yy = turned ? 0 : 1 / s;
  const double x0 = -c * (xx + xy);
  const double y0 = -c * (yx + yy);
  const double w[3] = {half * yx, half * yy, 3 + half * y0};
  Plane plane;
  plane.homography = {s * 2.1 * xx + c * w[0],
                      s * 2.1 * xy + c * w[1],
                      s * 2.1 * x0 + c * w[2],
                      s * 2.1 * half * yx + c * w[0],
                      s * 2.1 * half * yy + c * w[1],
                      s * 2.1 * half * y0 + c * w[2],
                      w[0],
                      w[1],
                      w[2]};
  plane.width = size;
  plane.height = size;
  model.plane = plane;
  return model;
}

}  // namespace patternd::test
