// A camera from several views of flat boards: lens, poses, and how well they are known.
//
// Sources: Z. Zhang, A flexible new technique for camera calibration, 2000 (start values from
// homographies); Triggs et al., Bundle adjustment, 2000 (poses eliminated from the normal
// equations).
#pragma once

#include <array>
#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "calibration/dense.h"
#include "calibration/matrix3.h"
#include "pipeline/result.h"

namespace patternd {

// One picture of a board: points on it in millimetres (x right, y down as printed) and where they
// appear.
struct BoardView {
  std::string name;
  std::vector<Point2> board_mm;
  std::vector<Point2> image_px;
};

// Board to camera: X = rotation · (x, y, 0) + translation.
struct BoardPose {
  Matrix3 rotation = kIdentity3;
  std::array<double, 3> translation_mm{};
};

struct CameraFitOptions {
  LensModel model = LensModel::kBrownConrady;  // or kFisheye
  // Coefficients to fit, the first of coefficient_names(); the others stay 0. brown_conrady: 0, 2
  // (k1 k2), 4 (+ p1 p2), 5 (+ k3) or 8; fisheye: 0 to 4.
  int coefficients = 5;
};

struct CameraFit {
  Lens lens;
  std::vector<BoardPose> poses;     // by view
  double rms_px = 0;                // √(mean squared distance of a point to its place)
  std::vector<double> view_rms_px;  // the same by view
  std::vector<std::string> names;   // of the parameters: fx fy cx cy k1 …
  std::vector<double> values;
  std::vector<double> standard_deviations;
  Matrix covariance;    // of the parameters
  double noise_px = 0;  // standard deviation of a coordinate, freedom accounted for
};

// Fits a camera to at least two views of at least four points each. kInvalidArgument: too little,
// or nothing but views from straight ahead (named what to do).
[[nodiscard]] Result<CameraFit> fit_camera(const std::vector<BoardView>& views, int image_width,
                                           int image_height, const CameraFitOptions& options);

// The pose of one board in a camera that is known.
[[nodiscard]] Result<BoardPose> fit_pose(const BoardView& view, const Lens& lens);

// Where a board's point appears; nothing behind the camera or beyond the lens's fold.
[[nodiscard]] std::optional<Point2> project(const Lens& lens, const BoardPose& pose,
                                            Point2 board_mm);

// The homography from the board's millimetres to undistorted pixels.
[[nodiscard]] Matrix3 plane_homography(const Lens& lens, const BoardPose& pose);

}  // namespace patternd
