#include "daemon/address.h"

#include <arpa/inet.h>
#include <charconv>
#include <netinet/in.h>
#include <sys/stat.h>

#include "pipeline/utf8.h"

namespace patternd {
namespace {

bool parse_port(std::string_view text, std::uint16_t& port) {
  if (text.empty() || text.size() > 5) return false;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), port);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

struct HostAndPort {
  std::string_view host;
  std::string_view port;
  bool bracketed = false;
};

// "[::1]:80" -> {"::1", "80"}; a bare IPv6 address would be ambiguous and keeps its colons in host.
HostAndPort split(std::string_view text) {
  if (!text.empty() && text[0] == '[') {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    const std::string_view rest = text.substr(end + 1);
    return {text.substr(1, end - 1), !rest.empty() && rest[0] == ':' ? rest.substr(1) : rest, true};
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, {}, false};
  return {text.substr(0, colon), text.substr(colon + 1), false};
}

bool is_socket(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode);
}

bool is_literal(const std::string& host, bool bracketed) {
  in6_addr any{};
  return inet_pton(bracketed ? AF_INET6 : AF_INET, host.c_str(), &any) == 1;
}

}  // namespace

Result<Address> parse_tcp_address(std::string_view text) {
  const HostAndPort parts = split(text);
  Address address;
  address.host = std::string(parts.host);
  const bool host_good = is_literal(address.host, parts.bracketed) ||
                         (address.host == "localhost" && !parts.bracketed);
  if (!host_good || !parse_port(parts.port, address.port)) {
    return fail(
        ErrorCode::kInvalidArgument,
        "is " + in_quotes(text) + "; must be ADDRESS:PORT, such as 127.0.0.1:5577 or [::1]:5577");
  }
  return address;
}

Result<Address> parse_service_address(std::string_view text) {
  Address address;
  if (text.find('/') != std::string_view::npos || is_socket(std::string(text))) {
    address.kind = Address::Kind::kUnix;
    address.path = std::string(text);
    if (text.size() <= kMaxUnixPath) return address;
    return fail(ErrorCode::kInvalidArgument,
                in_quotes(text) + " is too long for a Unix socket; at most 107 bytes");
  }
  const HostAndPort parts = split(text);
  if (!parts.host.empty()) address.host = std::string(parts.host);
  const bool port_good = parts.port.empty() || parse_port(parts.port, address.port);
  const bool has_colon = address.host.find(':') != std::string::npos;
  if (text.empty() || !port_good || has_colon != parts.bracketed) {
    return fail(ErrorCode::kInvalidArgument,
                in_quotes(text) +
                    " is no address; must be HOST:PORT, such as 127.0.0.1:5577, or the path "
                    "of a Unix socket");
  }
  return address;
}

std::string shown(const Address& address) {
  if (address.kind == Address::Kind::kUnix) return address.path;
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool is_loopback(const Address& address) {
  if (address.kind == Address::Kind::kUnix || address.host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, address.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace patternd
