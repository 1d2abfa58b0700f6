// What a calibration's pictures and numbers leave to be wished for, in plain words.
#pragma once

#include <string>
#include <vector>

#include "calibration/camera_fit.h"

namespace patternd::calibrate {

struct Finding {
  bool fault = false;  // the result would be wrong; else a warning
  std::string message;
};

// Share of the picture, in cells of 10 × 8, that the views' points reach; 0..1.
[[nodiscard]] double coverage(const std::vector<BoardView>& views, int width, int height);
// Angle of the board to the picture, degrees.
[[nodiscard]] double tilt_deg(const BoardPose& pose);
// The view whose error stands out (over three times the median of the others and 0.3 px), or -1.
[[nodiscard]] int outstanding_view(const CameraFit& fit);
// A board seen from behind or in a mirror: its points run the wrong way round.
[[nodiscard]] bool is_mirrored(const BoardView& view);

[[nodiscard]] std::vector<Finding> check_calibration(const std::vector<BoardView>& views,
                                                     const CameraFit& fit, int width, int height);

}  // namespace patternd::calibrate
