#include "cuda/pyramid_stage.h"

#include <algorithm>
#include <utility>

namespace patternd::cuda {
namespace {

PyramidLevel as_parameter(const DeviceView& view) {
  return {view.address, view.stride_bytes, view.width, view.height, 0};
}

// A block for each tile of the level that is read.
Shape shape_of(const DeviceView& in) {
  Shape shape;
  shape.block_x = kPyramidThreads;
  shape.grid_x = static_cast<unsigned>((in.width + kPyramidTile - 1) / kPyramidTile);
  shape.grid_y = static_cast<unsigned>((in.height + kPyramidTile - 1) / kPyramidTile);
  return shape;
}

}  // namespace

Result<PyramidStage> PyramidStage::create(const std::shared_ptr<const Device>& device, int width,
                                          int height, PixelFormat format, int levels) {
  PyramidStage stage;
  const bool wide = format == PixelFormat::kGray16;
  const std::pair<Kernel*, const char*> wanted[] = {
      {&stage.kernel_, wide ? "patternd_pyramid_halve_gray16" : "patternd_pyramid_halve_gray8"},
      {&stage.take_, wide ? "patternd_pyramid_take_gray16" : "patternd_pyramid_take_gray8"}};
  for (const auto& [kernel, name] : wanted) {
    auto found = device->kernel(name);
    if (!found) return tl::make_unexpected(found.error());
    *kernel = *found;
  }
  for (int level = 1; level <= levels; ++level) {
    auto picture = DevicePicture::create(device, width >> level, height >> level, format);
    if (!picture) return tl::make_unexpected(picture.error());
    stage.levels_.push_back(std::move(*picture));
  }
  return stage;
}

PyramidParameters PyramidStage::parameters(int first_level, const DeviceView& from) const {
  PyramidParameters p{};
  const int count = std::min(kPyramidLevelsPerLaunch, levels() - first_level);
  p.levels[0] = as_parameter(from);
  for (int i = 1; i <= count; ++i) p.levels[i] = as_parameter(level(first_level + i));
  p.level_count = count + 1;
  return p;
}

Result<void> PyramidStage::enqueue(const Stream& stream, const DeviceView& base) const {
  return enqueue_above(stream, 0, base);
}

Result<void> PyramidStage::enqueue_taking(const Stream& stream, const DeviceView& frame,
                                          const DeviceView& base) const {
  PyramidParameters p = parameters(0, frame);
  p.copy = as_parameter(base);
  if (auto ok = stream.launch(take_, shape_of(frame), p); !ok) return ok;
  return enqueue_above(stream, kPyramidLevelsPerLaunch, base);
}

Result<void> PyramidStage::enqueue_above(const Stream& stream, int first_level,
                                         const DeviceView& base) const {
  for (int first = first_level; first < levels(); first += kPyramidLevelsPerLaunch) {
    const DeviceView& in = first == 0 ? base : level(first);
    if (auto ok = stream.launch(kernel_, shape_of(in), parameters(first, in)); !ok) return ok;
  }
  return {};
}

}  // namespace patternd::cuda
