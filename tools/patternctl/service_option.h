// The argument and options of the commands that talk to a running service.
#pragma once

#include <string>

#include "daemon/service_client.h"
#include "tools/patternctl/command.h"

namespace patternd::tools {

inline constexpr const char* kDefaultService = "127.0.0.1:5577";

// Where the service is and what it asks of those who connect.
struct ServiceOption {
  std::string address = kDefaultService;
  std::string token_file;
  std::string authority_file;  // empty: without TLS
  std::string certificate_file;
  std::string key_file;
};

// Adds the optional [SERVICE] to `command`, and what service_credentials adds; `service` must last
// as long.
void add_service_option(CLI::App* command, ServiceOption& service);
// Adds --token-file, --tls-ca, --tls-cert and --tls-key.
void add_service_credentials(CLI::App* command, ServiceOption& service);

[[nodiscard]] Result<ServiceClient> connect_to(const ServiceOption& service);

// Connects, sends the command with the token where there is one, and gives the reply's data.
[[nodiscard]] Result<Json> ask_service(const ServiceOption& service, Json command,
                                       int timeout_ms = 10'000);

}  // namespace patternd::tools
