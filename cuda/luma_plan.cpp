#include "cuda/luma_plan.h"

#include <utility>

#include "pipeline/frame_luma.h"

namespace patternd::cuda {
namespace {

bool is_packed(RawFormat format) {
  return format == RawFormat::kYuyv || format == RawFormat::kUyvy;
}
bool is_shifted(RawFormat format) { return format == RawFormat::kY10 || format == RawFormat::kY12; }

Result<Image> valid_picture(const RectifyPlan& plan) {
  const std::vector<std::uint8_t> mask = valid_mask(plan);
  return Image::copy_of({mask.data(), plan.width, plan.height, static_cast<std::size_t>(plan.width),
                         PixelFormat::kGray8});
}

}  // namespace

int bits_below_full_scale(RawFormat format) {
  switch (format) {
    case RawFormat::kY10:
    case RawFormat::kBayer10:
      return 6;
    case RawFormat::kY12:
    case RawFormat::kBayer12:
      return 4;
    case RawFormat::kBayer14:
      return 2;
    default:
      return 0;
  }
}

Result<LumaPlan> LumaPlan::create(const std::shared_ptr<const Device>& device,
                                  const ProcessorConfig& config) {
  LumaPlan made;
  made.width = config.width;
  made.height = config.height;
  made.format = luma_format(config.format);
  // Rectification reads luma out of these by its texture.
  const bool by_texture =
      config.calibration.has_value() && (is_packed(config.format) || is_shifted(config.format));
  made.converts = !has_luma_plane(config.format) && !by_texture;
  if (!config.calibration) return made;
  SourceLayout source;
  if (by_texture) {
    source.channel = config.format == RawFormat::kUyvy ? 1 : 0;
    source.shift_bits = bits_below_full_scale(config.format);
    made.texture_channels = is_packed(config.format) ? 2 : 1;
  }
  auto plan = plan_rectification(*config.calibration);
  if (!plan) return tl::make_unexpected(plan.error());
  auto stage = RectifyStage::create(device, *plan, made.format, config.calibration->border, source);
  if (!stage) return tl::make_unexpected(stage.error());
  made.rectify = std::move(*stage);
  auto valid = valid_picture(*plan);
  if (!valid) return tl::make_unexpected(valid.error());
  made.valid = std::move(*valid);
  made.width = plan->width;
  made.height = plan->height;
  return made;
}

}  // namespace patternd::cuda
