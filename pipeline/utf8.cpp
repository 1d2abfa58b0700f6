#include "pipeline/utf8.h"

#include <algorithm>
#include <limits>

namespace patternd {
namespace {

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

// Bounds of the second byte, which alone tells overlong forms, surrogates and values past U+10FFFF.
bool second_byte_fits(unsigned char first, unsigned char second) {
  switch (first) {
    case 0xE0:
      return second >= 0xA0 && second <= 0xBF;
    case 0xED:
      return second >= 0x80 && second <= 0x9F;
    case 0xF0:
      return second >= 0x90 && second <= 0xBF;
    case 0xF4:
      return second >= 0x80 && second <= 0x8F;
    default:
      return second >= 0x80 && second <= 0xBF;
  }
}

// At most `most` characters, and an ellipsis where there are more.
std::string printable(std::string_view text, std::size_t most) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string out;
  std::size_t shown = 0;
  for (std::size_t at = 0; at < text.size(); ++shown) {
    if (shown == most) return out + "…";
    const std::size_t length = utf8_length(text, at);
    const unsigned char byte = byte_at(text, at);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      at += 1;
    } else {
      out.append(text.substr(at, length));
      at += length;
    }
  }
  return out;
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  if (at >= text.size()) return 0;
  const unsigned char first = byte_at(text, at);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                             : first >= 0xE0 && first <= 0xEF ? 3
                             : first >= 0xF0 && first <= 0xF4 ? 4
                                                              : 0;
  if (length == 0 || text.size() - at < length) return 0;
  if (!second_byte_fits(first, byte_at(text, at + 1))) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    const unsigned char next = byte_at(text, at + i);
    if (next < 0x80 || next > 0xBF) return 0;
  }
  return length;
}

std::size_t utf8_first_fault(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string_view utf8_prefix(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  std::size_t end = bytes;
  // A sequence's further bytes are 10xxxxxx, and there are three of them at most.
  while (end > 0 && bytes - end < 3 && (byte_at(text, end) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

bool is_name(std::string_view text) {
  return !text.empty() && utf8_first_fault(text) == std::string_view::npos &&
         name_flaw(text).empty();
}

std::string name_flaw(std::string_view text) {
  constexpr std::size_t kLongest = 64;
  if (text.size() > kLongest) return ", which is " + std::to_string(text.size()) + " bytes long";
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7F; };
  const auto control = std::find_if(text.begin(), text.end(), is_control);
  if (control == text.end()) return "";
  return ", which has the control character " + printable(std::string_view(&*control, 1)) +
         " as byte " + std::to_string(control - text.begin() + 1);
}

const char* name_rule() { return "must have no control characters and be 1 to 64 bytes"; }

std::string printable(std::string_view text) {
  return printable(text, std::numeric_limits<std::size_t>::max());
}

std::string in_quotes(std::string_view text) { return "\"" + printable(text, 60) + "\""; }

}  // namespace patternd
