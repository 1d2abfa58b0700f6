#include "calibration/camera_map.h"

#include <algorithm>
#include <cmath>

namespace patternd {
namespace {

constexpr Jacobian2 kIdentity2 = {1, 0, 0, 1};

double half_side(int width, int height) { return std::max(width, height) / 2.0; }

}  // namespace

CameraMap::CameraMap(const CameraModel& model) : lens_(model.lens) {
  const Matrix3 plane = model.plane ? model.plane->homography : kIdentity3;
  if (model.lens.model == LensModel::kUnitPolynomial) {
    lens_first_ = true;
    const double out = half_side(model.output_width(), model.output_height());
    affine_.scale = {1 / out, 1 / out};
    affine_.offset = {-(model.output_width() - 1) / 2.0 / out,
                      -(model.output_height() - 1) / 2.0 / out};
    const double in = half_side(model.image_width, model.image_height);
    homography_ = product(Matrix3{in, 0, (model.image_width - 1) / 2.0, 0, in,
                                  (model.image_height - 1) / 2.0, 0, 0, 1},
                          plane);
  } else {
    homography_ = plane;
    if (model.lens.model != LensModel::kNone) {
      const std::array<double, 9>& k = model.lens.camera_matrix;
      affine_.scale = {k[0], k[4]};
      affine_.offset = {k[2], k[5]};
      homography_ =
          product(Matrix3{1 / k[0], 0, -k[2] / k[0], 0, 1 / k[4], -k[5] / k[4], 0, 0, 1}, plane);
    }
  }
  const std::optional<Matrix3> inverted = inverse(homography_);
  invertible_ = inverted.has_value();
  inverse_ = inverted.value_or(kIdentity3);
}

std::optional<Point2> CameraMap::before_lens(Point2 output_px, Jacobian2& jacobian) const {
  if (!lens_first_) return apply(homography_, output_px, &jacobian);
  jacobian = {affine_.scale.x, 0, 0, affine_.scale.y};
  return affine_.apply(output_px);
}

std::optional<Point2> CameraMap::after_lens(Point2 distorted, Jacobian2& jacobian) const {
  if (lens_first_) return apply(homography_, distorted, &jacobian);
  jacobian = {affine_.scale.x, 0, 0, affine_.scale.y};
  return affine_.apply(distorted);
}

std::optional<Point2> CameraMap::to_input(Point2 output_px, Jacobian2* jacobian) const {
  Jacobian2 before{};
  Jacobian2 lens{};
  Jacobian2 after{};
  const std::optional<Point2> undistorted = before_lens(output_px, before);
  if (!undistorted) return std::nullopt;
  const std::optional<Point2> distorted = lens_.distort(*undistorted, &lens);
  if (!distorted) return std::nullopt;
  const std::optional<Point2> input = after_lens(*distorted, after);
  if (!input || !std::isfinite(input->x) || !std::isfinite(input->y)) return std::nullopt;
  if (jacobian != nullptr) *jacobian = product(after, product(lens, before));
  return input;
}

std::optional<Point2> CameraMap::undo_homography(Point2 image) const {
  if (!invertible_) return std::nullopt;
  const double w = third_coordinate(inverse_, image);
  const Point2 p{(inverse_[0] * image.x + inverse_[1] * image.y + inverse_[2]) / w,
                 (inverse_[3] * image.x + inverse_[4] * image.y + inverse_[5]) / w};
  if (!std::isfinite(p.x) || !std::isfinite(p.y)) return std::nullopt;
  if (!(third_coordinate(homography_, p) > 0)) return std::nullopt;
  return p;
}

std::optional<Point2> CameraMap::to_output(Point2 input_px, Jacobian2* jacobian) const {
  const std::optional<Point2> distorted =
      lens_first_ ? undo_homography(input_px) : affine_.invert(input_px);
  if (!distorted) return std::nullopt;
  const std::optional<Point2> undistorted = lens_.undistort(*distorted);
  if (!undistorted) return std::nullopt;
  const std::optional<Point2> output =
      lens_first_ ? affine_.invert(*undistorted) : undo_homography(*undistorted);
  if (!output || !std::isfinite(output->x) || !std::isfinite(output->y)) return std::nullopt;
  if (jacobian != nullptr) {
    Jacobian2 forward{};
    if (!to_input(*output, &forward)) return std::nullopt;
    *jacobian = inverse(forward);
  }
  return output;
}

std::optional<double> CameraMap::depth(Point2 output_px) const {
  if (!lens_first_) return third_coordinate(homography_, output_px);
  const std::optional<Point2> distorted = lens_.distort(affine_.apply(output_px));
  if (!distorted) return std::nullopt;
  return third_coordinate(homography_, *distorted);
}

std::optional<Point2> CameraMap::fold_in_input(Point2 output_px) const {
  Jacobian2 ignored = kIdentity2;
  const std::optional<Point2> p = before_lens(output_px, ignored);
  if (!p || lens_.distort(*p)) return std::nullopt;
  // The last point of this direction that still has an image: by bisection, since tangential terms
  // may fold it before the radial part does.
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (lens_.distort({p->x * middle, p->y * middle}) ? low : high) = middle;
  }
  const std::optional<Point2> edge = lens_.distort({p->x * low, p->y * low});
  return edge ? after_lens(*edge, ignored) : std::nullopt;
}

}  // namespace patternd
