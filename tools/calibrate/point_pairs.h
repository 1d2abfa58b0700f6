// Point pairs from a text file.
#pragma once

#include <string>
#include <vector>

#include "calibration/homography.h"
#include "pipeline/result.h"

namespace patternd::calibrate {

// A line each, x_px y_px x_mm y_mm, separated by blanks, commas or semicolons; # starts a comment.
// `to` is the pixel, `from` the millimetres. Errors name file and line.
[[nodiscard]] Result<std::vector<PointPair>> read_pairs(const std::string& path);

}  // namespace patternd::calibrate
