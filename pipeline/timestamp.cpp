#include "pipeline/timestamp.h"

#include <algorithm>
#include <array>

namespace patternd {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr std::int64_t kSecondsPerDay = 86'400;
// int64_t nanoseconds end in the year 2262.
constexpr int kLastYear = 2261;

struct Date {
  std::int64_t year = 1970;
  int month = 1;
  int day = 1;
};

bool is_leap(std::int64_t year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

int days_in_month(std::int64_t year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return kDays[static_cast<std::size_t>(month - 1)] + (month == 2 && is_leap(year) ? 1 : 0);
}

// Days from 1970-01-01 to the first day of `year`.
std::int64_t days_before_year(std::int64_t year) {
  const std::int64_t y = year - 1;
  return 365 * (year - 1970) + (y / 4 - 492) - (y / 100 - 19) + (y / 400 - 4);
}

Date date_of_day(std::int64_t day) {
  Date date;
  date.year = 1970 + day / 366;  // never too late, and at most a year too early before 2336
  while (days_before_year(date.year + 1) <= day) ++date.year;
  std::int64_t rest = day - days_before_year(date.year);
  while (rest >= days_in_month(date.year, date.month)) {
    rest -= days_in_month(date.year, date.month);
    ++date.month;
  }
  date.day = static_cast<int>(rest) + 1;
  return date;
}

char* put_digits(char* at, std::int64_t value, int count) {
  for (int i = count - 1; i >= 0; --i) {
    at[i] = static_cast<char>('0' + value % 10);
    value /= 10;
  }
  return at + count;
}

// Takes `count` digits off the front of `text`; -1 where they are not there.
int take_digits(std::string_view& text, std::size_t count) {
  if (text.size() < count) return -1;
  int value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(count);
  return value;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

// The fraction of a second in nanoseconds: nothing, or a point and 1 to 9 digits; -1 where faulty.
int take_fraction_ns(std::string_view& text) {
  if (!take(text, '.')) return 0;
  int value = 0;
  int digits = 0;
  while (digits < 9 && !text.empty() && text.front() >= '0' && text.front() <= '9') {
    value = value * 10 + (text.front() - '0');
    text.remove_prefix(1);
    ++digits;
  }
  if (digits == 0) return -1;
  for (; digits < 9; ++digits) value *= 10;
  return value;
}

}  // namespace

std::size_t format_utc(std::int64_t unix_ns, char* text) {
  const std::int64_t ns = std::max<std::int64_t>(unix_ns, 0);
  const std::int64_t seconds = ns / kNsPerSecond;
  const Date date = date_of_day(seconds / kSecondsPerDay);
  const std::int64_t in_day = seconds % kSecondsPerDay;
  char* at = put_digits(text, date.year, 4);
  *at++ = '-';
  at = put_digits(at, date.month, 2);
  *at++ = '-';
  at = put_digits(at, date.day, 2);
  *at++ = 'T';
  at = put_digits(at, in_day / 3600, 2);
  *at++ = ':';
  at = put_digits(at, in_day / 60 % 60, 2);
  *at++ = ':';
  at = put_digits(at, in_day % 60, 2);
  *at++ = '.';
  at = put_digits(at, ns % kNsPerSecond / 1000, 6);
  *at = 'Z';
  return kUtcTextLength;
}

std::optional<std::int64_t> parse_utc(std::string_view text) {
  const int year = take_digits(text, 4);
  if (year < 1970 || year > kLastYear || !take(text, '-')) return std::nullopt;
  const int month = take_digits(text, 2);
  if (month < 1 || month > 12 || !take(text, '-')) return std::nullopt;
  const int day = take_digits(text, 2);
  if (day < 1 || day > days_in_month(year, month) || !take(text, 'T')) return std::nullopt;
  const int hour = take_digits(text, 2);
  if (hour < 0 || hour > 23 || !take(text, ':')) return std::nullopt;
  const int minute = take_digits(text, 2);
  if (minute < 0 || minute > 59 || !take(text, ':')) return std::nullopt;
  const int second = take_digits(text, 2);
  if (second < 0 || second > 59) return std::nullopt;
  const int fraction_ns = take_fraction_ns(text);
  if (fraction_ns < 0 || text != "Z") return std::nullopt;
  std::int64_t days = days_before_year(year) + day - 1;
  for (int m = 1; m < month; ++m) days += days_in_month(year, m);
  return (days * kSecondsPerDay + hour * 3600 + minute * 60 + second) * kNsPerSecond + fraction_ns;
}

}  // namespace patternd
