// A place for one frame in flight on the GPU: its stream and everything that the frame's stages
// write, so that frames in other places are computed at the same time.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "cuda/blob_stage.h"
#include "cuda/frame_plan.h"
#include "cuda/gpu_matcher.h"
#include "cuda/luma_stage.h"
#include "pipeline/frame_processor.h"

namespace patternd::cuda {

class FrameSlot {
 public:
  // Allocates all of it, and records the frame's launches as a graph where the driver has graphs.
  [[nodiscard]] static Result<std::unique_ptr<FrameSlot>> create(
      const std::shared_ptr<const Device>& device, std::shared_ptr<const FramePlan> plan);

  // Enqueues a frame's whole way: upload, rectify, pyramid, search, suppress, trace, refine, blobs.
  // Waits for nothing. The frame's pixels must stay until is_done() or finish(). `before`: the slot
  // of the frame before, whose picture blobs.reference alternate subtracts; null: there is none.
  [[nodiscard]] Result<void> start(const RawImageView& frame, const FrameSlot* before);
  [[nodiscard]] bool is_done() const { return stream_->is_idle(); }
  // Waits for the frame and overwrites `result`, except its blobs, which it empties.
  [[nodiscard]] Result<void> finish(FrameResult& result);
  // After finish(), where blobs are configured: theirs. kExhausted where there were more than the
  // GPU has room for; what it has labelled can then be downloaded.
  [[nodiscard]] Result<void> finish_blobs(FrameResult& result);
  [[nodiscard]] Result<void> download_labelled(MutableImageView to) const;

  // The searched picture.
  [[nodiscard]] const DeviceView& picture() const { return luma_->picture(); }
  [[nodiscard]] bool has_graph() const { return graph_.has_value(); }
  // Frames that the host had to copy to where kernels read them. From any thread.
  [[nodiscard]] std::uint64_t copied_by_host() const { return copied_by_host_; }

 private:
  explicit FrameSlot(std::shared_ptr<const FramePlan> plan) : plan_(std::move(plan)) {}
  [[nodiscard]] Result<void> allocate(const std::shared_ptr<const Device>& device);
  [[nodiscard]] Result<void> allocate_matcher(const std::shared_ptr<const Device>& device);
  [[nodiscard]] Result<void> allocate_blobs(const std::shared_ptr<const Device>& device);
  [[nodiscard]] Result<void> enqueue_stages();
  [[nodiscard]] Result<void> bring(const RawImageView& frame);
  [[nodiscard]] Result<void> enqueue_search();
  [[nodiscard]] Result<void> enqueue_blobs();
  [[nodiscard]] bool subtracts_frame_before() const { return plan_->reference.is_frame_before(); }
  [[nodiscard]] Result<void> read_times(StageTimes& times) const;

  std::shared_ptr<const FramePlan> plan_;
  std::optional<Stream> stream_;
  Event start_;
  Event brought_;  // and rectified
  Event done_;     // to wait for
  std::optional<LumaStage> luma_;
  std::optional<GpuMatcher> matcher_;
  std::optional<GpuBlobStage> blobs_;
  std::array<Event, 2> blob_moments_;  // before and after
  bool has_frame_before_ = false;
  std::optional<Graph> graph_;
  std::atomic<std::uint64_t> copied_by_host_{0};
};

}  // namespace patternd::cuda
