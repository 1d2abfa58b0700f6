#include "pipeline/sources/frame_ring.h"

#include <algorithm>
#include <utility>

namespace patternd {

Result<void> FrameRing::prepare(FrameAllocator& allocator, std::size_t size_bytes,
                                std::size_t count) {
  if (allocator_ != &allocator || slot_bytes_ < size_bytes) {
    for (auto& slot : slots_)
      if (slot->taken) retired_.push_back(std::move(slot));
    slots_.clear();
    allocator_ = &allocator;
    slot_bytes_ = size_bytes;
  }
  while (slots_.size() < count) {
    auto memory = allocator.allocate(slot_bytes_ + kTailBytes);
    if (!memory) return tl::make_unexpected(memory.error());
    auto slot = std::make_unique<Slot>();
    slot->buffer.data = *memory;
    slot->buffer.size_bytes = slot_bytes_;
    slots_.push_back(std::move(slot));
  }
  return {};
}

FrameBuffer* FrameRing::take() {
  for (auto& slot : slots_) {
    if (slot->taken) continue;
    slot->taken = true;
    return &slot->buffer;
  }
  return nullptr;
}

void FrameRing::give_back(FrameBuffer* buffer) {
  const auto holds = [buffer](const auto& slot) { return &slot->buffer == buffer; };
  const auto found = std::find_if(slots_.begin(), slots_.end(), holds);
  if (found != slots_.end()) {
    (*found)->taken = false;
    return;
  }
  const auto old = std::find_if(retired_.begin(), retired_.end(), holds);
  if (old != retired_.end()) retired_.erase(old);
}

bool FrameRing::holds(const std::uint8_t* first, std::size_t size_bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  return std::any_of(slots_.begin(), slots_.end(), [address, size_bytes](const auto& slot) {
    const auto begin = reinterpret_cast<std::uintptr_t>(slot->buffer.data);
    const std::size_t room = slot->buffer.size_bytes + kTailBytes;
    return address >= begin && size_bytes <= room && address - begin <= room - size_bytes;
  });
}

std::size_t FrameRing::size() const { return slots_.size(); }

std::size_t FrameRing::index_of(const FrameBuffer* buffer) const {
  const auto found = std::find_if(slots_.begin(), slots_.end(),
                                  [buffer](const auto& slot) { return &slot->buffer == buffer; });
  return static_cast<std::size_t>(found - slots_.begin());
}

FrameBuffer* FrameRing::at(std::size_t index) { return &slots_[index]->buffer; }

}  // namespace patternd
