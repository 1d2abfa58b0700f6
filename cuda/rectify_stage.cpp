#include "cuda/rectify_stage.h"

#include <algorithm>

namespace patternd::cuda {
namespace {

// Small blocks that are soon done: the last ones leave few multiprocessors idle.
constexpr int kWarpsPerBlock = 4;
constexpr int kMostRowsPerWarp = 16;
// Warps that a multiprocessor should be offered before a warp gets more than four rows at a time.
constexpr int kWarpsPerMultiprocessor = 32;

const char* kernel_name(PixelFormat format, const SourceLayout& source) {
  switch (format) {
    case PixelFormat::kGray8:
      return source.channel == 0 ? "patternd_rectify_gray8" : "patternd_rectify_gray8_second";
    case PixelFormat::kGray16:
      return "patternd_rectify_gray16";
    case PixelFormat::kGrayF32:
    case PixelFormat::kRgb8:
    case PixelFormat::kLabel32:
      break;
  }
  return "patternd_rectify_gray_f32";
}

// The texture unit gives 8- and 16-bit values as 0..1.
float scale_of(PixelFormat format, const SourceLayout& source) {
  if (format == PixelFormat::kGray8) return 255;
  if (format == PixelFormat::kGray16) return 65535.0F * static_cast<float>(1 << source.shift_bits);
  return 1;
}

// Rows that a warp takes: as many as there is work for all multiprocessors.
int rows_per_warp(const RectifyPlan& plan, int multiprocessors) {
  int rows = std::min(plan.side(), kMostRowsPerWarp);
  const auto warps = [&](int r) {
    return static_cast<std::int64_t>((plan.width + kMaxPatchSide - 1) / kMaxPatchSide) *
           ((plan.height + r - 1) / r);
  };
  while (rows > 4 && warps(rows) < std::int64_t{kWarpsPerMultiprocessor} * multiprocessors)
    rows /= 2;
  return rows;
}

template <class T>
Result<void> fill(DeviceBuffer& buffer, Address& address,
                  const std::shared_ptr<const Device>& device, const std::vector<T>& values) {
  if (values.empty()) return {};
  auto copied = DeviceBuffer::copy_of(device, values.data(), values.size() * sizeof(T));
  if (!copied) return tl::make_unexpected(copied.error());
  buffer = std::move(*copied);
  address = buffer.address();
  return {};
}

}  // namespace

Result<RectifyStage> RectifyStage::create(const std::shared_ptr<const Device>& device,
                                          const RectifyPlan& plan, PixelFormat format,
                                          double border, const SourceLayout& source) {
  RectifyStage stage;
  auto kernel = device->kernel(kernel_name(format, source));
  if (!kernel) return tl::make_unexpected(kernel.error());
  stage.kernel_ = *kernel;
  RectifyParameters& p = stage.parameters_;
  if (auto ok = fill(stage.patches_, p.patches, device, plan.patches); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = fill(stage.masks_, p.masks, device, plan.masks); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = fill(stage.tables_, p.tables, device, plan.tables); !ok)
    return tl::make_unexpected(ok.error());
  p.width = plan.width;
  p.height = plan.height;
  p.patch_side_log2 = plan.patch_side_log2;
  p.patches_across = plan.patches_across;
  p.rows_per_warp = rows_per_warp(plan, device->properties().multiprocessors);
  p.scale = scale_of(format, source);
  p.border = static_cast<float>(border);
  return stage;
}

Result<void> RectifyStage::enqueue(const Stream& stream, Address texture, const DeviceView& output,
                                   const DeviceView& pixels) const {
  RectifyParameters p = parameters_;
  p.texture = texture;
  p.pixels = pixels.address;
  p.source_stride = pixels.stride_bytes;
  p.output = output.address;
  p.stride_bytes = output.stride_bytes;
  Shape shape;
  shape.block_x = kWarpSize;
  shape.block_y = kWarpsPerBlock;
  shape.grid_x = static_cast<unsigned>((p.width + kMaxPatchSide - 1) / kMaxPatchSide);
  const int rows_per_block = p.rows_per_warp * kWarpsPerBlock;
  shape.grid_y = static_cast<unsigned>((p.height + rows_per_block - 1) / rows_per_block);
  return stream.launch(kernel_, shape, p);
}

}  // namespace patternd::cuda
