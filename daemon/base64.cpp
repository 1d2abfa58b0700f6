#include "daemon/base64.h"

#include <array>

namespace patternd {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 255;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  for (std::uint8_t& value : values) value = kNone;
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = make_values();

}  // namespace

void append_base64(const std::uint8_t* bytes, std::size_t size, std::string& text) {
  std::size_t at = text.size();
  text.resize(at + (size + 2) / 3 * 4, '=');
  std::size_t i = 0;
  for (; i + 3 <= size; i += 3) {
    const unsigned three = unsigned{bytes[i]} << 16 | unsigned{bytes[i + 1]} << 8 | bytes[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) text[at++] = kAlphabet[three >> shift & 63];
  }
  if (i == size) return;
  const unsigned rest = unsigned{bytes[i]} << 16 | (i + 1 < size ? unsigned{bytes[i + 1]} << 8 : 0);
  text[at++] = kAlphabet[rest >> 18 & 63];
  text[at++] = kAlphabet[rest >> 12 & 63];
  if (i + 1 < size) text[at++] = kAlphabet[rest >> 6 & 63];
}

bool decode_base64(std::string_view text, std::vector<std::uint8_t>& bytes) {
  if (text.size() % 4 != 0) return false;
  const std::size_t before = bytes.size();
  std::size_t letters = text.size();
  while (letters > 0 && text.size() - letters < 2 && text[letters - 1] == '=') --letters;
  bytes.reserve(before + letters / 4 * 3 + 3);
  unsigned held = 0;
  int bits = 0;
  for (const char letter : text.substr(0, letters)) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(letter)];
    if (value == kNone) {
      bytes.resize(before);
      return false;
    }
    held = (held << 6 | value) & 0xFFFF;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>(held >> bits));
  }
  return true;
}

}  // namespace patternd
