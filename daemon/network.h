// Addresses of other machines, and networks of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

#include "pipeline/result.h"

namespace patternd {

// An IPv6 address, or an IPv4 one as ::ffff:a.b.c.d: the two that a socket for both families would
// give the same machine compare equal.
struct IpAddress {
  std::array<std::uint8_t, 16> bytes{};

  friend bool operator==(const IpAddress& a, const IpAddress& b) { return a.bytes == b.bytes; }
};

[[nodiscard]] bool is_v4(const IpAddress& address);
// Who is at the other end; nothing where that is no IP address (a Unix socket).
[[nodiscard]] std::optional<IpAddress> ip_address_of(const sockaddr_storage& where);
// "192.168.1.7", "fd00::1".
[[nodiscard]] std::string shown(const IpAddress& address);

struct Network {
  IpAddress base;
  int prefix_bits = 128;  // of the 128; an IPv4 network's /8 is 104

  [[nodiscard]] bool contains(const IpAddress& address) const;
};

// "192.168.1.0/24", "fd00::/8", or one address. The error says what is wrong and what would be
// right, to stand behind the name of a key.
[[nodiscard]] Result<Network> parse_network(std::string_view text);
// "192.168.1.0/24"; one address has its prefix too.
[[nodiscard]] std::string shown(const Network& network);

}  // namespace patternd
