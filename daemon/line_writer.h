// Writes JSON into memory that somebody else has set aside: no allocation, no locale, no exception.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace patternd {

// Appends to [data, data + capacity). What does not fit is left out whole and overflowed() tells.
//   LineWriter line(buffer, sizeof buffer);
//   line.raw("{\"x_px\":");
//   line.real(512.3125, 3);  // 512.313
//   line.raw("}");
class LineWriter {
 public:
  LineWriter(char* data, std::size_t capacity) : data_(data), capacity_(capacity) {}

  void raw(std::string_view text);
  // A JSON string with its quotes; malformed UTF-8 becomes U+FFFD, a byte each.
  void text(std::string_view text);
  void integer(std::int64_t value);
  void integer(std::uint64_t value);
  // `value` rounded to `decimals` (0 to 6) places, zeros at the end left out but for one after the
  // point: 1.0, 0.97. Not a number or infinite: 0.0. Beyond ±1e12: that bound.
  void real(double value, int decimals);

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t left() const { return capacity_ - size_; }
  [[nodiscard]] bool overflowed() const { return overflowed_; }
  [[nodiscard]] std::string_view view() const { return {data_, size_}; }
  // Takes back everything from `size` on.
  void cut(std::size_t size);

 private:
  char* data_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  bool overflowed_ = false;
};

// Bytes of a JSON string for a text of `size` bytes at most, quotes included.
[[nodiscard]] constexpr std::size_t json_text_bound(std::size_t size) { return 6 * size + 2; }

// "2026-01-31T12:00:00.123456Z" and its quotes, for nanoseconds since 1970 (rounded down).
void write_utc(LineWriter& line, std::int64_t unix_ns);

}  // namespace patternd
