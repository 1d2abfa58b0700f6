// The buffers that a source lends out.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "pipeline/result.h"
#include "pipeline/source.h"

namespace patternd {

// Buffers of one size, taken from a FrameAllocator once and used again when the source is started
// again, so that a camera that comes and goes for weeks does not grow the service. Buffers that are
// lent out while the ring is prepared anew stay valid until they are given back. No thread safety
// of its own: the source's lock guards it.
class FrameRing {
 public:
  // Readable bytes behind each frame, which vector code may load.
  static constexpr std::size_t kTailBytes = 64;

  // Makes at least `count` buffers of `size_bytes` (and the tail) there. Keeps what it has where
  // allocator and sizes fit.
  [[nodiscard]] Result<void> prepare(FrameAllocator& allocator, std::size_t size_bytes,
                                     std::size_t count);
  // A buffer that nobody holds, or null.
  [[nodiscard]] FrameBuffer* take();
  void give_back(FrameBuffer* buffer);
  // Whether all of these bytes lie in one buffer of the present size, its tail included.
  [[nodiscard]] bool holds(const std::uint8_t* first, std::size_t size_bytes) const;
  // All buffers of the present size, for a source that hands them to a driver.
  [[nodiscard]] std::size_t size() const;
  // The place of a buffer, 0..size()-1, for the driver's numbering; size() where it is an old one.
  [[nodiscard]] std::size_t index_of(const FrameBuffer* buffer) const;
  [[nodiscard]] FrameBuffer* at(std::size_t index);

 private:
  struct Slot {
    FrameBuffer buffer;
    bool taken = false;
  };
  FrameAllocator* allocator_ = nullptr;
  std::size_t slot_bytes_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::unique_ptr<Slot>> retired_;  // of an earlier size, still lent
};

}  // namespace patternd
