// Pictures that show how well a calibration fits.
#pragma once

#include <string>

#include "calibration/camera_fit.h"
#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd::calibrate {

// Where the drawing of this name belongs.
[[nodiscard]] std::string drawing_path(const std::string& folder, const std::string& name);

// The picture with the points found (circles, joined in order) and, from each, its residual as an
// arrow, 50 times as long.
[[nodiscard]] Result<void> draw_residuals(const std::string& path, const ImageView& picture,
                                          const BoardView& view, const Lens& lens,
                                          const BoardPose& pose);
// The picture through the calibration, with the board's points marked where they must lie.
[[nodiscard]] Result<void> draw_rectified(const std::string& path, const ImageView& picture,
                                          const CameraModel& model, const BoardView& view);

}  // namespace patternd::calibrate
