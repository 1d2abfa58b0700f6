// A frame's way on one GPU, as FrameProcessor.
#pragma once

#include <memory>
#include <string>

#include "cuda/device.h"
#include "pipeline/frame_processor.h"

namespace patternd::cuda {

// Allocates everything that frames need on `device`, for `streams` frames in flight. `memory`:
// compute.memory. Refuses what make_cpu_processor refuses, and (kUnsupported) what is too large for
// the device. Errors of submit() and collect(): kDevice where the GPU failed, for want of memory
// too (a frame may have been left half-way: the device is given up, and no further frame begun),
// kExhausted where this frame had more candidates than there is room for: its blobs are then in the
// result all the same.
[[nodiscard]] Result<std::unique_ptr<FrameProcessor>> make_cuda_processor(
    const std::shared_ptr<const Device>& device, const std::string& memory,
    const ProcessorConfig& config, int streams = 1);

// Runs every kernel once on a small made frame and compares with the CPU's results. The error says
// what differs.
[[nodiscard]] Result<void> self_test(const std::shared_ptr<const Device>& device,
                                     const std::string& memory);

}  // namespace patternd::cuda
