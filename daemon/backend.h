// Which processor a configuration gets.
#pragma once

#include <memory>

#include "daemon/configuration.h"
#include "pipeline/frame_processor.h"
#include "pipeline/source.h"

namespace patternd {

// `cpu` and `cuda` as asked, or an error; `auto` the best that there is. Never a silent fallback:
// what `auto` chose, and why, is logged once and stands in status.
[[nodiscard]] Result<std::unique_ptr<FrameProcessor>> make_configured_processor(
    const ComputeConfig& compute, const ProcessorConfig& config);

// Memory for the camera's frames in the reach of what will compute them.
[[nodiscard]] std::unique_ptr<FrameAllocator> make_configured_frame_memory(
    const ComputeConfig& compute);

}  // namespace patternd
