// `publish`: where results go, and who may connect.
#include "daemon/configuration_sections.h"
#include "pipeline/utf8.h"

namespace patternd {
namespace {

// Loads a file that the key names; what is wrong with it is a fault of the key.
template <class Load>
std::string read_credential_file(const YamlNode& key, const YamlReader& reader, const Load& load) {
  std::string path = read_path(key, reader);
  if (path.empty()) return path;
  if (const auto loaded = load(path); !loaded) key.fault(loaded.error().message, "");
  return path;
}

void read_tls(const Section& tls, const YamlReader& reader, Access& access) {
  if (!tls.node().present()) return;
  auto created = TlsContext::create(TlsContext::Side::kServer);
  if (!created) return tls.node().fault(created.error().message, "");
  const std::shared_ptr<TlsContext> context = *created;
  (void)tls.node().required("cert", "must be the service's certificate, a PEM file");
  (void)tls.node().required("key", "must be the certificate's private key, a PEM file");
  access.certificate_file =
      read_credential_file(tls.at("cert"), reader,
                           [&](const std::string& path) { return context->use_certificate(path); });
  access.key_file = read_credential_file(
      tls.at("key"), reader, [&](const std::string& path) { return context->use_key(path); });
  access.client_authorities_file =
      read_credential_file(tls.at("client_ca"), reader,
                           [&](const std::string& path) { return context->require_peer(path); });
  access.tls = context;
}

std::shared_ptr<const Access> read_access(const Section& tcp, const YamlReader& reader) {
  auto access = std::make_shared<Access>();
  const YamlNode allow = tcp.at("allow");
  for (std::size_t i = 0; i < allow.size(); ++i) {
    const auto network = parse_network(allow.item(i).text("::/0"));
    if (network)
      access->allow.push_back(*network);
    else
      allow.item(i).fault(network.error().message, "");
  }
  if (allow.is_sequence() && allow.size() == 0)
    allow.fault("lists no network", "must list those that may connect, or be left out");
  access->token_file =
      read_credential_file(tcp.at("token_file"), reader, [&](const std::string& path) {
        auto token = Token::load(path);
        if (token) access->token = *token;
        return token;
      });
  read_tls(tcp.section("tls"), reader, *access);
  return access;
}

// What an address that other machines can reach lacks; empty where it is fit.
std::string lacks(const Section& tcp) {
  const bool guarded = tcp.at("token_file").present() || tcp.node()["tls"]["client_ca"].present();
  const bool listed = tcp.at("allow").present();
  std::string missing = listed ? "" : "allow with the networks that may connect";
  if (!guarded) {
    missing += std::string(listed ? "" : ", and ") +
               "token_file or tls.client_ca, for the commands that change something";
  }
  return missing;
}

Address read_tcp(const Section& tcp) {
  const YamlNode listen = tcp.at("listen");
  const std::string text = listen.text(tcp.row("listen").fallback);
  const auto address = parse_tcp_address(text);
  if (!address) {
    listen.fault(in_quotes(text) + " is no address",
                 "must be ADDRESS:PORT, such as 127.0.0.1:5577 or [::1]:5577");
    return {};
  }
  const std::string missing = is_loopback(*address) ? "" : lacks(tcp);
  if (!missing.empty()) {
    listen.fault(
        "is " + in_quotes(text) + ", which other machines can reach",
        "must have beside it " + missing + "; or be a loopback address such as 127.0.0.1:5577");
  }
  return *address;
}

SocketFile read_socket_file(const Section& socket) {
  SocketFile file;
  file.group = socket.at("group").text(file.group);
  if (socket.at("group").is_scalar() && !group_number(file.group)) {
    socket.at("group").fault("this machine has no group " + in_quotes(file.group),
                             "must be one that it has, by name or number");
  }
  const YamlNode mode = socket.at("mode");
  const std::string digits = mode.text(socket.row("mode").fallback);
  const bool octal = (digits.size() == 3 || (digits.size() == 4 && digits[0] == '0')) &&
                     digits.find_first_not_of("01234567") == std::string::npos;
  if (!octal) {
    mode.fault("is " + in_quotes(digits), "must be three octal digits such as \"0660\"");
    return file;
  }
  file.mode = static_cast<unsigned>(std::stoul(digits, nullptr, 8));
  return file;
}

}  // namespace

std::vector<Address> read_publish(const YamlNode& root, const YamlReader& reader,
                                  Configuration& configuration) {
  if (!root["publish"].present()) return {Address{}};
  const Section publish(root["publish"], "publish.");
  publish.refuse_later("http");
  publish.refuse_later("mqtt");
  std::vector<Address> addresses;
  if (publish.node()["tcp"].present()) {
    addresses.push_back(read_tcp(publish.section("tcp")));
    configuration.tcp_access = read_access(publish.section("tcp"), reader);
  }
  const Section socket = publish.section("unix");
  if (socket.node().present()) {
    Address address;
    address.kind = Address::Kind::kUnix;
    address.path = read_path(socket.node().required("path", "must be the socket's path"), reader);
    if (address.path.size() > kMaxUnixPath) {
      socket.at("path").fault("is " + std::to_string(address.path.size()) + " bytes long",
                              "must be at most 107 bytes, the folder included");
    }
    configuration.unix_file = read_socket_file(socket);
    addresses.push_back(std::move(address));
  }
  if (addresses.empty() && publish.node().is_empty_map())
    publish.node().fault("gives results out nowhere", "must have tcp or unix, or be left out");
  return addresses;
}

}  // namespace patternd
