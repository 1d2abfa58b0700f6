// The pictures that were named, and the one size that all must have.
#pragma once

#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd::calibrate {

// A file as named, or a folder by the names of its pictures, every n-th of them.
[[nodiscard]] Result<std::vector<std::string>> picture_paths(const std::string& name, int every);

// The first picture says what size the camera's pictures have; an error where one has another.
[[nodiscard]] Result<void> agree_on_size(CameraModel& model, const std::string& name,
                                         const ImageView& picture);

// "1280x720".
[[nodiscard]] std::string size_text(int width, int height);

}  // namespace patternd::calibrate
