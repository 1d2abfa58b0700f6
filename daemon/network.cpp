#include "daemon/network.h"

#include <algorithm>
#include <arpa/inet.h>
#include <charconv>
#include <cstring>
#include <netinet/in.h>

#include "pipeline/utf8.h"

namespace patternd {
namespace {

constexpr int kBits = 128;
constexpr int kMappedBits = 96;  // before an IPv4 address
constexpr std::array<std::uint8_t, 12> kMappedStart = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

IpAddress from_v4(const void* four_bytes) {
  IpAddress address;
  std::copy(kMappedStart.begin(), kMappedStart.end(), address.bytes.begin());
  std::memcpy(address.bytes.data() + kMappedStart.size(), four_bytes, 4);
  return address;
}

std::optional<IpAddress> parse_ip(const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return from_v4(&v4);
  IpAddress v6;
  if (inet_pton(AF_INET6, text.c_str(), v6.bytes.data()) == 1) return v6;
  return std::nullopt;
}

// `address` with the bits behind the prefix zero.
IpAddress masked(IpAddress address, int prefix_bits) {
  for (int i = 0; i < 16; ++i) {
    const int kept = std::clamp(prefix_bits - 8 * i, 0, 8);
    auto& byte = address.bytes[static_cast<std::size_t>(i)];
    byte = static_cast<std::uint8_t>(byte & (0xff00U >> kept));
  }
  return address;
}

}  // namespace

bool is_v4(const IpAddress& address) {
  return std::equal(kMappedStart.begin(), kMappedStart.end(), address.bytes.begin());
}

std::optional<IpAddress> ip_address_of(const sockaddr_storage& where) {
  if (where.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &where, sizeof v4);
    return from_v4(&v4.sin_addr);
  }
  if (where.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &where, sizeof v6);
  IpAddress address;
  std::memcpy(address.bytes.data(), &v6.sin6_addr, address.bytes.size());
  return address;
}

std::string shown(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_v4(address))
    inet_ntop(AF_INET, address.bytes.data() + kMappedStart.size(), text, sizeof text);
  else
    inet_ntop(AF_INET6, address.bytes.data(), text, sizeof text);
  return text;
}

bool Network::contains(const IpAddress& address) const {
  return masked(address, prefix_bits) == base;
}

Result<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto address = parse_ip(std::string(text.substr(0, slash)));
  const int first_bit = address && is_v4(*address) ? kMappedBits : 0;
  int prefix = kBits - first_bit;
  bool good = address.has_value();
  if (good && slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const int most = prefix;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    good = end.ec == std::errc() && end.ptr == digits.data() + digits.size() && prefix >= 0 &&
           prefix <= most;
  }
  if (!good) {
    return fail(ErrorCode::kInvalidArgument,
                "is " + in_quotes(text) +
                    "; must be a network such as 192.168.1.0/24 or fd00::/8, or one address");
  }
  const Network network{masked(*address, first_bit + prefix), first_bit + prefix};
  if (network.base == *address) return network;
  return fail(ErrorCode::kInvalidArgument, "is " + in_quotes(text) +
                                               ", which has bits behind its prefix; must be " +
                                               shown(network) + ", or one address");
}

std::string shown(const Network& network) {
  const bool v4 = is_v4(network.base) && network.prefix_bits >= kMappedBits;
  const int prefix = network.prefix_bits - (v4 ? kMappedBits : 0);
  return shown(network.base) + "/" + std::to_string(prefix);
}

}  // namespace patternd
