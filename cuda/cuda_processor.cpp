// The GPU's version of a frame's way: upload, rectify, pyramid, search, suppress, trace, refine,
// with one synchronisation at the end. Reads top-down in enqueue_stages().
#include "cuda/cuda_processor.h"

#include <array>
#include <optional>
#include <utility>

#include "cuda/gpu_matcher.h"
#include "cuda/luma_stage.h"
#include "pipeline/blob_stage.h"
#include "pipeline/frame_checks.h"
#include "pipeline/thread_pool.h"

namespace patternd::cuda {
namespace {

// A moment between two stages, in the order of the frame's way.
constexpr std::array<Stage, 6> kTimedStages = {Stage::kRectify, Stage::kPyramid, Stage::kSearch,
                                               Stage::kNms,     Stage::kTrace,   Stage::kRefine};

class CudaProcessor final : public FrameProcessor {
 public:
  CudaProcessor(std::shared_ptr<const Device> device, const ProcessorConfig& config)
      : device_(std::move(device)), config_(config), pool_(config.threads) {}

  [[nodiscard]] Result<void> allocate(const std::string& memory);

  [[nodiscard]] Result<void> process(const RawImageView& frame, FrameResult& result) override;
  [[nodiscard]] const char* backend() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override {
    return "cuda, " + device_->description() + ", memory " + name_of(mode_) +
           (graph_ ? ", one graph a frame" : ", " + device_->driver().missing_graphs());
  }

 private:
  [[nodiscard]] Result<void> allocate_matcher();
  [[nodiscard]] Result<void> allocate_blobs();
  [[nodiscard]] Result<void> enqueue_stages();
  [[nodiscard]] Result<void> enqueue_search();
  [[nodiscard]] Result<void> run_on_device(const RawImageView& frame);
  [[nodiscard]] Result<void> read_times(StageTimes& times) const;
  [[nodiscard]] Result<void> label(FrameResult& result);

