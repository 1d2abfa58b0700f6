#include "daemon/service_client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <utility>

#include "daemon/peer_watch.h"
#include "daemon/result_line.h"
#include "pipeline/stage.h"

namespace patternd {
namespace {

tl::unexpected<Error> nobody_answers(const Address& address, const std::string& why) {
  return fail(ErrorCode::kIo, shown(address) + ": no patternd answers there (" + why +
                                  "); is it running, and is this the address under publish?");
}

tl::unexpected<Error> cannot_connect(const Address& address, int error) {
  if (error != EMFILE && error != ENFILE) return nobody_answers(address, std::strerror(error));
  return fail(ErrorCode::kIo, shown(address) + ": cannot be connected to (" + std::strerror(error) +
                                  "); raise this program's limit of open files (ulimit -n)");
}

// Connects within the time; errno's value or 0.
int connect_within(const FileDescriptor& socket, const sockaddr* where, socklen_t size,
                   int timeout_ms) {
  if (!socket.valid()) return errno;
  const int socket_fd = socket.get();
  const int flags = fcntl(socket_fd, F_GETFL);
  fcntl(socket_fd, F_SETFL, flags | O_NONBLOCK);
  int error = ::connect(socket_fd, where, size) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd writable{socket_fd, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (poll(&writable, 1, timeout_ms) != 1)
      error = ETIMEDOUT;
    else if (getsockopt(socket_fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
      error = errno;
  }
  fcntl(socket_fd, F_SETFL, flags);
  return error;
}

Result<FileDescriptor> connect_unix(const Address& address, int timeout_ms) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, address.path.c_str(), std::min(address.path.size(), kMaxUnixPath));
  FileDescriptor socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int error = connect_within(socket_fd, reinterpret_cast<const sockaddr*>(&where),
                                   sizeof where, timeout_ms);
  if (error != 0) return cannot_connect(address, error);
  return socket_fd;
}

Result<FileDescriptor> connect_tcp(const Address& address, int timeout_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int resolved =
      getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  if (resolved != 0) return nobody_answers(address, gai_strerror(resolved));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    FileDescriptor socket_fd(socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    error = connect_within(socket_fd, each->ai_addr, each->ai_addrlen, timeout_ms);
    if (error != 0) continue;
    // However this program ends, the service is told that nobody reads any more; an ordinary close
    // only says that nothing more is sent.
    const linger reset{1, 0};
    setsockopt(socket_fd.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ask_silent_peer(socket_fd.get());
    bound_unanswered_sending(socket_fd.get());
    return socket_fd;
  }
  return cannot_connect(address, error);
}

}  // namespace

ServiceClient::ServiceClient(Address address, Connection connection)
    : address_(std::move(address)), connection_(std::move(connection)) {}

Result<ServiceClient> ServiceClient::connect(const Address& address, int timeout_ms,
                                             const std::shared_ptr<const TlsContext>& tls) {
  auto socket_fd = address.kind == Address::Kind::kUnix ? connect_unix(address, timeout_ms)
                                                        : connect_tcp(address, timeout_ms);
  if (!socket_fd) return tl::make_unexpected(socket_fd.error());
  ServiceClient client(address, Connection(std::move(*socket_fd)));
  if (tls == nullptr) return client;
  auto session = TlsSession::create(tls, client.connection_.fd(), address.host);
  if (!session) return tl::make_unexpected(session.error());
  client.connection_.start(std::move(*session));
  if (auto good = client.shake_hands(timeout_ms); !good) return tl::make_unexpected(good.error());
  return client;
}

Result<void> ServiceClient::shake_hands(int timeout_ms) const {
  const std::int64_t deadline_ns = monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
  for (;;) {
    const auto progress = connection_.session()->handshake();
    if (progress == TlsSession::Progress::kDone) return {};
    if (progress == TlsSession::Progress::kFailed) return broken(ECONNRESET);
    const bool reads = progress == TlsSession::Progress::kWantsRead;
    const std::int64_t left_ms = (deadline_ns - monotonic_ns()) / 1'000'000;
    auto ready =
        wait_for(reads ? POLLIN : POLLOUT, static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
    if (!ready) return ready;
  }
}

tl::unexpected<Error> ServiceClient::broken(int error) const {
  const TlsSession* session = connection_.session();
  if (tells_of_vanished_peer(error)) {
    return fail(ErrorCode::kIo, shown(address_) + ": its machine has not answered for " +
                                    std::to_string(kPeerPatience.count()) + " s (" +
                                    std::strerror(error) +
                                    "); look whether it runs, and at the network between");
  }
  const bool tls_says = session != nullptr && !session->failure().empty();
  return fail(ErrorCode::kIo, shown(address_) + ": " +
                                  (tls_says ? "TLS failed: " + session->failure()
                                            : std::string(std::strerror(error))));
}

Result<void> ServiceClient::wait_for(short events, int timeout_ms) const {
  pollfd watched{connection_.fd(), events, 0};
  const int ready = poll(&watched, 1, timeout_ms);
  if (ready > 0 || (ready < 0 && errno == EINTR)) return {};
  return fail(ErrorCode::kTimeout, shown(address_) + ": nothing came in time");
}

Result<std::string> ServiceClient::read_line(int timeout_ms) {
  for (;;) {
    const std::size_t end = input_.find('\n', read_);
    if (end != std::string::npos) {
      std::string line = input_.substr(read_, end - read_);
      read_ = end + 1;
      return line;
    }
    input_.erase(0, std::exchange(read_, 0));
    if (input_.size() > kMaxLineBytes) {
      return fail(ErrorCode::kParse, shown(address_) +
                                         ": sent more than 1 MiB without an end of "
                                         "line; it is no patternd");
    }
    if (auto ready = wait_for(POLLIN, timeout_ms); !ready)
      return tl::make_unexpected(ready.error());
    std::array<char, 65536> buffer{};
    const ssize_t got = connection_.receive(buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) return broken(errno);
    if (got == 0)
      return fail(ErrorCode::kEndOfStream, shown(address_) + ": the service closed the connection");
    input_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Result<void> ServiceClient::send_line(const Json& object) { return send_text(line_of(object)); }

Result<void> ServiceClient::send_text(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty() || connection_.flush() != 0) {
    const ssize_t sent = rest.empty() ? -1 : connection_.send(rest);
    if (sent >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno != EINTR && errno != EAGAIN) return broken(errno);
    if (auto ready = wait_for(POLLOUT, -1); !ready) return ready;
  }
  return {};
}

void ServiceClient::close_output() { connection_.finish_output(); }

Result<Json> ServiceClient::ask(const Json& command, int timeout_ms) {
  if (auto sent = send_line(command); !sent) return tl::make_unexpected(sent.error());
  const std::int64_t deadline_ns = monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
  for (;;) {
    const std::int64_t left_ms = (deadline_ns - monotonic_ns()) / 1'000'000;
    auto line = read_line(static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
    if (!line) return tl::make_unexpected(line.error());
    const Json object = Json::parse(*line, nullptr, false);
    if (!object.is_object())
      return fail(ErrorCode::kParse, shown(address_) + ": sent a line that is no JSON object");
    if (object.value("type", "") != "reply") continue;
    if (object.value("ok", false)) return object.value("data", Json::object());
    return fail(ErrorCode::kDevice, object.value("error", "refused without a reason"));
  }
}

}  // namespace patternd
