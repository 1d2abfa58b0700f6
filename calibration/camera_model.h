// What a calibration file says, as numbers: the lens, the plane, and points through both in either
// direction.
//
// Sources: T1–T3 (N. Nilsson 2014, eq. 2.2, 5.1, algorithm 5); OpenCV's documentation of the two
// lens models.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "pipeline/result.h"

namespace patternd {

enum class LensModel { kNone, kBrownConrady, kFisheye, kUnitPolynomial };
[[nodiscard]] const char* name_of(LensModel model);

struct Point2 {
  double x = 0;
  double y = 0;
};

// d(output)/d(input): row-major 2×2.
using Jacobian2 = std::array<double, 4>;

struct Lens {
  LensModel model = LensModel::kNone;
  // Row-major camera matrix [fx 0 cx 0 fy cy 0 0 1]; not used by kNone and kUnitPolynomial.
  std::array<double, 9> camera_matrix{1, 0, 0, 0, 1, 0, 0, 0, 1};
  // kBrownConrady: k1 k2 p1 p2 k3 k4 k5 k6 (OpenCV's order); kFisheye: k1 k2 k3 k4;
  // kUnitPolynomial: k1 k2 p1 p2 k3.
  std::array<double, 8> distortion{};
};

struct Plane {
  // Row-major; output (plane) pixel -> undistorted image pixel. kUnitPolynomial: normalised ->
  // normalised coordinates.
  std::array<double, 9> homography{1, 0, 0, 0, 1, 0, 0, 0, 1};
  int width = 0;
  int height = 0;
  double mm_per_px = 0;  // 0: the plane has no scale
  Point2 origin_px;      // the output pixel that is (0, 0) mm
};

struct CameraModel {
  int image_width = 0;
  int image_height = 0;
  Lens lens;
  std::optional<Plane> plane;  // absent: the lens alone is taken out, output size as the input
  double border =
      0;  // value of output pixels without a source, in grey levels of the picture's format

  [[nodiscard]] int output_width() const { return plane ? plane->width : image_width; }
  [[nodiscard]] int output_height() const { return plane ? plane->height : image_height; }

  // Output (rectified) pixel -> input pixel, in double precision. Nothing where the ray comes from
  // behind the camera (homography's third coordinate not positive) or the lens polynomial has
  // folded back. The point need not lie inside either picture. `jacobian`, when given, receives
  // d(input)/d(output).
  [[nodiscard]] std::optional<Point2> to_input(Point2 output_px,
                                               Jacobian2* jacobian = nullptr) const;
  // Input pixel -> output pixel by Newton iteration, to 1e-9 px on the undistorted side where the
  // map is regular. Nothing where there is none.
  [[nodiscard]] std::optional<Point2> to_output(Point2 input_px,
                                                Jacobian2* jacobian = nullptr) const;
  // Output pixel <-> millimetres on the plane; the plane must have a scale.
  [[nodiscard]] Point2 to_mm(Point2 output_px) const;
};

// Reads and validates a calibration file (../config/README.md lists its keys). All faults are
// reported in one error, a line each, as FILE:LINE:COLUMN: key: what is wrong; what is accepted.
// Validation covers: sizes, counts of coefficients, non-finite numbers, a singular homography, one
// that passes through infinity inside the output, a lens polynomial that folds back within the part
// of the picture that is used.
[[nodiscard]] Result<CameraModel> load_camera_model(const std::string& path);
// The same checks on a model made in code; `name` stands in messages.
[[nodiscard]] Result<void> check_camera_model(const CameraModel& model, const std::string& name);
// YAML text that load_camera_model reads back to the same model.
[[nodiscard]] std::string to_yaml(const CameraModel& model);

}  // namespace patternd
