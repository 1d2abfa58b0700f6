// Who may connect over TCP, and who may change anything.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/network.h"
#include "daemon/tls.h"
#include "pipeline/result.h"

namespace patternd {

// A token file's one line, 16 to 256 printable characters without spaces; refused where other users
// may read it.
[[nodiscard]] Result<std::string> read_token(const std::string& path);

// A shared secret of which only the digest is kept.
class Token {
 public:
  // See read_token().
  [[nodiscard]] static Result<Token> load(const std::string& path);
  // In a time that does not depend on where they differ.
  [[nodiscard]] bool matches(std::string_view offered) const;

 private:
  using Digest = std::array<std::uint8_t, 32>;
  explicit Token(const Digest& digest) : digest_(digest) {}
  Digest digest_;
};

// Everything that is set must be fulfilled.
struct Access {
  std::vector<Network> allow;  // empty: whoever can reach the address
  std::string token_file;      // and of whence the rest came; empty where it is not set
  std::string certificate_file;
  std::string key_file;
  std::string client_authorities_file;
  std::optional<Token> token;             // what commands that change anything must bring
  std::shared_ptr<const TlsContext> tls;  // null: in the clear

  [[nodiscard]] bool admits(const IpAddress& peer) const;
  // Commands that change anything are not open to everybody who is admitted.
  [[nodiscard]] bool guards_changes() const { return token || !client_authorities_file.empty(); }
};

}  // namespace patternd
