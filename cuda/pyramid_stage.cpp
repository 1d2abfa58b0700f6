#include "cuda/pyramid_stage.h"

#include <algorithm>

namespace patternd::cuda {
namespace {

PyramidLevel as_parameter(const DeviceView& view) {
  return {view.address, view.stride_bytes, view.width, view.height, 0};
}

}  // namespace

Result<PyramidStage> PyramidStage::create(const std::shared_ptr<const Device>& device, int width,
                                          int height, PixelFormat format, int levels) {
  PyramidStage stage;
  auto kernel = device->kernel(format == PixelFormat::kGray16 ? "patternd_pyramid_halve_gray16"
                                                              : "patternd_pyramid_halve_gray8");
  if (!kernel) return tl::make_unexpected(kernel.error());
  stage.kernel_ = *kernel;
  for (int level = 1; level <= levels; ++level) {
    auto picture = DevicePicture::create(device, width >> level, height >> level, format);
    if (!picture) return tl::make_unexpected(picture.error());
    stage.levels_.push_back(std::move(*picture));
  }
  return stage;
}

Result<void> PyramidStage::enqueue(const Stream& stream, const DeviceView& base,
                                   Address moment) const {
  for (int first = 0; first < levels(); first += kPyramidLevelsPerLaunch) {
    const DeviceView& in = first == 0 ? base : level(first);
    PyramidParameters p{};
    const int count = std::min(kPyramidLevelsPerLaunch, levels() - first);
    p.levels[0] = as_parameter(in);
    for (int i = 1; i <= count; ++i) p.levels[i] = as_parameter(level(first + i));
    p.level_count = count + 1;
    p.moment = first == 0 ? moment : 0;
    const int row_bytes = in.width * (in.format == PixelFormat::kGray16 ? 2 : 1);
    Shape shape;
    shape.block_x = kPyramidThreads;
    shape.grid_x = static_cast<unsigned>((row_bytes + kPyramidTileBytes - 1) / kPyramidTileBytes);
    shape.grid_y = static_cast<unsigned>((in.height + kPyramidTileRows - 1) / kPyramidTileRows);
    if (auto ok = stream.launch(kernel_, shape, p); !ok) return ok;
  }
  return {};
}

}  // namespace patternd::cuda