  std::shared_ptr<const Device> device_;
  ProcessorConfig config_;
  ThreadPool pool_;  // for the blobs, which the CPU labels
  MemoryMode mode_ = MemoryMode::kCopy;
  std::optional<Stream> stream_;
  std::array<Event, kTimedStages.size() + 1> moments_;
  std::optional<LumaStage> luma_;
  std::optional<GpuMatcher> matcher_;
  std::optional<Graph> graph_;
  std::optional<BlobStage> blobs_;
  Image picture_;  // the searched picture on the host, for the blobs
};

Result<void> CudaProcessor::allocate(const std::string& memory) {
  if (auto ok = device_->make_current(); !ok) return ok;
  auto mode = memory_mode_for(device_->properties(), memory);
  if (!mode) return tl::make_unexpected(mode.error());
  mode_ = *mode;
  auto stream = Stream::create(device_);
  if (!stream) return tl::make_unexpected(stream.error());
  stream_ = std::move(*stream);
  for (Event& moment : moments_) {
    auto event = Event::create(device_);
    if (!event) return tl::make_unexpected(event.error());
    moment = std::move(*event);
  }
  auto luma = LumaStage::create(device_, mode_, config_);
  if (!luma) return tl::make_unexpected(luma.error());
  luma_ = std::move(*luma);
  if (auto ok = allocate_matcher(); !ok) return ok;
  if (auto ok = allocate_blobs(); !ok) return ok;
  if (!device_->driver().has_graphs()) return {};
  auto graph = Graph::record(*stream_, [&] { return enqueue_stages(); });
  if (!graph) return tl::make_unexpected(graph.error());
  graph_ = std::move(*graph);
  return {};
}

Result<void> CudaProcessor::allocate_matcher() {
  if (config_.patterns.empty()) return {};
  const DeviceView& picture = luma_->picture();
  MatcherConfig matcher{picture.width, picture.height, picture.format, config_.patterns, {}};
  matcher.valid = luma_->valid();
  auto created = GpuMatcher::create(device_, matcher, picture);
  if (!created) return tl::make_unexpected(created.error());
  matcher_ = std::move(*created);
  return {};
}

Result<void> CudaProcessor::allocate_blobs() {
  if (!config_.blobs) return {};
  const DeviceView& view = luma_->picture();
  auto picture = Image::create(view.width, view.height, view.format);
  if (!picture) return tl::make_unexpected(picture.error());
  picture_ = std::move(*picture);
  const auto dark = searched_dark_frame(config_, &pool_);
  if (!dark) return tl::make_unexpected(dark.error());
  auto created =
      BlobStage::create(view.width, view.height, view.format, *config_.blobs, dark->view(), &pool_);
  if (!created) return tl::make_unexpected(created.error());
  blobs_ = std::move(*created);
  return {};
}

Result<void> CudaProcessor::enqueue_stages() {
  if (auto ok = luma_->enqueue(*stream_); !ok) return ok;
  if (auto ok = stream_->record(moments_[1]); !ok) return ok;
  return matcher_ ? enqueue_search() : Result<void>();
}

Result<void> CudaProcessor::enqueue_search() {
  using Enqueue = Result<void> (GpuMatcher::*)(const Stream&) const;
  constexpr std::array<Enqueue, kTimedStages.size() - 1> kStages = {
      &GpuMatcher::enqueue_pyramid, &GpuMatcher::enqueue_search, &GpuMatcher::enqueue_suppression,
      &GpuMatcher::enqueue_trace, &GpuMatcher::enqueue_refine};
  for (std::size_t i = 0; i < kStages.size(); ++i) {
    if (auto ok = ((*matcher_).*kStages[i])(*stream_); !ok) return ok;
    if (auto ok = stream_->record(moments_[i + 2]); !ok) return ok;
  }
  return {};
}

Result<void> CudaProcessor::run_on_device(const RawImageView& frame) {
  if (auto ok = device_->make_current(); !ok) return ok;
  if (auto ok = stream_->record(moments_[0]); !ok) return ok;
  if (auto ok = luma_->upload_frame(*stream_, frame); !ok) return ok;
  if (auto ok = graph_ ? graph_->replay(*stream_) : enqueue_stages(); !ok) return ok;
  if (blobs_) {
    if (auto ok = download(*stream_, luma_->picture(), picture_.view()); !ok) return ok;
  }
  return stream_->wait();
}

Result<void> CudaProcessor::read_times(StageTimes& times) const {
  const std::size_t count = matcher_ ? kTimedStages.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const auto ns = moments_[i + 1].ns_since(moments_[i]);
    if (!ns) return tl::make_unexpected(ns.error());
    times[kTimedStages[i]] = *ns;
  }
  return {};
}

Result<void> CudaProcessor::label(FrameResult& result) {
  const StageTimer timer(result.times, Stage::kBlobs);
  return blobs_->process(std::as_const(picture_).view(), result.blobs, result.blobs_total);
}

Result<void> CudaProcessor::process(const RawImageView& frame, FrameResult& result) {
  result.matches.clear();
  result.blobs.clear();
  result.blobs_total = 0;
  result.times = {};
  if (auto ok = check_frame(config_, frame); !ok) return ok;
  if (auto ok = run_on_device(frame); !ok) return ok;
  if (auto ok = read_times(result.times); !ok) return ok;
  if (matcher_) {
    const StageTimer timer(result.times, Stage::kRefine);
    if (auto ok = matcher_->collect(result.matches); !ok) return ok;
    add_millimetres(config_, result.matches);
  }
  return blobs_ ? label(result) : Result<void>();
}

}  // namespace

Result<std::unique_ptr<FrameProcessor>> make_cuda_processor(
    const std::shared_ptr<const Device>& device, const std::string& memory,
    const ProcessorConfig& config) {
  auto processor = std::make_unique<CudaProcessor>(device, config);
  if (auto ok = processor->allocate(memory); !ok) return tl::make_unexpected(ok.error());
  return processor;
}

}  // namespace patternd::cuda
