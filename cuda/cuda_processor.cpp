// The GPU's version of a frame's way. A frame is enqueued whole, with one synchronisation at its
// end (frame_slot.cpp); several may be in flight, each in a slot of its own, taken in turn.
#include "cuda/cuda_processor.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "cuda/frame_slot.h"
#include "pipeline/components.h"
#include "pipeline/frame_checks.h"
#include "pipeline/thread_pool.h"

namespace patternd::cuda {
namespace {

class CudaProcessor final : public FrameProcessor {
 public:
  CudaProcessor(std::shared_ptr<const Device> device, const ProcessorConfig& config)
      : device_(std::move(device)), pool_(config.threads) {}

  [[nodiscard]] Result<void> allocate(const std::string& memory, const ProcessorConfig& config,
                                      int streams);
  // Gives the device up where `outcome` is its failure, and hands it on.
  [[nodiscard]] Result<void> note(Result<void> outcome);

  [[nodiscard]] std::size_t depth() const override { return slots_.size(); }
  [[nodiscard]] Result<void> submit(const RawImageView& frame) override;
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] Result<void> collect(FrameResult& result) override;
  [[nodiscard]] const char* backend() const override { return "cuda"; }
  [[nodiscard]] std::string description() const override;

 private:
  [[nodiscard]] Result<void> allocate_labeller();
  [[nodiscard]] Result<void> collect_blobs(FrameSlot& slot, FrameResult& result);
  [[nodiscard]] Result<void> label_on_cpu(const FrameSlot& slot, FrameResult& result);

  std::shared_ptr<const Device> device_;
  ThreadPool pool_;  // for what the CPU does of blobs
  std::shared_ptr<const FramePlan> plan_;
  std::vector<std::unique_ptr<FrameSlot>> slots_;
  std::size_t oldest_ = 0;  // the slot of the oldest frame in flight
  std::size_t in_flight_ = 0;
  const FrameSlot* last_started_ = nullptr;
  bool failed_ = false;  // a frame may have been left half-way
  // Frames with more blobs than the GPU has room for.
  std::optional<ComponentLabeller> labeller_;
  Image labelled_;
  std::atomic<std::uint64_t> frames_labelled_by_cpu_{0};
};

Result<void> CudaProcessor::allocate(const std::string& memory, const ProcessorConfig& config,
                                     int streams) {
  if (auto ok = device_->make_current(); !ok) return ok;
  const auto mode = memory_mode_for(device_->properties(), memory);
  if (!mode) return tl::make_unexpected(mode.error());
  auto plan = FramePlan::create(device_, *mode, config, &pool_);
  if (!plan) return tl::make_unexpected(plan.error());
  plan_ = std::move(*plan);
  for (int i = 0; i < std::max(streams, 1); ++i) {
    auto slot = FrameSlot::create(device_, plan_);
    if (!slot) return tl::make_unexpected(slot.error());
    slots_.push_back(std::move(*slot));
  }
  return allocate_labeller();
}

Result<void> CudaProcessor::allocate_labeller() {
  if (!plan_->config.blobs) return {};
  const DeviceView& view = slots_[0]->picture();
  auto picture = Image::create(view.width, view.height, view.format);
  if (!picture) return tl::make_unexpected(picture.error());
  labelled_ = std::move(*picture);
  LabelOptions options;
  options.pool = &pool_;
  auto labeller = ComponentLabeller::create(view.width, view.height, view.format,
                                            *plan_->config.blobs, options);
  if (!labeller) return tl::make_unexpected(labeller.error());
  labeller_ = std::move(*labeller);
  return {};
}

Result<void> CudaProcessor::submit(const RawImageView& frame) {
  if (auto ok = check_frame(plan_->config, frame); !ok) return ok;
  if (in_flight_ == slots_.size())
    return fail(ErrorCode::kInternal, "more frames submitted than may be in flight");
  if (failed_) {
    return fail(ErrorCode::kDevice,
                "the GPU failed on a frame before this one; its processor must be made anew");
  }
  if (auto ok = note(device_->make_current()); !ok) return ok;
  FrameSlot& slot = *slots_[(oldest_ + in_flight_) % slots_.size()];
  if (auto ok = note(slot.start(frame, std::exchange(last_started_, nullptr))); !ok) return ok;
  last_started_ = &slot;
  ++in_flight_;
  return {};
}

// A device that failed is not to be used by others either.
Result<void> CudaProcessor::note(Result<void> outcome) {
  if (outcome || outcome.error().code != ErrorCode::kDevice) return outcome;
  failed_ = true;
  device_->give_up();
  return outcome;
}

bool CudaProcessor::ready() const { return !device_->make_current() || slots_[oldest_]->is_done(); }

Result<void> CudaProcessor::collect(FrameResult& result) {
  if (in_flight_ == 0) return fail(ErrorCode::kInternal, "no frame is in flight");
  FrameSlot& slot = *slots_[oldest_];
  oldest_ = (oldest_ + 1) % slots_.size();
  --in_flight_;
  if (auto ok = note(device_->make_current()); !ok) return ok;
  auto searched = note(slot.finish(result));
  if (!searched && searched.error().code != ErrorCode::kExhausted) return searched;
  if (auto ok = collect_blobs(slot, result); !ok) return ok;
  return searched;
}

Result<void> CudaProcessor::collect_blobs(FrameSlot& slot, FrameResult& result) {
  if (!labeller_) return {};
  auto labelled = slot.finish_blobs(result);
  if (!labelled && labelled.error().code == ErrorCode::kExhausted)
    labelled = label_on_cpu(slot, result);
  return note(labelled);
}

Result<void> CudaProcessor::label_on_cpu(const FrameSlot& slot, FrameResult& result) {
  frames_labelled_by_cpu_.fetch_add(1, std::memory_order_relaxed);
  const StageTimer timer(result.times, Stage::kBlobs);
  if (auto ok = slot.download_labelled(labelled_.view()); !ok) return ok;
  if (auto ok = labeller_->process(std::as_const(labelled_).view()); !ok) return ok;
  labeller_->largest(result.blobs);
  result.blobs_total = static_cast<std::uint64_t>(labeller_->count());
  return {};
}

std::string CudaProcessor::description() const {
  const std::size_t streams = slots_.size();
  std::uint64_t copied = 0;
  for (const auto& slot : slots_) copied += slot->copied_by_host();
  std::string text =
      "cuda, " + device_->description() + ", memory " + name_of(plan_->mode) + ", " +
      std::to_string(streams) + (streams == 1 ? " stream" : " streams") +
      (slots_[0]->has_graph() ? ", one graph a frame" : ", " + device_->driver().missing_graphs());
  if (copied > 0) text += ", " + std::to_string(copied) + " frames copied by the host";
  const std::uint64_t by_cpu = frames_labelled_by_cpu_.load(std::memory_order_relaxed);
  if (by_cpu > 0) {
    text += "; blobs of " + std::to_string(by_cpu) +
            " frames labelled by the CPU: more components than the GPU has room for (" +
            std::to_string(GpuBlobStage::kCapacity) + ")";
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<FrameProcessor>> make_cuda_processor(
    const std::shared_ptr<const Device>& device, const std::string& memory,
    const ProcessorConfig& config, int streams) {
  auto processor = std::make_unique<CudaProcessor>(device, config);
  if (auto ok = processor->note(processor->allocate(memory, config, streams)); !ok)
    return tl::make_unexpected(ok.error());
  return processor;
}

}  // namespace patternd::cuda
