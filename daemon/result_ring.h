// The result lines that clients may still want: one copy for all clients, in memory of fixed size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "daemon/result_line.h"

namespace patternd {

// Lines are numbered from 0 in the order in which they were written. The newest stay, the oldest
// give way when memory or the number of lines runs out; a client's queue is nothing but the number
// of the line that it gets next, so a slow one costs nobody memory and delays nobody. Used by the
// publisher's thread alone; allocates nothing after construction, and touches all of its memory
// then, so that the service does not seem to grow.
class ResultRing {
 public:
  // A line may take bytes / 4 at most with its spans.
  ResultRing(std::size_t bytes, std::size_t lines);

  // Lines oldest() … next() − 1 are there.
  [[nodiscard]] std::uint64_t oldest() const { return oldest_; }
  [[nodiscard]] std::uint64_t next() const { return next_; }

  // What oldest() will be once a line of at most `bytes` has been reserved: clients that stand
  // before it must be moved first.
  [[nodiscard]] std::uint64_t oldest_after(std::size_t bytes) const;
  // Memory for the next line, contiguous; the oldest lines give way.
  [[nodiscard]] char* reserve(std::size_t bytes);
  // Ends the line begun by reserve(): its length (no more than was reserved) and its matches, which
  // must fit behind it in what was reserved.
  void commit(std::size_t length, const std::vector<MatchSpan>& spans);

  [[nodiscard]] std::string_view line(std::uint64_t number) const;
  [[nodiscard]] std::size_t span_count(std::uint64_t number) const;
  [[nodiscard]] MatchSpan span(std::uint64_t number, std::size_t index) const;

  // Bytes to reserve for a line of at most `line_bytes` with at most `matches` matches.
  [[nodiscard]] static std::size_t bytes_for(std::size_t line_bytes, std::size_t matches);

 private:
  struct Entry {
    std::size_t begin = 0;
    std::size_t length = 0;
    std::size_t spans = 0;
    std::size_t end = 0;  // behind the spans
  };
  [[nodiscard]] const Entry& entry(std::uint64_t number) const {
    return entries_[static_cast<std::size_t>(number % entries_.size())];
  }
  // Where a line of `bytes` would begin.
  [[nodiscard]] std::size_t place_for(std::size_t bytes) const;

  std::size_t size_;
  std::unique_ptr<char[]> memory_;
  std::vector<Entry> entries_;
  std::uint64_t oldest_ = 0;
  std::uint64_t next_ = 0;
  std::size_t write_ = 0;  // where the next line begins, if it fits there
};

}  // namespace patternd
