// Where the service is spoken to: a TCP address or a Unix socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/result.h"

namespace patternd {

struct Address {
  enum class Kind { kTcp, kUnix };
  Kind kind = Kind::kTcp;
  std::string host = "127.0.0.1";  // kTcp: a literal IPv4 or IPv6 address, or "localhost"
  std::uint16_t port = 5577;
  std::string path;  // kUnix

  friend bool operator==(const Address& a, const Address& b) {
    return a.kind == b.kind && a.host == b.host && a.port == b.port && a.path == b.path;
  }
};

// "127.0.0.1:5577", "[::1]:5577", "localhost:5577". The error says what would be right.
[[nodiscard]] Result<Address> parse_tcp_address(std::string_view text);
// What a person writes for a running service: ADDRESS:PORT, ADDRESS, :PORT, or the path of a Unix
// socket: what has a '/', or stands in this folder as a socket. Names of hosts are accepted.
[[nodiscard]] Result<Address> parse_service_address(std::string_view text);
// The way it is written: "127.0.0.1:5577", "[::1]:5577", "/run/patternd/patternd.sock".
[[nodiscard]] std::string shown(const Address& address);
// Only this machine can reach it.
[[nodiscard]] bool is_loopback(const Address& address);

// Longest path of a Unix socket.
inline constexpr std::size_t kMaxUnixPath = 107;

}  // namespace patternd
