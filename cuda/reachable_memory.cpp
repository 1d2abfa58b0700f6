#include "cuda/reachable_memory.h"

#include <algorithm>

namespace patternd::cuda {

void ReachableMemory::add(const Range& range) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ranges_.push_back(range);
}

void ReachableMemory::remove(const std::uint8_t* host) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ranges_.erase(std::remove_if(ranges_.begin(), ranges_.end(),
                               [host](const Range& range) { return range.host == host; }),
                ranges_.end());
}

std::optional<ReachableMemory::Range> ReachableMemory::find(const std::uint8_t* data,
                                                            std::size_t size_bytes) const {
  // As numbers: pointers into different allocations have no order.
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Range& range : ranges_) {
    const auto first = reinterpret_cast<std::uintptr_t>(range.host);
    if (begin < first || begin - first > range.size_bytes) continue;
    if (size_bytes <= range.size_bytes - (begin - first)) return range;
  }
  return std::nullopt;
}

}  // namespace patternd::cuda
