// A place for one frame in flight on the GPU: its stream and everything that the frame's stages
// write, so that frames in other places are computed at the same time.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "cuda/gpu_matcher.h"
#include "cuda/luma_stage.h"
#include "pipeline/frame_processor.h"

namespace patternd::cuda {

class FrameSlot {
 public:
  // Allocates all of it, and records the frame's launches as a graph where the driver has graphs.
  [[nodiscard]] static Result<std::unique_ptr<FrameSlot>> create(
      const std::shared_ptr<const Device>& device, MemoryMode mode, const ProcessorConfig& config);

  // Enqueues a frame's whole way: upload, rectify, pyramid, search, suppress, trace, refine; with
  // blobs configured the searched picture comes back too. Waits for nothing. The frame's pixels
  // must stay until is_done() or finish().
  [[nodiscard]] Result<void> start(const RawImageView& frame);
  [[nodiscard]] bool is_done() const { return stream_->is_idle(); }
  // Waits for the frame and overwrites `result`, except its blobs, which it empties.
  [[nodiscard]] Result<void> finish(FrameResult& result);

  // The searched picture on the host, after finish(), where blobs are configured.
  [[nodiscard]] const ImageView& picture_on_host() const { return picture_on_host_; }
  // That picture's size and format.
  [[nodiscard]] const DeviceView& picture() const { return luma_->picture(); }
  [[nodiscard]] bool has_graph() const { return graph_.has_value(); }
  // Frames that the host had to copy to where kernels read them. From any thread.
  [[nodiscard]] std::uint64_t copied_by_host() const { return copied_by_host_; }

 private:
  // What is timed, in the order of the frame's way; a moment before each and one at the end.
  static constexpr std::array<Stage, 6> kTimedStages = {
      Stage::kRectify, Stage::kPyramid, Stage::kSearch, Stage::kNms, Stage::kTrace, Stage::kRefine};

  FrameSlot(const std::shared_ptr<const Device>& device, const ProcessorConfig& config)
      : config_(config), host_memory_(device) {}
  [[nodiscard]] Result<void> allocate(const std::shared_ptr<const Device>& device, MemoryMode mode);
  [[nodiscard]] Result<void> allocate_matcher(const std::shared_ptr<const Device>& device);
  [[nodiscard]] Result<void> allocate_picture();
  [[nodiscard]] Result<void> enqueue_stages();
  [[nodiscard]] Result<void> bring(const RawImageView& frame);
  [[nodiscard]] Result<void> enqueue_search();
  [[nodiscard]] Result<void> enqueue_luma(const FrameOnDevice& frame);
  [[nodiscard]] Result<void> read_times(StageTimes& times) const;

  const ProcessorConfig& config_;  // the processor's
  PageLockedFrameAllocator host_memory_;
  std::optional<Stream> stream_;
  std::array<Event, kTimedStages.size() + 1> moments_;
  std::optional<LumaStage> luma_;
  std::optional<GpuMatcher> matcher_;
  std::optional<Graph> graph_;
  MutableImageView picture_target_;
  ImageView picture_on_host_;
  std::atomic<std::uint64_t> copied_by_host_{0};
};

}  // namespace patternd::cuda
