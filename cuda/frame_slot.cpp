// Reads top-down in start() and enqueue_stages().
#include "cuda/frame_slot.h"

#include <utility>

#include "pipeline/frame_checks.h"

namespace patternd::cuda {
namespace {

// As the service's compute thread, which asks is_done() as long before it sleeps.
constexpr std::int64_t kAwakeNs = 1'000'000;

}  // namespace

Result<std::unique_ptr<FrameSlot>> FrameSlot::create(const std::shared_ptr<const Device>& device,
                                                     std::shared_ptr<const FramePlan> plan) {
  std::unique_ptr<FrameSlot> slot(new FrameSlot(std::move(plan)));
  if (auto ok = slot->allocate(device); !ok) return tl::make_unexpected(ok.error());
  return slot;
}

Result<void> FrameSlot::allocate(const std::shared_ptr<const Device>& device) {
  auto stream = Stream::create(device);
  if (!stream) return tl::make_unexpected(stream.error());
  stream_ = std::move(*stream);
  for (Event* moment : {&start_, &brought_}) {
    auto event = Event::create(device);
    if (!event) return tl::make_unexpected(event.error());
    *moment = std::move(*event);
  }
  auto done = Event::create_to_sleep_for(device);
  if (!done) return tl::make_unexpected(done.error());
  done_ = std::move(*done);
  auto luma = LumaStage::create(device, plan_->mode, plan_->config, {plan_, &plan_->luma});
  if (!luma) return tl::make_unexpected(luma.error());
  luma_ = std::move(*luma);
  if (auto ok = allocate_matcher(device); !ok) return ok;
  if (auto ok = allocate_blobs(device); !ok) return ok;
  // A graph of nothing is no graph.
  const bool records = matcher_ || (blobs_ && !subtracts_frame_before());
  if (!device->driver().has_graphs() || !records) return {};
  auto graph = Graph::record(*stream_, [&] { return enqueue_stages(); });
  if (!graph) return tl::make_unexpected(graph.error());
  graph_ = std::move(*graph);
  return {};
}

Result<void> FrameSlot::allocate_matcher(const std::shared_ptr<const Device>& device) {
  if (!plan_->matcher) return {};
  auto created = GpuMatcher::create(device, {plan_, &*plan_->matcher}, luma_->picture());
  if (!created) return tl::make_unexpected(created.error());
  matcher_ = std::move(*created);
  return {};
}

Result<void> FrameSlot::allocate_blobs(const std::shared_ptr<const Device>& device) {
  if (!plan_->config.blobs) return {};
  for (Event& moment : blob_moments_) {
    auto event = Event::create(device);
    if (!event) return tl::make_unexpected(event.error());
    moment = std::move(*event);
  }
  auto created =
      GpuBlobStage::create(device, luma_->picture(), *plan_->config.blobs, plan_->reference);
  if (!created) return tl::make_unexpected(created.error());
  blobs_ = std::move(*created);
  return {};
}

// What is the same for every frame.
Result<void> FrameSlot::enqueue_stages() {
  if (matcher_)
    if (auto ok = enqueue_search(); !ok) return ok;
  return blobs_ && !subtracts_frame_before() ? enqueue_blobs() : Result<void>();
}

Result<void> FrameSlot::enqueue_search() {
  using Enqueue = Result<void> (GpuMatcher::*)(const Stream&) const;
  constexpr std::array<Enqueue, 5> kStages = {
      &GpuMatcher::enqueue_pyramid, &GpuMatcher::enqueue_search, &GpuMatcher::enqueue_suppression,
      &GpuMatcher::enqueue_trace, &GpuMatcher::enqueue_refine};
  for (const Enqueue enqueue : kStages)
    if (auto ok = ((*matcher_).*enqueue)(*stream_); !ok) return ok;
  return {};
}

// The frame to where the recorded stages find it, or those that read it where it lies. The host is
// done with this before the frame has arrived, so its launches cost nothing outside of the graph.
Result<void> FrameSlot::bring(const RawImageView& frame) {
  const auto brought = luma_->upload_frame(*stream_, frame);
  if (!brought) return tl::make_unexpected(brought.error());
  if (brought->copied_by_host) ++copied_by_host_;
  if (auto ok = luma_->enqueue(*stream_, *brought); !ok) return ok;
  return stream_->record(brought_);
}

Result<void> FrameSlot::enqueue_blobs() {
  if (auto ok = stream_->record(blob_moments_[0]); !ok) return ok;
  if (auto ok = blobs_->enqueue(*stream_); !ok) return ok;
  return stream_->record(blob_moments_[1]);
}

Result<void> FrameSlot::start(const RawImageView& frame, const FrameSlot* before) {
  if (auto ok = stream_->record(start_); !ok) return ok;
  if (auto ok = bring(frame); !ok) return ok;
  if (auto ok = graph_ ? graph_->replay(*stream_) : enqueue_stages(); !ok) return ok;
  if (!subtracts_frame_before()) return {};
  // Not in the graph, which cannot wait for what another one does in its turn.
  has_frame_before_ = before != nullptr;
  if (before != nullptr)
    if (auto ok = stream_->wait_for(before->blob_moments_[1]); !ok) return ok;
  return enqueue_blobs();
}

Result<void> FrameSlot::read_times(StageTimes& times) const {
  const auto rectify = brought_.ns_since(start_);
  if (!rectify) return tl::make_unexpected(rectify.error());
  times[Stage::kRectify] = *rectify;
  if (matcher_) matcher_->read_times(times);
  if (!blobs_) return {};
  const auto ns = blob_moments_[1].ns_since(blob_moments_[0]);
  if (!ns) return tl::make_unexpected(ns.error());
  times[Stage::kBlobs] = *ns;
  return {};
}

Result<void> FrameSlot::finish(FrameResult& result) {
  result.clear();
  if (auto ok = stream_->wait(done_, kAwakeNs); !ok) return ok;
  if (auto ok = read_times(result.times); !ok) return ok;
  if (!matcher_) return {};
  const StageTimer timer(result.times, Stage::kRefine);
  if (auto ok = matcher_->collect(result.matches); !ok) return ok;
  add_millimetres(plan_->config, result.matches);
  return {};
}

Result<void> FrameSlot::finish_blobs(FrameResult& result) {
  if (subtracts_frame_before() && !has_frame_before_) return {};
  const StageTimer timer(result.times, Stage::kBlobs);
  return blobs_->collect(*stream_, result.blobs, result.blobs_total);
}

Result<void> FrameSlot::download_labelled(MutableImageView to) const {
  if (auto ok = download(*stream_, blobs_->labelled(), to); !ok) return ok;
  return stream_->wait();
}

}  // namespace patternd::cuda
