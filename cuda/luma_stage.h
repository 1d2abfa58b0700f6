// From a camera's frame to the picture that is searched, on the GPU: upload, conversion to luma,
// and rectification, as few steps as the format allows.
#pragma once

#include <memory>
#include <optional>

#include "cuda/picture.h"
#include "cuda/rectify_stage.h"
#include "cuda/stream.h"
#include "pipeline/frame_processor.h"

namespace patternd::cuda {

class LumaStage {
 public:
  // For frames and the calibration that `config` says. Mode copy sends a frame to device memory;
  // the others place it where the GPU reads it in place.
  [[nodiscard]] static Result<LumaStage> create(const std::shared_ptr<const Device>& device,
                                                MemoryMode mode, const ProcessorConfig& config);

  // Brings a frame of the configured kind into the device's reach. The frame must stay as it is
  // until the stream has passed.
  [[nodiscard]] Result<void> upload_frame(const Stream& stream, const RawImageView& frame) const;
  // Whether the picture that is searched is the frame itself, once it has been copied.
  [[nodiscard]] bool only_copies() const {
    return mode_ == MemoryMode::kCopy && !convert_ && !rectify_;
  }
  // Where the GPU sees a frame in the host's memory: address 0 where it does not (memory that is
  // not page-locked).
  [[nodiscard]] DeviceView in_place(const Stream& stream, const RawImageView& frame) const;
  // Enqueues conversion and rectification.
  [[nodiscard]] Result<void> enqueue(const Stream& stream) const;

  // The picture that is searched.
  [[nodiscard]] const DeviceView& picture() const { return picture_; }
  // Its valid area: 255 and 0; empty where everything is valid.
  [[nodiscard]] ImageView valid() const {
    return valid_.empty() ? ImageView{} : ImageView(valid_.view());
  }

 private:
  [[nodiscard]] Result<void> create_input(const std::shared_ptr<const Device>& device,
                                          MemoryMode mode, const ProcessorConfig& config);
  [[nodiscard]] Result<void> create_conversion(const std::shared_ptr<const Device>& device,
                                               const ProcessorConfig& config);
  [[nodiscard]] Result<void> create_rectification(const std::shared_ptr<const Device>& device,
                                                  const ProcessorConfig& config,
                                                  const SourceLayout& source, int channels);

  MemoryMode mode_ = MemoryMode::kCopy;
  std::size_t row_bytes_ = 0;
  DeviceBuffer device_input_;  // mode copy
  SharedBuffer shared_input_;  // the others
  DeviceView input_;           // width and height of the frame; the stride of its rows
  std::optional<DevicePicture> luma_;
  std::optional<DevicePicture> rectified_;
  std::optional<Texture> texture_;
  std::optional<RectifyStage> rectify_;
  std::optional<Kernel> convert_;
  ConvertParameters conversion_{};
  DeviceView picture_;
  Image valid_;
};

}  // namespace patternd::cuda
