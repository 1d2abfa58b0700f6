// A picture in the device's memory.
#pragma once

#include <memory>

#include "cuda/memory.h"
#include "pipeline/image.h"

namespace patternd::cuda {

// Where a picture lies; the device's counterpart of ImageView.
struct DeviceView {
  Address address = 0;
  int width = 0;
  int height = 0;
  int stride_bytes = 0;
  PixelFormat format = PixelFormat::kGray8;
};

// Owns one; rows are aligned for textures and for 16-byte accesses.
class DevicePicture {
 public:
  [[nodiscard]] static Result<DevicePicture> create(const std::shared_ptr<const Device>& device,
                                                    int width, int height, PixelFormat format);
  [[nodiscard]] const DeviceView& view() const { return view_; }

 private:
  DeviceBuffer memory_;
  DeviceView view_;
};

// The stride that DevicePicture takes for such rows.
[[nodiscard]] std::size_t aligned_stride(const DeviceProperties& properties, std::size_t row_bytes);

// Copy a whole picture between host and device; enqueued. Host memory that is not page-locked makes
// the copy wait.
[[nodiscard]] Result<void> upload(const Stream& stream, const ImageView& from,
                                  const DeviceView& to);
[[nodiscard]] Result<void> download(const Stream& stream, const DeviceView& from,
                                    MutableImageView to);

}  // namespace patternd::cuda
