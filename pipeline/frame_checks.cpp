#include "pipeline/frame_checks.h"

#include <cmath>
#include <string>

#include "calibration/plane_point.h"
#include "pipeline/rectify.h"

namespace patternd {

Result<void> check_frame(const ProcessorConfig& config, const RawImageView& frame) {
  if (frame.data != nullptr && frame.width == config.width && frame.height == config.height &&
      frame.format == config.format && frame.bayer == config.bayer &&
      frame.stride_bytes >= min_stride_bytes(config.format, config.width)) {
    return {};
  }
  return fail(ErrorCode::kInvalidArgument,
              "frame is " + std::to_string(frame.width) + "x" + std::to_string(frame.height) + " " +
                  name_of(frame.format, frame.bayer) + "; configured is " +
                  std::to_string(config.width) + "x" + std::to_string(config.height) + " " +
                  name_of(config.format, config.bayer));
}

void add_millimetres(const ProcessorConfig& config, std::vector<Match>& matches) {
  const auto& model = config.calibration;
  if (!model || !model->plane || model->plane->mm_per_px <= 0) return;
  for (Match& match : matches) {
    const Covariance2 covariance{match.x_std_px * match.x_std_px, 0, 0,
                                 match.y_std_px * match.y_std_px};
    const UncertainPoint mm = output_to_mm(*model, {{match.x_px, match.y_px}, covariance});
    match.has_mm = true;
    match.x_mm = mm.point.x;
    match.y_mm = mm.point.y;
    match.x_std_mm = std::sqrt(mm.covariance[0]);
    match.y_std_mm = std::sqrt(mm.covariance[3]);
  }
}

Result<Image> searched_dark_frame(const ProcessorConfig& config, ThreadPool* pool) {
  const auto& dark = config.dark_frame;
  if (dark == nullptr || !config.blobs || config.blobs->reference != BlobParams::Reference::kDark)
    return Image();
  const ImageView view = dark->view();
  const PixelFormat format = luma_format(config.format);
  if (view.width != config.width || view.height != config.height || view.format != format) {
    return fail(ErrorCode::kInvalidArgument,
                "the dark frame is " + std::to_string(view.width) + "x" +
                    std::to_string(view.height) + " " + name_of(view.format) +
                    "; the camera gives " + std::to_string(config.width) + "x" +
                    std::to_string(config.height) + " " + name_of(format));
  }
  if (!config.calibration) return Image::copy_of(view);
  const auto rectifier = Rectifier::create(*config.calibration, format);
  if (!rectifier) return tl::make_unexpected(rectifier.error());
  auto rectified = Image::create(config.calibration->output_width(),
                                 config.calibration->output_height(), format);
  if (rectified) rectifier->process(view, rectified->view(), pool);
  return rectified;
}

}  // namespace patternd
