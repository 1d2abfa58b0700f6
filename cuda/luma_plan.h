// How a configuration's frames become the picture that is searched, as far as no frame changes it:
// made once, shared by all frames in flight.
#pragma once

#include <memory>
#include <optional>

#include "cuda/rectify_stage.h"
#include "pipeline/frame_processor.h"

namespace patternd::cuda {

// Bits of a format's values that lie above the frame's own: 6 of Y10.
[[nodiscard]] int bits_below_full_scale(RawFormat format);

struct LumaPlan {
  // Copies the rectification to the device; waits.
  [[nodiscard]] static Result<LumaPlan> create(const std::shared_ptr<const Device>& device,
                                               const ProcessorConfig& config);

  // The picture that is searched.
  int width = 0;
  int height = 0;
  PixelFormat format = PixelFormat::kGray8;
  bool converts = false;                // in a kernel of its own; else rectification or nobody need
  int texture_channels = 1;             // that rectification reads, luma being one of them
  std::optional<RectifyStage> rectify;  // with a calibration
  Image valid;                          // of the picture: 255 and 0; empty where all of it is
};

}  // namespace patternd::cuda
