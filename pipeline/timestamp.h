// Instants as text: ISO 8601, UTC, as in result lines and recordings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace patternd {

// Length of what format_utc writes.
inline constexpr std::size_t kUtcTextLength = 27;

// Writes e.g. "2026-01-31T12:00:00.123456Z" (kUtcTextLength characters, no final zero;
// microseconds, rounded down) and returns how many characters. Instants before 1970 are written as
// its first. Allocates nothing.
std::size_t format_utc(std::int64_t unix_ns, char* text);

// Reads such a text: no or 1 to 9 digits behind the point, `Z` at the end. Nothing where it is
// anything else or no real date. Leap seconds (":60") do not exist in Unix time and are refused.
[[nodiscard]] std::optional<std::int64_t> parse_utc(std::string_view text);

}  // namespace patternd
