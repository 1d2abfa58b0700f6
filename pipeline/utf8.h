// UTF-8, checked byte by byte (RFC 3629: no surrogates, nothing overlong, nothing past U+10FFFF).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace patternd {

// Length (1 to 4) of the sequence that starts at `text[at]`, or 0 where it is malformed or cut
// short.
//   utf8_length("\xc3\xa9", 0) == 2; utf8_length("\xc3", 0) == 0
[[nodiscard]] std::size_t utf8_length(std::string_view text, std::size_t at);

// Place of the first byte that is not UTF-8, or npos.
[[nodiscard]] std::size_t utf8_first_fault(std::string_view text);

// The longest beginning of `text` of at most `bytes` that cuts no sequence in two.
//   utf8_prefix("a\xc3\xa9", 2) == "a"
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t bytes);

// Whether `text` can name a pattern or a camera: 1 to 64 bytes of UTF-8 without control characters.
[[nodiscard]] bool is_name(std::string_view text);
// What keeps `text` from being a name, to say behind it in a message: ", which is 65 bytes long".
// Empty for a name, and where the text shows it.
[[nodiscard]] std::string name_flaw(std::string_view text);
// What a name must be, for messages.
[[nodiscard]] const char* name_rule();

// `text` with control characters and malformed bytes as \xNN: for other libraries' messages, which
// repeat a byte of the input.
[[nodiscard]] std::string printable(std::string_view text);

// `text` for a message: quoted, printable, at most 60 characters.
[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace patternd
