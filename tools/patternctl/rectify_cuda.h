// patternctl rectify on a GPU.
#pragma once

#include "calibration/camera_model.h"
#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd::tools {

// Rectifies a picture (kGray8 or kGray16, of the model's size) on GPU 0.
[[nodiscard]] Result<Image> rectify_on_cuda(const CameraModel& model, const ImageView& picture);

}  // namespace patternd::tools
