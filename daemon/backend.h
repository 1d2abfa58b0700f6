// Which processor a configuration gets.
#pragma once

#include <memory>

#include "cuda/backend.h"
#include "daemon/configuration.h"
#include "pipeline/frame_processor.h"
#include "pipeline/source.h"

namespace patternd {

// `cpu` and `cuda` as asked, or an error; `auto` the best that there is, with the reason. Its
// messages call the settings what the user wrote (compute.names).
[[nodiscard]] cuda::Choice make_configured_processor(const ComputeConfig& compute,
                                                     const ProcessorConfig& config);

// Memory for the camera's frames in the reach of what will compute them.
[[nodiscard]] std::unique_ptr<FrameAllocator> make_configured_frame_memory(
    const ComputeConfig& compute);

}  // namespace patternd
