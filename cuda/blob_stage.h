// Blobs of a frame on the GPU: the reference subtracted where one is configured, then labelled; the
// GPU's version of pipeline/blob_stage.h.
#pragma once

#include <memory>
#include <optional>

#include "cuda/components_stage.h"
#include "cuda/picture.h"
#include "cuda/stream.h"
#include "pipeline/frame_processor.h"
#include "pipeline/thread_pool.h"

namespace patternd::cuda {

// What is subtracted: the dark frame, or the frame before, which each frame leaves for the next.
// One for all frames in flight.
class BlobReference {
 public:
  // As `config` says; kOff without blobs. kInvalidArgument where the dark frame is of another size
  // or format. Waits.
  [[nodiscard]] static Result<BlobReference> create(const std::shared_ptr<const Device>& device,
                                                    const ProcessorConfig& config,
                                                    ThreadPool* pool);
  [[nodiscard]] BlobParams::Reference kind() const { return kind_; }
  // Each frame's blobs must then come behind those of the frame before.
  [[nodiscard]] bool is_frame_before() const { return kind_ == BlobParams::Reference::kAlternate; }
  [[nodiscard]] const DeviceView& view() const { return picture_.view(); }

 private:
  [[nodiscard]] Result<void> fill(const std::shared_ptr<const Device>& device,
                                  const ProcessorConfig& config, ThreadPool* pool);

  BlobParams::Reference kind_ = BlobParams::Reference::kOff;
  DevicePicture picture_;
};

// One frame's at a time.
class GpuBlobStage {
 public:
  // For `picture`, which each frame fills; `reference` must outlive the stage.
  [[nodiscard]] static Result<GpuBlobStage> create(const std::shared_ptr<const Device>& device,
                                                   const DeviceView& picture,
                                                   const BlobParams& params,
                                                   const BlobReference& reference);
  // Enqueues all of it, the copy of the first components to the host too.
  [[nodiscard]] Result<void> enqueue(const Stream& stream);
  // Once the stream has passed that: as BlobStage::process. More than ComponentsStage::kFetched
  // blobs cost one copy and wait more. kExhausted where there were more than the GPU has room for:
  // labelled() is then the CPU's to label.
  [[nodiscard]] Result<void> collect(const Stream& stream, std::vector<Blob>& blobs,
                                     std::uint64_t& total) {
    return components_.collect(stream, blobs, total);
  }
  // The picture that is labelled: the difference, or the frame's own.
  [[nodiscard]] const DeviceView& labelled() const { return labelled_; }

  // Components that there is memory for, in each frame in flight.
  static constexpr int kCapacity = 1 << 18;

 private:
  GpuBlobStage(ComponentsStage components, const DeviceView& picture)
      : labelled_(picture), components_(std::move(components)) {}

  DeviceView labelled_;
  ComponentsStage components_;
  std::optional<Kernel> subtract_;  // with a reference
  DevicePicture difference_;
  SubtractParameters parameters_{};
};

}  // namespace patternd::cuda
