// ChArUco boards, by OpenCV's contributed module where the build has it.
#pragma once

#include <opencv2/core.hpp>

#include "tools/calibrate/board.h"

namespace patternd::calibrate {

// As find_board and draw_board.
[[nodiscard]] Result<BoardView> find_charuco(const cv::Mat& picture, const Board& board,
                                             const std::string& name);
[[nodiscard]] Result<Image> draw_charuco(const Board& board, double pixels_per_mm);

}  // namespace patternd::calibrate
