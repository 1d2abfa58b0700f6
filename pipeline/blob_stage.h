// Blobs of a frame: reference subtracted where one is configured, then labelled.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "pipeline/components.h"
#include "pipeline/image.h"
#include "pipeline/match.h"
#include "pipeline/result.h"
#include "pipeline/thread_pool.h"

namespace patternd {

class BlobStage {
 public:
  // Pictures of this size and format (kGray8 or kGray16). `dark`: what reference `dark` subtracts,
  // of the same size and format, copied; unused otherwise. `pool` may be null and must outlive the
  // stage.
  [[nodiscard]] static Result<BlobStage> create(int width, int height, PixelFormat format,
                                                const BlobParams& params, const ImageView& dark,
                                                ThreadPool* pool);

  // The frame's blobs, largest first, at most `max_blobs`; `total` counts all that passed the
  // filters. With reference `alternate` the frame before is subtracted (a lit frame shows what the
  // dark one before it did not), so the first frame has none. Allocates nothing where `blobs` has
  // the capacity. Differences below 0 count as 0.
  [[nodiscard]] Result<void> process(const ImageView& picture, std::vector<Blob>& blobs,
                                     std::uint64_t& total);
  // The next frame is the first: the one before it has not been here.
  void restart() {
    if (params_.reference == BlobParams::Reference::kAlternate) has_reference_ = false;
  }

 private:
  BlobStage(BlobParams params, ComponentLabeller labeller)
      : params_(params), labeller_(std::move(labeller)) {}

  BlobParams params_;
  ComponentLabeller labeller_;
  Image reference_;   // the dark frame, or the frame before
  Image difference_;  // absent without a reference
  bool has_reference_ = false;
};

// kInvalidArgument where a dark frame is not of the frames' size and format.
[[nodiscard]] Result<void> check_dark_frame(const ImageView& dark, int width, int height,
                                            PixelFormat format);

// out = max(picture − reference, 0) for every pixel; all of one size, kGray8 or kGray16.
void subtract_saturated(const ImageView& picture, const Image& reference, Image& out);

}  // namespace patternd
