// The other end of the wire: a blocking connection to a running service, for patternctl.
#pragma once

#include <memory>
#include <string>

#include "daemon/address.h"
#include "daemon/connection.h"
#include "daemon/messages.h"
#include "pipeline/result.h"

namespace patternd {

class ServiceClient {
 public:
  // Connects within `timeout_ms`. Names of hosts are resolved. kIo where nobody answers. `tls`: the
  // service speaks TLS (a client's context, with the authority behind its certificate).
  [[nodiscard]] static Result<ServiceClient> connect(
      const Address& address, int timeout_ms = 5000,
      const std::shared_ptr<const TlsContext>& tls = nullptr);

  // The next line without its end; waits at most `timeout_ms` (negative: for ever). kTimeout;
  // kEndOfStream where the service closed; kParse past 1 MiB without an end of line.
  [[nodiscard]] Result<std::string> read_line(int timeout_ms);
  [[nodiscard]] Result<void> send_line(const Json& object);
  [[nodiscard]] Result<void> send_text(const std::string& text);
  // Nothing more will be sent; lines still come.
  void close_output();

  // Sends a command and waits for its reply, results and other lines passed over; the reply's data.
  // kDevice with the service's own words where it refused.
  [[nodiscard]] Result<Json> ask(const Json& command, int timeout_ms = 10'000);

 private:
  ServiceClient(Address address, Connection connection);
  [[nodiscard]] Result<void> shake_hands(int timeout_ms) const;
  [[nodiscard]] Result<void> wait_for(short events, int timeout_ms) const;
  [[nodiscard]] tl::unexpected<Error> broken(int error) const;

  Address address_;
  Connection connection_;
  std::string input_;
  std::size_t read_ = 0;  // bytes of input_ given out
};

}  // namespace patternd
