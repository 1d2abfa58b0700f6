#include "daemon/access.h"

#include <algorithm>
#include <openssl/crypto.h>
#include <openssl/sha.h>

namespace patternd {
namespace {

constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestToken = 256;

std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest_of(std::string_view text) {
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

}  // namespace

Result<std::string> read_token(const std::string& path) {
  const auto text = read_credential(path, true);
  if (!text) return tl::make_unexpected(text.error());
  std::string_view line = *text;
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  const bool printable =
      std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (printable && line.size() >= kShortestToken && line.size() <= kLongestToken)
    return std::string(line);
  return fail(ErrorCode::kInvalidArgument,
              path +
                  " is no token; it must hold one line of 16 to 256 printable characters "
                  "without spaces, such as `openssl rand -hex 32` makes");
}

Result<Token> Token::load(const std::string& path) {
  const auto line = read_token(path);
  if (!line) return tl::make_unexpected(line.error());
  return Token(digest_of(*line));
}

bool Token::matches(std::string_view offered) const {
  return CRYPTO_memcmp(digest_of(offered).data(), digest_.data(), digest_.size()) == 0;
}

bool Access::admits(const IpAddress& peer) const {
  return allow.empty() || std::any_of(allow.begin(), allow.end(), [&peer](const Network& network) {
           return network.contains(peer);
         });
}

}  // namespace patternd
