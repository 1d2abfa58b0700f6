// Pictures of a flat board through any camera, for calibrations whose truth is known.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/camera_fit.h"
#include "pipeline/image.h"
#include "pipeline/result.h"
#include "tools/synth/random.h"

namespace patternd::synth {

// What is printed on the board: a chessboard of columns × rows inner corners, the first at (0, 0)
// mm with a dark square up and left of it; or a picture, whose upper left corner is (0, 0) mm.
struct BoardFace {
  int columns = 0;
  int rows = 0;
  double square_mm = 0;
  Image picture;  // kGray8; empty: the chessboard
  double picture_mm_per_px = 1;

  // The rectangle of the board, its white edge of one square included.
  [[nodiscard]] Point2 upper_left_mm() const;
  [[nodiscard]] Point2 lower_right_mm() const;
};

struct BoardOptions {
  int width = 1280;
  int height = 720;
  double noise_sigma = 2;
  double blur_px = 0.6;
  std::uint64_t seed = 1;
};

// One picture (kGray8): each pixel is the mean of the board over its square, 16 × 16 points through
// the camera's local map where an edge crosses it. Exact to about 0.01 px.
[[nodiscard]] Result<Image> render_board(const BoardFace& face, const Lens& lens,
                                         const BoardPose& pose, const BoardOptions& options,
                                         int number);

// A pose that shows the whole board, tilted by up to `most_tilt_deg` about each axis and large
// enough to measure; drawn until one fits, kInvalidArgument where none of many does.
[[nodiscard]] Result<BoardPose> random_board_pose(const BoardFace& face, const Lens& lens,
                                                  const BoardOptions& options, double most_tilt_deg,
                                                  Random& random);

}  // namespace patternd::synth
