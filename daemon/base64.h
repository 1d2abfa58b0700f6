// Bytes as text, RFC 4648 section 4: alphabet A-Z a-z 0-9 + /, padded with '='.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace patternd {

// Appends the text of `size` bytes: four characters for each three bytes begun.
void append_base64(const std::uint8_t* bytes, std::size_t size, std::string& text);
// Appends the bytes that `text` stands for; nothing, and `bytes` as it was, where it is no base64.
[[nodiscard]] bool decode_base64(std::string_view text, std::vector<std::uint8_t>& bytes);

}  // namespace patternd
