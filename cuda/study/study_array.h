// A CUDA array with a texture over it: what a texture had to be filled into before one could be
// laid over plain memory. The thesis paid 1.1 ms a frame for filling it on Tegra K1.
#pragma once

#include <memory>

#include "cuda/picture.h"
#include "cuda/stream.h"

namespace patternd::cuda {

class StudyArray {
 public:
  // One channel of floats. kUnsupported where the driver lacks arrays.
  [[nodiscard]] static Result<StudyArray> create(const std::shared_ptr<const Device>& device,
                                                 int width, int height);
  // Copies a picture of the same size (kGrayF32) into it; enqueues.
  [[nodiscard]] Result<void> fill(const Stream& stream, const DeviceView& from) const;
  // Linear filter, texel coordinates, clamped.
  [[nodiscard]] Address texture() const { return texture_.get(); }

 private:
  Owner<ArrayHandle> array_;
  Owner<TextureHandle> texture_;
};

}  // namespace patternd::cuda
