// Frames' memory in a GStreamer pipeline's hands, so that its elements write straight into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <gst/gst.h>
#include <memory>
#include <mutex>

#include "pipeline/source.h"
#include "pipeline/sources/frame_ring.h"

namespace patternd {

// A FrameAllocator's memory, for frames that are copied into it and for elements that write into it
// themselves: it answers the ALLOCATION queries that reach a pad with a pool and an allocator of
// ours, rows aligned as ours. Whoever asks for more than there is gets plain memory: no element
// ever waits for a buffer, and what it wrote there has to be copied; room for that is kept back.
// Shared with GStreamer's threads, which may outlive the source. Use:
//     memory->set_growing(true);
//     memory->offer_at(*pad);  // run the pipeline until its first frame
//     memory->set_growing(false);
//     memory->make_room(size_bytes);
class GstreamerMemory : public std::enable_shared_from_this<GstreamerMemory> {
 public:
  // `lent`: frames that are out at a time, beside those that the pipeline holds.
  GstreamerMemory(FrameAllocator& frames, std::size_t lent);

  [[nodiscard]] const FrameAllocator& allocator() const { return frames_; }
  [[nodiscard]] std::size_t most_lent() const { return lent_; }
  // Does nothing where the allocator is not shared: its memory could go while elements write there.
  void offer_at(GstPad& pad);
  // While true, a streaming thread that asks for memory may ask the FrameAllocator; so nobody else
  // may then. Else what there is has to do.
  void set_growing(bool growing);
  // Makes sure of buffers for as many copies as are lent. kExhausted.
  [[nodiscard]] Result<void> make_room(std::size_t size_bytes);

  // Whether all of these bytes lie in one of our buffers.
  [[nodiscard]] bool holds(const std::uint8_t* first, std::size_t size_bytes) const;
  // Whether a frame that lies here may be handed out as it is: not where the GPU must have it to
  // itself and somebody else still looks at it.
  [[nodiscard]] bool may_lend(GstBuffer& buffer) const;
  // A buffer to copy a frame into, or null where as many as are lent are taken; give it back.
  [[nodiscard]] FrameBuffer* take();
  void give_back(FrameBuffer* buffer);

  // A buffer for an element, or null where none is left or large enough; end the lease.
  [[nodiscard]] FrameBuffer* lease(std::size_t size_bytes);
  void end_lease(FrameBuffer* buffer);
  // An element's pool needs that many buffers beside those lent; or buffers of that size.
  void expect_count(std::size_t buffers);
  void expect_size(std::size_t size_bytes);

 private:
  FrameAllocator& frames_;
  const std::shared_ptr<FrameAllocator> shared_;  // the same, where it is shared
  const std::size_t lent_;
  mutable std::mutex mutex_;  // guards all below
  std::size_t most_leases_;
  std::size_t size_bytes_ = 0;  // of each, at least
  std::size_t leased_ = 0;
  std::size_t taken_ = 0;
  bool growing_ = false;
  FrameRing ring_;
};

}  // namespace patternd
