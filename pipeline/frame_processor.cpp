// The CPU's version of a frame's way: convert, rectify, search, label. Reads top-down.
#include "pipeline/frame_processor.h"

#include <algorithm>
#include <utility>

#include "pipeline/blob_stage.h"
#include "pipeline/rectify.h"
#include "pipeline/thread_pool.h"

namespace patternd {
namespace {

class CpuProcessor final : public FrameProcessor {
 public:
  explicit CpuProcessor(const ProcessorConfig& config)
      : config_(config), pool_(std::make_unique<ThreadPool>(config.threads)) {}

  // Allocates everything that process() uses.
  [[nodiscard]] Result<void> allocate();

  [[nodiscard]] Result<void> process(const RawImageView& frame, FrameResult& result) override;
  [[nodiscard]] const char* backend() const override { return "cpu"; }
  [[nodiscard]] std::string description() const override {
    return "cpu, " + std::to_string(pool_->thread_count()) + " threads";
  }

 private:
  [[nodiscard]] Result<void> check(const RawImageView& frame) const;
  [[nodiscard]] Result<Image> dark_frame(int width, int height, PixelFormat format) const;
  void add_millimetres(std::vector<Match>& matches) const;

  ProcessorConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  Image luma_;       // only where the camera's format has no luma plane
  Image rectified_;  // only with a calibration
  std::optional<Rectifier> rectifier_;
  std::optional<Matcher> matcher_;
  std::optional<BlobStage> blobs_;
};

Result<void> CpuProcessor::allocate() {
  const PixelFormat format = luma_format(config_.format);
  int width = config_.width;
  int height = config_.height;
  if (!has_luma_plane(config_.format)) {
    auto luma = Image::create(width, height, format);
    if (!luma) return tl::make_unexpected(luma.error());
    luma_ = std::move(*luma);
  }
  if (config_.calibration) {
    auto rectifier = Rectifier::create(*config_.calibration, format);
    if (!rectifier) return tl::make_unexpected(rectifier.error());
    rectifier_ = std::move(*rectifier);
    width = config_.calibration->output_width();
    height = config_.calibration->output_height();
    auto rectified = Image::create(width, height, format);
    if (!rectified) return tl::make_unexpected(rectified.error());
    rectified_ = std::move(*rectified);
  }
  if (!config_.patterns.empty()) {
    MatcherConfig matcher{width, height, format, config_.patterns, {}};
    if (rectifier_ && !rectifier_->all_valid()) matcher.valid = rectifier_->valid_mask();
    auto created = Matcher::create(matcher, pool_.get());
    if (!created) return tl::make_unexpected(created.error());
    matcher_ = std::move(*created);
  }
  if (config_.blobs) {
    auto dark = dark_frame(width, height, format);
    if (!dark) return tl::make_unexpected(dark.error());
    auto created = BlobStage::create(width, height, format, *config_.blobs,
                                     std::as_const(*dark).view(), pool_.get());
    if (!created) return tl::make_unexpected(created.error());
    blobs_ = std::move(*created);
  }
  return {};
}

// The configured dark frame as the searched picture shows it: rectified like the frames. Empty
// without one.
Result<Image> CpuProcessor::dark_frame(int width, int height, PixelFormat format) const {
  const auto& dark = config_.dark_frame;
  if (dark == nullptr || config_.blobs->reference != BlobParams::Reference::kDark) return Image();
  const ImageView view = dark->view();
  if (view.width != config_.width || view.height != config_.height || view.format != format) {
    return fail(ErrorCode::kInvalidArgument,
                "the dark frame is " + std::to_string(view.width) + "x" +
                    std::to_string(view.height) + " " + name_of(view.format) +
                    "; the camera gives " + std::to_string(config_.width) + "x" +
                    std::to_string(config_.height) + " " + name_of(format));
  }
  if (!rectifier_) return Image::copy_of(view);
  auto rectified = Image::create(width, height, format);
  if (rectified) rectifier_->process(view, rectified->view(), pool_.get());
  return rectified;
}

Result<void> CpuProcessor::check(const RawImageView& frame) const {
  if (frame.data != nullptr && frame.width == config_.width && frame.height == config_.height &&
      frame.format == config_.format && frame.bayer == config_.bayer) {
    return {};
  }
  return fail(ErrorCode::kInvalidArgument,
              "frame is " + std::to_string(frame.width) + "x" + std::to_string(frame.height) + " " +
                  name_of(frame.format, frame.bayer) + "; configured is " +
                  std::to_string(config_.width) + "x" + std::to_string(config_.height) + " " +
                  name_of(config_.format, config_.bayer));
}

void CpuProcessor::add_millimetres(std::vector<Match>& matches) const {
  if (!config_.calibration || !config_.calibration->plane ||
      config_.calibration->plane->mm_per_px <= 0) {
    return;
  }
  for (Match& match : matches) {
    const Point2 mm = config_.calibration->to_mm({match.x_px, match.y_px});
    match.has_mm = true;
    match.x_mm = mm.x;
    match.y_mm = mm.y;
  }
}

Result<void> CpuProcessor::process(const RawImageView& frame, FrameResult& result) {
  result.matches.clear();
  result.blobs.clear();
  result.blobs_total = 0;
  result.times = {};
  if (auto ok = check(frame); !ok) return ok;

  ImageView picture;
  {
    const StageTimer timer(result.times, Stage::kRectify);
    picture = to_luma(frame, luma_.view());
    if (rectifier_) {
      rectifier_->process(picture, rectified_.view(), pool_.get());
      picture = rectified_.view();
    }
  }
  if (matcher_) {
    matcher_->match(picture, result.matches, result.times);
    add_millimetres(result.matches);
  }
  if (blobs_) {
    const StageTimer timer(result.times, Stage::kBlobs);
    return blobs_->process(picture, result.blobs, result.blobs_total);
  }
  return {};
}

Result<void> check_config(const ProcessorConfig& config) {
  if (config.width < 1 || config.height < 1 || config.width > kMaxImageSide ||
      config.height > kMaxImageSide) {
    return fail(ErrorCode::kInvalidArgument,
                "frames are " + std::to_string(config.width) + "x" + std::to_string(config.height) +
                    "; both must be 1 to " + std::to_string(kMaxImageSide));
  }
  const auto& calibration = config.calibration;
  if (calibration &&
      (calibration->image_width != config.width || calibration->image_height != config.height)) {
    return fail(ErrorCode::kInvalidArgument,
                "the calibration is for pictures of " + std::to_string(calibration->image_width) +
                    "x" + std::to_string(calibration->image_height) + ", the frames are " +
                    std::to_string(config.width) + "x" + std::to_string(config.height) +
                    "; calibrate at the size that the camera gives");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<FrameProcessor>> make_cpu_processor(const ProcessorConfig& config) {
  if (auto ok = check_config(config); !ok) return tl::make_unexpected(ok.error());
  auto processor = std::make_unique<CpuProcessor>(config);
  if (auto ok = processor->allocate(); !ok) return tl::make_unexpected(ok.error());
  return processor;
}

}  // namespace patternd
