#include "cuda/picture.h"

#include <algorithm>

namespace patternd::cuda {
namespace {

constexpr std::size_t kRowAlignment = 128;  // a cache line of every GPU

std::size_t row_bytes(const DeviceView& view) {
  return static_cast<std::size_t>(view.width) * bytes_per_pixel(view.format);
}

}  // namespace

std::size_t aligned_stride(const DeviceProperties& properties, std::size_t bytes) {
  const std::size_t alignment = std::max(
      kRowAlignment, static_cast<std::size_t>(std::max(1, properties.texture_pitch_alignment)));
  return (bytes + alignment - 1) / alignment * alignment;
}

Result<DevicePicture> DevicePicture::create(const std::shared_ptr<const Device>& device, int width,
                                            int height, PixelFormat format) {
  const std::size_t stride = aligned_stride(
      device->properties(), static_cast<std::size_t>(width) * bytes_per_pixel(format));
  auto memory = DeviceBuffer::create(device, stride * static_cast<std::size_t>(height));
  if (!memory) return tl::make_unexpected(memory.error());
  DevicePicture picture;
  picture.memory_ = std::move(*memory);
  picture.view_ = {picture.memory_.address(), width, height, static_cast<int>(stride), format};
  return picture;
}

Result<void> upload(const Stream& stream, const ImageView& from, const DeviceView& to) {
  Copy2d copy;
  copy.src_type = MemoryType::kHost;
  copy.src_host = from.data;
  copy.src_pitch = from.stride_bytes;
  copy.dst_device = static_cast<DevicePointer>(to.address);
  copy.dst_pitch = static_cast<std::size_t>(to.stride_bytes);
  copy.width_bytes = row_bytes(to);
  copy.height = static_cast<std::size_t>(to.height);
  const Driver& api = stream.device()->driver();
  return api.check(api.memcpy_2d_async(&copy, stream.get()), "cuMemcpy2DAsync to the device");
}

Result<void> download(const Stream& stream, const DeviceView& from, MutableImageView to) {
  Copy2d copy;
  copy.src_device = static_cast<DevicePointer>(from.address);
  copy.src_pitch = static_cast<std::size_t>(from.stride_bytes);
  copy.dst_type = MemoryType::kHost;
  copy.dst_host = to.data;
  copy.dst_pitch = to.stride_bytes;
  copy.width_bytes = row_bytes(from);
  copy.height = static_cast<std::size_t>(from.height);
  const Driver& api = stream.device()->driver();
  return api.check(api.memcpy_2d_async(&copy, stream.get()), "cuMemcpy2DAsync to the host");
}

}  // namespace patternd::cuda
