// A GPU's processor that is opened anew when it has failed, with the CPU behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "pipeline/frame_processor.h"

namespace patternd::cuda {

struct Supervision {
  // Makes the GPU's processor anew; called on the thread that submits frames.
  std::function<Result<std::unique_ptr<FrameProcessor>>()> open_gpu;
  // Nanoseconds that only rise.
  std::function<std::int64_t()> now_ns;

  // From a failure to the first attempt. Each attempt doubles it, whether the GPU opens or not,
  // because one may pass its self-test and fail frames; it is the first again once the GPU has
  // done frames for as long as the next pause would be.
  static constexpr std::int64_t kFirstPauseNs = 1'000'000'000;
  static constexpr std::int64_t kLongestPauseNs = 60'000'000'000;
};

// Frames go to `gpu`; what it fails (kDevice), and all that is in flight on it then, `cpu` does
// again, in order, and every further frame until the GPU has been opened anew. Of a frame that is
// too much for the GPU (kExhausted) it does the search again; the GPU's blobs stay, whose frame
// before the CPU does not have. Where `cpu` is null such frames come back as the GPU's errors.
// `blobs`: as both were made for. description() counts what the CPU did and what was left out.
[[nodiscard]] std::unique_ptr<FrameProcessor> make_supervised_processor(
    std::unique_ptr<FrameProcessor> gpu, std::unique_ptr<FrameProcessor> cpu,
    const std::optional<BlobParams>& blobs, Supervision supervision);

}  // namespace patternd::cuda
