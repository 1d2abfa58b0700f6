// The image pyramid on the GPU; the method is in kernels/pyramid.cu.
#pragma once

#include <memory>
#include <vector>

#include "cuda/picture.h"
#include "cuda/stream.h"

namespace patternd::cuda {

class PyramidStage {
 public:
  // `levels` above level 0 for a picture of this size; the format is kGray8 or kGray16.
  [[nodiscard]] static Result<PyramidStage> create(const std::shared_ptr<const Device>& device,
                                                   int width, int height, PixelFormat format,
                                                   int levels);
  // `base` becomes level 0; enqueues one launch for each six levels. The first notes at `moment`
  // when it begins (StageClock; 0: nowhere).
  [[nodiscard]] Result<void> enqueue(const Stream& stream, const DeviceView& base,
                                     Address moment) const;
  // Level 1 and up; level 0 is the caller's.
  [[nodiscard]] const DeviceView& level(int index) const {
    return levels_[static_cast<std::size_t>(index) - 1].view();
  }
  [[nodiscard]] int levels() const { return static_cast<int>(levels_.size()); }

 private:
  Kernel kernel_;
  std::vector<DevicePicture> levels_;
};

}  // namespace patternd::cuda
