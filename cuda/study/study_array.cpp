#include "cuda/study/study_array.h"

namespace patternd::cuda {

Result<StudyArray> StudyArray::create(const std::shared_ptr<const Device>& device, int width,
                                      int height) {
  const Driver& api = device->driver();
  if (api.array_create == nullptr || api.array_destroy == nullptr)
    return fail(ErrorCode::kUnsupported, "the driver has no arrays");
  ArrayDesc shape;
  shape.width = static_cast<std::size_t>(width);
  shape.height = static_cast<std::size_t>(height);
  shape.format = ArrayFormat::kFloat;
  shape.channels = 1;
  ArrayHandle handle = nullptr;
  if (auto ok = api.check(api.array_create(&handle, &shape), "cuArrayCreate"); !ok)
    return tl::make_unexpected(ok.error());
  StudyArray array;
  array.array_ = Owner<ArrayHandle>(device, handle, &Driver::array_destroy);
  ResourceDesc resource;
  resource.type = ResourceType::kArray;
  resource.resource.array = handle;
  TextureDesc description;
  description.filter_mode = FilterMode::kLinear;
  TextureHandle texture = 0;
  if (auto ok = api.check(api.texture_create(&texture, &resource, &description, nullptr),
                          "cuTexObjectCreate");
      !ok)
    return tl::make_unexpected(ok.error());
  array.texture_ = Owner<TextureHandle>(device, texture, &Driver::texture_destroy);
  return array;
}

Result<void> StudyArray::fill(const Stream& stream, const DeviceView& from) const {
  Copy2d copy;
  copy.src_device = static_cast<DevicePointer>(from.address);
  copy.src_pitch = static_cast<std::size_t>(from.stride_bytes);
  copy.dst_type = MemoryType::kArray;
  copy.dst_array = array_.get();
  copy.width_bytes = static_cast<std::size_t>(from.width) * sizeof(float);
  copy.height = static_cast<std::size_t>(from.height);
  const Driver& api = stream.device()->driver();
  return api.check(api.memcpy_2d_async(&copy, stream.get()), "cuMemcpy2DAsync to an array");
}

}  // namespace patternd::cuda
