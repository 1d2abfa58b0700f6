// What every version of a frame's way does alike, whichever processor computes it.
#pragma once

#include <vector>

#include "pipeline/frame_processor.h"
#include "pipeline/thread_pool.h"

namespace patternd {

// kInvalidArgument where the frame is not of the configured size and format; says both.
[[nodiscard]] Result<void> check_frame(const ProcessorConfig& config, const RawImageView& frame);

// Adds the places in millimetres, and their standard deviations, where the calibration's plane has
// a scale. The rectified picture is the plane seen straight on, so `angle_deg` is the angle on the
// plane already. What the calibration itself may be off by, patternctl calibrate reports.
void add_millimetres(const ProcessorConfig& config, std::vector<Match>& matches);

// The configured dark frame as the searched picture shows it: rectified like the frames. Empty
// where blobs.reference is not dark. kInvalidArgument where it is not of the camera's size.
[[nodiscard]] Result<Image> searched_dark_frame(const ProcessorConfig& config, ThreadPool* pool);

}  // namespace patternd
