// Numbers that people write, in files and on command lines: one rule for both.
#pragma once

#include <cstdint>
#include <string_view>

namespace patternd {

enum class NumberFault { kNone, kNotANumber, kTooLarge };

// Reads all of `text` as a decimal number: a sign or none, digits without leading zeros (which one
// program reads as octal and the next does not), a point, an exponent. Hexadecimal numbers, nan,
// inf, spaces and whatever stands before or behind are kNotANumber; `value` is then as it was.
[[nodiscard]] NumberFault read_decimal(std::string_view text, double& value);
// The same for whole numbers: a sign or none, and digits.
[[nodiscard]] NumberFault read_decimal(std::string_view text, std::int64_t& value);

}  // namespace patternd
