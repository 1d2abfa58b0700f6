#include "calibration/matrix3.h"

#include <cmath>

namespace patternd {

Matrix3 product(const Matrix3& a, const Matrix3& b) {
  Matrix3 result{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      for (std::size_t k = 0; k < 3; ++k) {
        result[3 * row + column] += a[3 * row + k] * b[3 * k + column];
      }
    }
  }
  return result;
}

double determinant(const Matrix3& m) {
  return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
         m[2] * (m[3] * m[7] - m[4] * m[6]);
}

std::optional<Matrix3> inverse(const Matrix3& m) {
  const double det = determinant(m);
  if (det == 0 || !std::isfinite(det)) return std::nullopt;
  const Matrix3 adjugate = {
      m[4] * m[8] - m[5] * m[7], m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
      m[5] * m[6] - m[3] * m[8], m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
      m[3] * m[7] - m[4] * m[6], m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
  Matrix3 result{};
  for (std::size_t i = 0; i < 9; ++i) {
    result[i] = adjugate[i] / det;
    if (!std::isfinite(result[i])) return std::nullopt;
  }
  return result;
}

double third_coordinate(const Matrix3& m, Point2 p) { return m[6] * p.x + m[7] * p.y + m[8]; }

std::optional<Point2> apply(const Matrix3& m, Point2 p, Jacobian2* jacobian) {
  const double w = third_coordinate(m, p);
  if (!(w > 0)) return std::nullopt;
  const Point2 image{(m[0] * p.x + m[1] * p.y + m[2]) / w, (m[3] * p.x + m[4] * p.y + m[5]) / w};
  if (!std::isfinite(image.x) || !std::isfinite(image.y)) return std::nullopt;
  if (jacobian != nullptr) {
    *jacobian = {(m[0] - image.x * m[6]) / w, (m[1] - image.x * m[7]) / w,
                 (m[3] - image.y * m[6]) / w, (m[4] - image.y * m[7]) / w};
  }
  return image;
}

Jacobian2 product(const Jacobian2& a, const Jacobian2& b) {
  return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
          a[2] * b[1] + a[3] * b[3]};
}

Jacobian2 inverse(const Jacobian2& j) {
  const double det = j[0] * j[3] - j[1] * j[2];
  return {j[3] / det, -j[1] / det, -j[2] / det, j[0] / det};
}

}  // namespace patternd
