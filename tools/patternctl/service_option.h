// The argument of the commands that talk to a running service.
#pragma once

#include <string>

#include "daemon/service_client.h"
#include "tools/patternctl/command.h"

namespace patternd::tools {

inline constexpr const char* kDefaultService = "127.0.0.1:5577";

// Adds the optional [SERVICE] to `command`; `address` must last as long.
inline void add_service_option(CLI::App* command, std::string& address) {
  command->add_option("SERVICE", address, "HOST:PORT, or the path of a Unix socket")
      ->capture_default_str();
}

[[nodiscard]] inline Result<ServiceClient> connect_to(const std::string& address) {
  const auto parsed = parse_service_address(address);
  if (!parsed) return tl::make_unexpected(parsed.error());
  return ServiceClient::connect(*parsed);
}

// Connects, sends the command, and gives the reply's data.
[[nodiscard]] inline Result<Json> ask_service(const std::string& address, const Json& command) {
  auto client = connect_to(address);
  if (!client) return tl::make_unexpected(client.error());
  return client->ask(command);
}

}  // namespace patternd::tools
