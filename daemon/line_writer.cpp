#include "daemon/line_writer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "pipeline/utf8.h"

namespace patternd {

void LineWriter::raw(std::string_view text) {
  if (text.size() > left()) {
    overflowed_ = true;
    return;
  }
  std::memcpy(data_ + size_, text.data(), text.size());
  size_ += text.size();
}

void LineWriter::cut(std::size_t size) {
  size_ = std::min(size, size_);
  overflowed_ = false;
}

void LineWriter::text(std::string_view text) {
  constexpr const char* kHex = "0123456789abcdef";
  const std::size_t start = size_;
  raw("\"");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) {
      raw("\xEF\xBF\xBD");
    } else if (byte == '"' || byte == '\\') {
      const char escaped[2] = {'\\', text[at]};
      raw({escaped, 2});
    } else if (byte < 0x20) {
      const char escaped[6] = {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
      raw({escaped, 6});
    } else {
      raw(text.substr(at, length));
    }
    at += std::max<std::size_t>(length, 1);
  }
  raw("\"");
  if (overflowed_) size_ = start;
}

void LineWriter::integer(std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  raw({digits, static_cast<std::size_t>(end.ptr - digits)});
}

void LineWriter::integer(std::uint64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  raw({digits, static_cast<std::size_t>(end.ptr - digits)});
}

void LineWriter::real(double value, int decimals) {
  constexpr double kLargest = 1e12;
  constexpr std::int64_t kPowers[] = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000};
  const double finite = std::isfinite(value) ? std::clamp(value, -kLargest, kLargest) : 0.0;
  const std::int64_t power = kPowers[std::clamp(decimals, 0, 6)];
  std::int64_t scaled = std::llround(finite * static_cast<double>(power));
  char text[32];
  char* at = text;
  if (scaled < 0) {
    *at++ = '-';
    scaled = -scaled;
  }
  at = std::to_chars(at, text + sizeof text, scaled / power).ptr;
  *at++ = '.';
  // The digits after the point: at least one, and none behind the last that is not zero.
  std::int64_t rest = scaled % power;
  std::int64_t place = power;
  do {
    place = std::max<std::int64_t>(place / 10, 1);
    *at++ = static_cast<char>('0' + rest / place);
    rest %= place;
  } while (rest > 0);
  raw({text, static_cast<std::size_t>(at - text)});
}

namespace {

void put_digits(char* at, std::int64_t value, int count) {
  for (int i = count - 1; i >= 0; --i) {
    at[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
}

}  // namespace

void write_utc(LineWriter& line, std::int64_t unix_ns) {
  constexpr std::int64_t kDayUs = 86'400'000'000;
  const std::int64_t us = unix_ns / 1000 - (unix_ns % 1000 < 0 ? 1 : 0);
  const std::int64_t day = us / kDayUs - (us % kDayUs < 0 ? 1 : 0);
  const std::int64_t in_day_us = us - day * kDayUs;
  // The day's date in the Gregorian calendar, with years that begin in March so that the leap day
  // comes last (as in RFC 3339's appendix on dates).
  const std::int64_t shifted = day + 719'468;  // since 0000-03-01
  const std::int64_t era = (shifted >= 0 ? shifted : shifted - 146'096) / 146'097;
  const std::int64_t day_of_era = shifted - era * 146'097;
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const std::int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  char text[] = "\"0000-00-00T00:00:00.000000Z\"";
  put_digits(text + 1, year_of_era + era * 400 + (month <= 2 ? 1 : 0), 4);
  put_digits(text + 6, month, 2);
  put_digits(text + 9, day_of_year - (153 * month_from_march + 2) / 5 + 1, 2);
  put_digits(text + 12, in_day_us / 3'600'000'000, 2);
  put_digits(text + 15, in_day_us / 60'000'000 % 60, 2);
  put_digits(text + 18, in_day_us / 1'000'000 % 60, 2);
  put_digits(text + 21, in_day_us % 1'000'000, 6);
  line.raw({text, sizeof text - 1});
}

}  // namespace patternd
