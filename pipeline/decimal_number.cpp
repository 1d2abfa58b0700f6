#include "pipeline/decimal_number.h"

#include <charconv>
#include <system_error>

namespace patternd {
namespace {

bool has_leading_zero(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
}

template <class T>
NumberFault read(std::string_view text, std::string_view alphabet, T& value) {
  if (text.find_first_not_of(alphabet) != std::string_view::npos) return NumberFault::kNotANumber;
  // std::from_chars knows no plus sign.
  const bool plus = !text.empty() && text[0] == '+';
  if (plus) text.remove_prefix(1);
  if (text.empty() || (plus && text[0] == '-') || has_leading_zero(text))
    return NumberFault::kNotANumber;
  T read{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), read);
  if (end.ptr != text.data() + text.size()) return NumberFault::kNotANumber;
  if (end.ec == std::errc::result_out_of_range) return NumberFault::kTooLarge;
  if (end.ec != std::errc()) return NumberFault::kNotANumber;
  value = read;
  return NumberFault::kNone;
}

}  // namespace

NumberFault read_decimal(std::string_view text, double& value) {
  return read(text, "+-.0123456789eE", value);
}

NumberFault read_decimal(std::string_view text, std::int64_t& value) {
  return read(text, "+-0123456789", value);
}

}  // namespace patternd
