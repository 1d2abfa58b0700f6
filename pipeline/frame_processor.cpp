// The CPU's version of a frame's way: convert, rectify, search, label. Reads top-down.
#include "pipeline/frame_processor.h"

#include <algorithm>
#include <utility>

#include "pipeline/blob_stage.h"
#include "pipeline/frame_checks.h"
#include "pipeline/rectify.h"
#include "pipeline/thread_pool.h"

namespace patternd {
namespace {

class CpuProcessor final : public FrameProcessor {
 public:
  explicit CpuProcessor(const ProcessorConfig& config)
      : config_(config), pool_(std::make_unique<ThreadPool>(config.threads)) {}

  // Allocates everything that frames need.
  [[nodiscard]] Result<void> allocate();

  // A frame is computed when it is collected.
  [[nodiscard]] Result<void> submit(const RawImageView& frame) override {
    auto fits = check_frame(config_, frame);
    if (fits) frame_ = frame;
    return fits;
  }
  [[nodiscard]] bool ready() const override { return true; }
  [[nodiscard]] Result<void> collect(FrameResult& result) override;
  void restart() override {
    if (blobs_) blobs_->restart();
  }
  [[nodiscard]] const char* backend() const override { return "cpu"; }
  [[nodiscard]] std::string description() const override {
    return "cpu, " + std::to_string(pool_->thread_count()) + " threads";
  }

 private:
  ProcessorConfig config_;
  std::unique_ptr<ThreadPool> pool_;
  RawImageView frame_;  // in flight
  Image luma_;          // only where the camera's format has no luma plane
  Image rectified_;     // only with a calibration
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
    auto dark = searched_dark_frame(config_, pool_.get());
    if (!dark) return tl::make_unexpected(dark.error());
    auto created = BlobStage::create(width, height, format, *config_.blobs,
                                     std::as_const(*dark).view(), pool_.get());
    if (!created) return tl::make_unexpected(created.error());
    blobs_ = std::move(*created);
  }
  return {};
}

Result<void> CpuProcessor::collect(FrameResult& result) {
  result.clear();
  ImageView picture;
  {
    const StageTimer timer(result.times, Stage::kRectify);
    picture = to_luma(frame_, luma_.view());
    if (rectifier_) {
      rectifier_->process(picture, rectified_.view(), pool_.get());
      picture = rectified_.view();
    }
  }
  if (matcher_) {
    matcher_->match(picture, result.matches, result.times);
    add_millimetres(config_, result.matches);
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
