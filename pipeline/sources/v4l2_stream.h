// A V4L2 device's buffers: asked for, queued, filled, taken and queued again.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pipeline/sources/frame_ring.h"
#include "pipeline/sources/v4l2_device.h"

namespace patternd {

// A buffer that the driver has filled.
struct V4l2Filled {
  std::size_t index = 0;
  std::size_t offset = 0;  // of the first byte within the buffer
  std::size_t bytes = 0;
  std::uint32_t sequence = 0;
  std::optional<std::int64_t> monotonic_ns;  // nothing: the stamp is of another clock
  std::int64_t queued_ns = 0;                // when the driver got the buffer
  bool damaged = false;                      // the driver flagged it
};

// Streams into our own buffers (USERPTR) where the driver takes them, else into the driver's,
// mapped (MMAP). Used by one thread, except `give_back`, which any thread may call at any time.
// Nothing here blocks.
class V4l2Stream {
 public:
  V4l2Stream() = default;
  ~V4l2Stream() { stop(); }
  V4l2Stream(const V4l2Stream&) = delete;
  V4l2Stream& operator=(const V4l2Stream&) = delete;

  // Makes our buffers ready (FrameRing::prepare).
  [[nodiscard]] Result<void> prepare(FrameAllocator& allocator, std::size_t size_bytes,
                                     std::size_t count);
  // Queues all of our free buffers and starts. kUnsupported: the driver does not take our memory;
  // the device is as before. The device must stay until stop().
  [[nodiscard]] Result<void> start_user_pointers(V4l2Device& device);
  // Maps `count` buffers of the driver's and starts.
  [[nodiscard]] Result<void> start_mapped(V4l2Device& device, std::uint32_t count);
  // Takes all buffers from the driver; ours that it had are free again.
  void stop();

  // The next filled buffer, or nothing where none is ready. The driver's error number, as an Error,
  // where the stream is broken.
  [[nodiscard]] Result<std::optional<V4l2Filled>> take();
  // Gives a buffer to the driver again.
  [[nodiscard]] Result<void> queue(std::size_t index);
  // The memory of a buffer of the driver's.
  [[nodiscard]] std::uint8_t* mapped(std::size_t index) { return mapped_[index].memory; }
  // A free buffer of ours, to copy a mapped one into; null where all are lent.
  [[nodiscard]] FrameBuffer* take_free();
  // Our buffer that the driver filled (USERPTR).
  [[nodiscard]] FrameBuffer* user_buffer(std::size_t index);
  // The caller is done with a buffer of ours: it goes to the driver, or is free.
  void give_back(FrameBuffer* buffer);

 private:
  struct Mapped {
    std::uint8_t* memory;
    std::size_t length;
  };
  // A v4l2_buffer with room for the one plane of a multi-planar device.
  struct Request;
  [[nodiscard]] Request make_request(std::size_t index) const;
  [[nodiscard]] int request_buffers(std::uint32_t count, std::uint32_t& granted);
  [[nodiscard]] int queue_locked(std::size_t index);
  [[nodiscard]] Result<void> map_buffer(std::size_t index);
  [[nodiscard]] Result<void> switch_on();
  void stop_locked();

  V4l2Device* device_ = nullptr;
  std::mutex mutex_;  // guards what give_back uses of all below
  FrameRing ring_;
  std::uint32_t memory_ = V4L2_MEMORY_MMAP;
  bool requested_ = false;
  bool streaming_ = false;
  std::vector<Mapped> mapped_;
  std::vector<bool> queued_;  // the driver has it
  std::vector<std::int64_t> queued_ns_;
};

}  // namespace patternd
