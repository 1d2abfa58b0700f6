// From a camera's frame to the picture that is searched, on the GPU: upload, conversion to luma,
// and rectification, as few steps as the format allows.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cuda/luma_plan.h"
#include "cuda/picture.h"
#include "cuda/stream.h"
#include "pipeline/frame_processor.h"

namespace patternd::cuda {

// Where the device finds a frame's pixels.
struct FrameOnDevice {
  Address address = 0;
  int stride_bytes = 0;
  Address texture = 0;         // where rectification reads them; 0: not there
  DevicePointer attached = 0;  // managed memory that must go back to the host; 0: none
  bool copied_by_host = false;
};

class LumaStage {
 public:
  // For frames as `config` says, which `plan` was made for. Mode copy sends a frame to device
  // memory, as every mode does with one that is searched as it comes; in the others the kernels
  // that convert or rectify read it in place.
  [[nodiscard]] static Result<LumaStage> create(const std::shared_ptr<const Device>& device,
                                                MemoryMode mode, const ProcessorConfig& config,
                                                std::shared_ptr<const LumaPlan> plan);

  // Brings a frame of the configured kind into the device's reach, with nothing in flight. The
  // frame must stay as it is until the stream has passed enqueue(). One in a source's memory
  // (FrameMemory) is not copied by the host.
  [[nodiscard]] Result<FrameOnDevice> upload_frame(const Stream& stream, const RawImageView& frame);
  // Enqueues conversion and rectification.
  [[nodiscard]] Result<void> enqueue(const Stream& stream, const FrameOnDevice& frame) const;

  // Each frame may lie elsewhere; else all are where input() says, and a graph can be made of it.
  [[nodiscard]] bool reads_in_place() const { return reads_in_place_; }
  [[nodiscard]] const FrameOnDevice& input() const { return own_; }

  // The picture that is searched.
  [[nodiscard]] const DeviceView& picture() const { return picture_; }

 private:
  [[nodiscard]] Result<void> create_input(const std::shared_ptr<const Device>& device,
                                          MemoryMode mode, const ProcessorConfig& config);
  [[nodiscard]] Result<void> create_conversion(const std::shared_ptr<const Device>& device,
                                               const ProcessorConfig& config);
  [[nodiscard]] Result<void> create_rectified(const std::shared_ptr<const Device>& device);

  [[nodiscard]] Result<Texture> texture_over(Address address, std::size_t stride_bytes) const;
  [[nodiscard]] std::optional<FrameOnDevice> find_in_place(const RawImageView& frame);
  [[nodiscard]] Address frame_texture(Address address, std::size_t stride_bytes);
  [[nodiscard]] static Result<void> attach(const Stream& stream, const FrameOnDevice& frame,
                                           unsigned to);
  void copy_by_host(const RawImageView& frame) const;
  [[nodiscard]] Result<void> copy_by_device(const Stream& stream, const RawImageView& frame) const;

  // A frame that rectification reads where it lies.
  struct FrameTexture {
    Address address;
    std::size_t stride_bytes;
    Texture texture;
  };

  std::shared_ptr<const Device> device_;
  std::shared_ptr<const LumaPlan> plan_;
  MemoryMode mode_ = MemoryMode::kCopy;
  bool reads_in_place_ = false;
  std::size_t row_bytes_ = 0;
  DeviceBuffer device_input_;  // where frames are copied to
  SharedBuffer shared_input_;  // in place of it: for frames that the kernels do not reach
  FrameOnDevice own_;          // either of them
  std::vector<FrameTexture> frame_textures_;
  DeviceView input_;  // width and height of the frame; the stride of its rows
  std::optional<DevicePicture> luma_;
  std::optional<DevicePicture> rectified_;
  std::optional<Texture> texture_;
  std::optional<Kernel> convert_;
  ConvertParameters conversion_{};
  DeviceView picture_;
};

}  // namespace patternd::cuda
