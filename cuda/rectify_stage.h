// Rectification on the GPU; the method is in kernels/rectify.cu, the map in rectify_plan.h.
#pragma once

#include <memory>

#include "cuda/picture.h"
#include "cuda/rectify_plan.h"
#include "cuda/stream.h"

namespace patternd::cuda {

// What a source texture holds beside plain pixels of the output's format.
struct SourceLayout {
  int channel = 0;     // 0, or 1 where luma is the second of two (UYVY)
  int shift_bits = 0;  // luma is in the low bits and goes up by this many (Y10: 6, Y12: 4)
};

class RectifyStage {
 public:
  // Copies the plan to the device; waits. `format`: kGray8, kGray16, kGrayF32; `border` in its
  // grey levels.
  [[nodiscard]] static Result<RectifyStage> create(const std::shared_ptr<const Device>& device,
                                                   const RectifyPlan& plan, PixelFormat format,
                                                   double border, const SourceLayout& source);
  // Enqueues one picture; `output` is of the plan's size and the format given. `pixels`, where it
  // has an address, is the same source in the device's own memory: of floats the kernel then reads
  // by plain loads what is faster so. (Integrated GPUs cache no mapped memory for plain loads.)
  [[nodiscard]] Result<void> enqueue(const Stream& stream, const Texture& source,
                                     const DeviceView& output,
                                     const DeviceView& pixels = {}) const {
    return enqueue(stream, source.get(), output, pixels);
  }
  [[nodiscard]] Result<void> enqueue(const Stream& stream, Address texture,
                                     const DeviceView& output, const DeviceView& pixels = {}) const;

 private:
  Kernel kernel_;
  DeviceBuffer patches_;
  DeviceBuffer masks_;
  DeviceBuffer tables_;
  RectifyParameters parameters_{};
};

}  // namespace patternd::cuda
