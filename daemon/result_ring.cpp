#include "daemon/result_ring.h"

#include <cassert>
#include <cstring>

namespace patternd {

ResultRing::ResultRing(std::size_t bytes, std::size_t lines)
    : size_(bytes), memory_(new char[bytes]()), entries_(lines) {}

std::size_t ResultRing::bytes_for(std::size_t line_bytes, std::size_t matches) {
  return line_bytes + matches * sizeof(MatchSpan);
}

std::size_t ResultRing::place_for(std::size_t bytes) const {
  return size_ - write_ >= bytes ? write_ : 0;
}

std::uint64_t ResultRing::oldest_after(std::size_t bytes) const {
  const std::size_t begin = place_for(bytes);
  std::uint64_t oldest = oldest_;
  if (next_ - oldest == entries_.size()) ++oldest;
  // Whatever overlaps [begin, begin + bytes) goes, and when the line starts over at 0 also what
  // lies in the rest that is skipped: lines leave in the order in which they came.
  const bool wraps = begin < write_;
  while (oldest < next_) {
    const Entry& candidate = entry(oldest);
    const bool overlaps = candidate.begin < begin + bytes && candidate.end > begin;
    const bool skipped = wraps && candidate.begin >= write_;
    if (!overlaps && !skipped) break;
    ++oldest;
  }
  return oldest;
}

char* ResultRing::reserve(std::size_t bytes) {
  assert(bytes <= size_ / 4);
  oldest_ = oldest_after(bytes);
  write_ = place_for(bytes);
  return memory_.get() + write_;
}

void ResultRing::commit(std::size_t length, const std::vector<MatchSpan>& spans) {
  const std::size_t spans_bytes = spans.size() * sizeof(MatchSpan);
  if (spans_bytes > 0) std::memcpy(memory_.get() + write_ + length, spans.data(), spans_bytes);
  entries_[static_cast<std::size_t>(next_ % entries_.size())] = {write_, length, spans.size(),
                                                                 write_ + length + spans_bytes};
  write_ += length + spans_bytes;
  ++next_;
}

std::string_view ResultRing::line(std::uint64_t number) const {
  return {memory_.get() + entry(number).begin, entry(number).length};
}

std::size_t ResultRing::span_count(std::uint64_t number) const { return entry(number).spans; }

MatchSpan ResultRing::span(std::uint64_t number, std::size_t index) const {
  MatchSpan span;
  const char* at =
      memory_.get() + entry(number).begin + entry(number).length + index * sizeof(MatchSpan);
  std::memcpy(&span, at, sizeof span);
  return span;
}

}  // namespace patternd
