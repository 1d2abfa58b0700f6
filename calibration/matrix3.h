// Homographies as row-major 3×3 matrices.
#pragma once

#include <array>
#include <optional>

#include "calibration/camera_model.h"

namespace patternd {

using Matrix3 = std::array<double, 9>;
inline constexpr Matrix3 kIdentity3 = {1, 0, 0, 0, 1, 0, 0, 0, 1};

[[nodiscard]] Matrix3 product(const Matrix3& a, const Matrix3& b);
[[nodiscard]] double determinant(const Matrix3& m);
// Nothing where the determinant is zero or not finite.
[[nodiscard]] std::optional<Matrix3> inverse(const Matrix3& m);
// a · (x, y, 1), its third coordinate: positive in front of the camera.
[[nodiscard]] double third_coordinate(const Matrix3& m, Point2 p);
// The image of a point. Nothing where its third coordinate is not positive. `jacobian`, when given,
// receives d(image)/d(point).
[[nodiscard]] std::optional<Point2> apply(const Matrix3& m, Point2 p,
                                          Jacobian2* jacobian = nullptr);
// a·b, and the inverse, of 2×2 Jacobians.
[[nodiscard]] Jacobian2 product(const Jacobian2& a, const Jacobian2& b);
[[nodiscard]] Jacobian2 inverse(const Jacobian2& j);

}  // namespace patternd
