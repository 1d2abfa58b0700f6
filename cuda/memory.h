// Memory that a GPU uses: device memory, memory that host and device share, and textures over
// either. Owners are move-only; everything is allocated when configured, never a frame.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device.h"
#include "cuda/kernels/parameters.h"
#include "cuda/stream.h"
#include "pipeline/image.h"
#include "pipeline/source.h"

namespace patternd::cuda {

// Device memory, contents undefined.
class DeviceBuffer {
 public:
  [[nodiscard]] static Result<DeviceBuffer> create(const std::shared_ptr<const Device>& device,
                                                   std::size_t bytes);
  // The same, filled from host memory; waits.
  [[nodiscard]] static Result<DeviceBuffer> copy_of(const std::shared_ptr<const Device>& device,
                                                    const void* from, std::size_t bytes);
  // Overwrites the first `bytes`; waits.
  [[nodiscard]] Result<void> write(const std::shared_ptr<const Device>& device, const void* from,
                                   std::size_t bytes) const;
  [[nodiscard]] Address address() const { return pointer_.get(); }
  [[nodiscard]] DevicePointer pointer() const { return pointer_.get(); }
  [[nodiscard]] std::size_t size_bytes() const { return bytes_; }

 private:
  Owner<DevicePointer> pointer_;
  std::size_t bytes_ = 0;
};

// Memory with a host's and a device's view. In mode copy these are two allocations, joined by
// upload() and download(); else one, and both enqueue nothing (managed: hand it over where the GPU
// cannot be used at the same time). The host may touch its view only before the upload is enqueued,
// or after an event behind the download has passed.
class SharedBuffer {
 public:
  [[nodiscard]] static Result<SharedBuffer> create(const std::shared_ptr<const Device>& device,
                                                   MemoryMode mode, std::size_t bytes);
  [[nodiscard]] std::uint8_t* host() const { return host_; }
  template <class T>
  [[nodiscard]] T* host_as() const {
    return reinterpret_cast<T*>(host_);
  }
  [[nodiscard]] Address device() const { return device_address_; }
  [[nodiscard]] std::size_t size_bytes() const { return bytes_; }
  // Host to device, the first `bytes`; enqueues.
  [[nodiscard]] Result<void> upload(const Stream& stream, std::size_t bytes) const;
  // Device to host; enqueues.
  [[nodiscard]] Result<void> download(const Stream& stream, std::size_t bytes) const;

 private:
  MemoryMode mode_ = MemoryMode::kCopy;
  std::size_t bytes_ = 0;
  std::uint8_t* host_ = nullptr;
  Address device_address_ = 0;
  Owner<void*> page_locked_;
  Owner<DevicePointer> managed_;
  DeviceBuffer device_copy_;
};

// The mode for few bytes that the GPU writes once for the host: mapped on every GPU that can.
[[nodiscard]] MemoryMode memory_for_results(const Device& device);

// A texture object over a picture in the device's reach.
class Texture {
 public:
  // `channels` 1 or 2 (YUYV is two channels of 8 bits, luma and chroma in turn); `filter` linear or
  // point. Coordinates are in texels, clamped; 8- and 16-bit values come as 0 to 1. The first pixel
  // and the stride must be aligned as DeviceProperties say; kInvalidArgument else.
  [[nodiscard]] static Result<Texture> create(const std::shared_ptr<const Device>& device,
                                              Address first_pixel, int width, int height,
                                              std::size_t stride_bytes, PixelFormat format,
                                              int channels, FilterMode filter);
  [[nodiscard]] Address get() const { return texture_.get(); }

 private:
  Owner<TextureHandle> texture_;
};

// Page-locked host memory, which copies run from and to without the host.
class PageLockedFrameAllocator : public FrameAllocator {
 public:
  explicit PageLockedFrameAllocator(std::shared_ptr<const Device> device)
      : device_(std::move(device)) {}
  [[nodiscard]] Result<std::uint8_t*> allocate(std::size_t size_bytes) override;

 private:
  std::shared_ptr<const Device> device_;
  std::vector<Owner<void*>> memory_;
};

}  // namespace patternd::cuda
