#include "cuda/memory.h"

#include <string>

namespace patternd::cuda {
namespace {

std::string of_bytes(const char* call, std::size_t bytes) {
  return std::string(call) + " of " + std::to_string(bytes) + " bytes";
}

Result<Owner<void*>> allocate_page_locked(const std::shared_ptr<const Device>& device,
                                          std::size_t bytes) {
  void* memory = nullptr;
  const Driver& api = device->driver();
  const Status status = api.mem_host_alloc(&memory, bytes, kHostAllocPortable | kHostAllocMapped);
  if (status != kSuccess)
    return tl::make_unexpected(api.error(status, of_bytes("cuMemHostAlloc", bytes)));
  return Owner<void*>(device, memory, &Driver::mem_free_host);
}

}  // namespace

Result<DeviceBuffer> DeviceBuffer::create(const std::shared_ptr<const Device>& device,
                                          std::size_t bytes) {
  DevicePointer pointer = 0;
  const Driver& api = device->driver();
  const Status status = api.mem_alloc(&pointer, bytes);
  if (status != kSuccess)
    return tl::make_unexpected(api.error(status, of_bytes("cuMemAlloc", bytes)));
  DeviceBuffer buffer;
  buffer.pointer_ = Owner<DevicePointer>(device, pointer, &Driver::mem_free);
  buffer.bytes_ = bytes;
  return buffer;
}

Result<void> DeviceBuffer::write(const std::shared_ptr<const Device>& device, const void* from,
                                 std::size_t bytes) const {
  auto stream = Stream::create(device);
  if (!stream) return tl::make_unexpected(stream.error());
  const Driver& api = device->driver();
  if (auto ok = api.check(api.memcpy_h2d_async(pointer(), from, bytes, stream->get()),
                          "cuMemcpyHtoDAsync");
      !ok)
    return ok;
  return stream->wait();
}

Result<DeviceBuffer> DeviceBuffer::copy_of(const std::shared_ptr<const Device>& device,
                                           const void* from, std::size_t bytes) {
  auto buffer = create(device, bytes);
  if (!buffer) return buffer;
  if (auto ok = buffer->write(device, from, bytes); !ok) return tl::make_unexpected(ok.error());
  return buffer;
}

Result<SharedBuffer> SharedBuffer::create(const std::shared_ptr<const Device>& device,
                                          MemoryMode mode, std::size_t bytes) {
  SharedBuffer buffer;
  buffer.mode_ = mode;
  buffer.bytes_ = bytes;
  const Driver& api = device->driver();
  if (mode == MemoryMode::kManaged) {
    DevicePointer pointer = 0;
    // Where host and GPU may not use it at once it starts as the host's, and each frame's stream
    // takes it and gives it back.
    const unsigned flags =
        device->properties().concurrent_managed_access ? kManagedAttachGlobal : kManagedAttachHost;
    const Status status = api.mem_alloc_managed(&pointer, bytes, flags);
    if (status != kSuccess)
      return tl::make_unexpected(api.error(status, of_bytes("cuMemAllocManaged", bytes)));
    buffer.managed_ = Owner<DevicePointer>(device, pointer, &Driver::mem_free);
    buffer.device_address_ = pointer;
    buffer.host_ = reinterpret_cast<std::uint8_t*>(pointer);  // NOLINT: one address for both sides
    return buffer;
  }
  auto page_locked = allocate_page_locked(device, bytes);
  if (!page_locked) return tl::make_unexpected(page_locked.error());
  buffer.page_locked_ = std::move(*page_locked);
  buffer.host_ = static_cast<std::uint8_t*>(buffer.page_locked_.get());
  if (mode == MemoryMode::kCopy) {
    auto device_copy = DeviceBuffer::create(device, bytes);
    if (!device_copy) return tl::make_unexpected(device_copy.error());
    buffer.device_copy_ = std::move(*device_copy);
    buffer.device_address_ = buffer.device_copy_.address();
    return buffer;
  }
  DevicePointer pointer = 0;
  if (auto ok = api.check(api.mem_host_get_device_pointer(&pointer, buffer.host_, 0),
                          "cuMemHostGetDevicePointer");
      !ok)
    return tl::make_unexpected(ok.error());
  buffer.device_address_ = pointer;
  return buffer;
}

MemoryMode memory_for_results(const Device& device) {
  return device.properties().can_map_host_memory ? MemoryMode::kMapped : MemoryMode::kCopy;
}

Result<void> SharedBuffer::upload(const Stream& stream, std::size_t bytes) const {
  const Driver& api = stream.device()->driver();
  if (mode_ == MemoryMode::kCopy) {
    return api.check(api.memcpy_h2d_async(device_copy_.pointer(), host_, bytes, stream.get()),
                     "cuMemcpyHtoDAsync");
  }
  if (mode_ == MemoryMode::kManaged && !stream.device()->properties().concurrent_managed_access) {
    return api.check(
        api.stream_attach_mem_async(stream.get(), managed_.get(), 0, kManagedAttachSingle),
        "cuStreamAttachMemAsync");
  }
  return {};
}

Result<void> SharedBuffer::download(const Stream& stream, std::size_t bytes) const {
  const Driver& api = stream.device()->driver();
  if (mode_ == MemoryMode::kCopy) {
    return api.check(api.memcpy_d2h_async(host_, device_copy_.pointer(), bytes, stream.get()),
                     "cuMemcpyDtoHAsync");
  }
  if (mode_ == MemoryMode::kManaged && !stream.device()->properties().concurrent_managed_access) {
    return api.check(
        api.stream_attach_mem_async(stream.get(), managed_.get(), 0, kManagedAttachHost),
        "cuStreamAttachMemAsync");
  }
  return {};
}

Result<Texture> Texture::create(const std::shared_ptr<const Device>& device, Address first_pixel,
                                int width, int height, std::size_t stride_bytes, PixelFormat format,
                                int channels, FilterMode filter) {
  const DeviceProperties& limits = device->properties();
  const auto aligned = [](Address value, int alignment) {
    return alignment <= 0 || value % static_cast<unsigned>(alignment) == 0;
  };
  if (!aligned(first_pixel, limits.texture_alignment) ||
      !aligned(stride_bytes, limits.texture_pitch_alignment)) {
    return fail(ErrorCode::kInvalidArgument,
                "texture: address and stride (" + std::to_string(stride_bytes) +
                    " bytes) must be multiples of " + std::to_string(limits.texture_alignment) +
                    " and " + std::to_string(limits.texture_pitch_alignment));
  }
  if (width > limits.max_texture_width || height > limits.max_texture_height ||
      stride_bytes > static_cast<std::size_t>(limits.max_texture_pitch_bytes)) {
    return fail(ErrorCode::kInvalidArgument, "a picture of " + std::to_string(width) + "x" +
                                                 std::to_string(height) + " is too large for " +
                                                 limits.name + "; its textures go to " +
                                                 std::to_string(limits.max_texture_width) + "x" +
                                                 std::to_string(limits.max_texture_height));
  }
  ResourceDesc resource;
  auto& pitch2d = resource.resource.pitch2d;
  pitch2d.pointer = static_cast<DevicePointer>(first_pixel);
  pitch2d.format = format == PixelFormat::kGray8    ? ArrayFormat::kUint8
                   : format == PixelFormat::kGray16 ? ArrayFormat::kUint16
                                                    : ArrayFormat::kFloat;
  pitch2d.channels = static_cast<unsigned>(channels);
  pitch2d.width = static_cast<std::size_t>(width);
  pitch2d.height = static_cast<std::size_t>(height);
  pitch2d.pitch_bytes = stride_bytes;
  TextureDesc description;
  description.filter_mode = filter;
  const Driver& api = device->driver();
  TextureHandle handle = 0;
  if (auto ok = api.check(api.texture_create(&handle, &resource, &description, nullptr),
                          "cuTexObjectCreate");
      !ok)
    return tl::make_unexpected(ok.error());
  Texture texture;
  texture.texture_ = Owner<TextureHandle>(device, handle, &Driver::texture_destroy);
  return texture;
}

Result<std::uint8_t*> PageLockedFrameAllocator::allocate(std::size_t size_bytes) {
  if (auto ok = device_->make_current(); !ok) return tl::make_unexpected(ok.error());
  auto memory = allocate_page_locked(device_, size_bytes);
  if (!memory) return tl::make_unexpected(memory.error());
  memory_.push_back(std::move(*memory));
  return static_cast<std::uint8_t*>(memory_.back().get());
}

}  // namespace patternd::cuda
