#include "tools/patternctl/service_option.h"

#include <memory>
#include <utility>

#include "daemon/access.h"

namespace patternd::tools {
namespace {

Result<std::shared_ptr<TlsContext>> make_tls(const ServiceOption& service) {
  if (service.authority_file.empty()) return std::shared_ptr<TlsContext>();
  auto context = TlsContext::create(TlsContext::Side::kClient);
  if (!context) return context;
  auto good = (*context)->require_peer(service.authority_file);
  if (good && !service.certificate_file.empty()) {
    good = (*context)->use_certificate(service.certificate_file);
    if (good) good = (*context)->use_key(service.key_file);
  }
  if (!good) return tl::make_unexpected(good.error());
  return context;
}

}  // namespace

void add_service_option(CLI::App* command, ServiceOption& service) {
  command->add_option("SERVICE", service.address, "HOST:PORT, or the path of a Unix socket")
      ->capture_default_str();
  add_service_credentials(command, service);
}

void add_service_credentials(CLI::App* command, ServiceOption& service) {
  command
      ->add_option("--token-file", service.token_file,
                   "What publish.tcp.token_file holds, for commands that change something")
      ->type_name("FILE");
  CLI::Option* authority =
      command
          ->add_option("--tls-ca", service.authority_file,
                       "Speak TLS; PEM of the authority behind the service's certificate")
          ->type_name("FILE");
  CLI::Option* certificate = command
                                 ->add_option("--tls-cert", service.certificate_file,
                                              "PEM: our certificate, where the service wants one")
                                 ->type_name("FILE")
                                 ->needs(authority);
  CLI::Option* key = command->add_option("--tls-key", service.key_file, "PEM: its key")
                         ->type_name("FILE")
                         ->needs(certificate);
  certificate->needs(key);
}

Result<ServiceClient> connect_to(const ServiceOption& service) {
  const auto parsed = parse_service_address(service.address);
  if (!parsed) return tl::make_unexpected(parsed.error());
  const auto tls = make_tls(service);
  if (!tls) return tl::make_unexpected(tls.error());
  return ServiceClient::connect(*parsed, 5000, *tls);
}

Result<Json> ask_service(const ServiceOption& service, Json command, int timeout_ms) {
  if (!service.token_file.empty()) {
    auto token = read_token(service.token_file);
    if (!token) return tl::make_unexpected(token.error());
    command["token"] = std::move(*token);
  }
  auto client = connect_to(service);
  if (!client) return tl::make_unexpected(client.error());
  return client->ask(command, timeout_ms);
}

}  // namespace patternd::tools
