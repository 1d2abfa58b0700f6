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
  // `base` becomes level 0; enqueues one launch for each six levels.
  [[nodiscard]] Result<void> enqueue(const Stream& stream, const DeviceView& base) const;
  // The same from a frame in the host's memory, which the GPU reads in place while it makes the
  // levels of it, and copies to `base`: one way over the bus, with nothing to wait for. `frame` has
  // base's size and format; can_take() says which it may be.
  [[nodiscard]] Result<void> enqueue_taking(const Stream& stream, const DeviceView& frame,
                                            const DeviceView& base) const;
  // Read 16 bytes at a time, of which level 1 is made.
  [[nodiscard]] bool can_take(const DeviceView& frame) const {
    return levels() > 0 && frame.address % 16 == 0 && frame.stride_bytes % 16 == 0;
  }
  // Level 1 and up; level 0 is the caller's.
  [[nodiscard]] const DeviceView& level(int index) const {
    return levels_[static_cast<std::size_t>(index) - 1].view();
  }
  [[nodiscard]] int levels() const { return static_cast<int>(levels_.size()); }

 private:
  [[nodiscard]] PyramidParameters parameters(int first_level, const DeviceView& from) const;
  // The launches that read `first_level` or a level above it.
  [[nodiscard]] Result<void> enqueue_above(const Stream& stream, int first_level,
                                           const DeviceView& base) const;
  Kernel kernel_;
  Kernel take_;
  std::vector<DevicePicture> levels_;
};

}  // namespace patternd::cuda
