#include "daemon/listener.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <utility>
#include <vector>

#include "pipeline/utf8.h"

namespace patternd {
namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketAddress tcp_socket_address(const Address& address) {
  SocketAddress result;
  const std::string host = address.host == "localhost" ? "127.0.0.1" : address.host;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    std::memcpy(&result.storage, &v4, sizeof v4);
    result.size = sizeof v4;
  } else if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(address.port);
    std::memcpy(&result.storage, &v6, sizeof v6);
    result.size = sizeof v6;
  }
  return result;
}

SocketAddress unix_socket_address(const Address& address) {
  SocketAddress result;
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  std::memcpy(local.sun_path, address.path.c_str(), std::min(address.path.size(), kMaxUnixPath));
  std::memcpy(&result.storage, &local, sizeof local);
  result.size = sizeof local;
  return result;
}

tl::unexpected<Error> cannot_listen(const Address& address, const std::string& why,
                                    const std::string& cure) {
  return fail(ErrorCode::kIo, shown(address) + ": cannot listen (" + why + "); " + cure);
}

std::string cure_of(int error) {
  switch (error) {
    case EADDRINUSE:
      return "another program, perhaps another patternd, has this address; stop it or set another "
             "in publish";
    case EADDRNOTAVAIL:
      return "this machine has no such address; set one that it has in publish";
    case EACCES:
      return "patternd lacks the right; set a port above 1023, or a folder that it may write to";
    case ENOENT:
      return "the folder does not exist; create it or set another path in publish.unix";
    default:
      return "set another address in publish";
  }
}

// Makes way for a Unix socket: a file without a server behind it goes.
Result<void> remove_stale_socket(const Address& address, const SocketAddress& where) {
  struct stat status {};
  if (lstat(address.path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return cannot_listen(address, "a file that is no socket stands there",
                         "remove it or set another path in publish.unix");
  }
  const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return cannot_listen(address, std::strerror(errno), cure_of(errno));
  if (connect(probe.get(), where.get(), where.size) == 0 || errno == EAGAIN)
    return cannot_listen(address, std::strerror(EADDRINUSE), cure_of(EADDRINUSE));
  unlink(address.path.c_str());
  return {};
}

std::optional<Address> bound_address_of(int socket_fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getsockname(socket_fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0)
    return std::nullopt;
  Address address;
  char host[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &storage, sizeof v4);
    address.port = ntohs(v4.sin_port);
    address.host = inet_ntop(AF_INET, &v4.sin_addr, host, sizeof host);
  } else if (storage.ss_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, &storage, sizeof v6);
    address.port = ntohs(v6.sin6_port);
    address.host = inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof host);
  } else if (storage.ss_family == AF_UNIX) {
    sockaddr_un local{};
    std::memcpy(&local, &storage, sizeof local);
    address.kind = Address::Kind::kUnix;
    address.path.assign(local.sun_path, strnlen(local.sun_path, sizeof local.sun_path));
  } else {
    return std::nullopt;
  }
  return address;
}

}  // namespace

std::optional<gid_t> group_number(const std::string& group) {
  gid_t number = 0;
  const auto end = std::from_chars(group.data(), group.data() + group.size(), number);
  if (end.ec == std::errc() && end.ptr == group.data() + group.size()) return number;
  std::vector<char> memory(std::size_t{64} << 10);
  ::group entry{};
  ::group* found = nullptr;
  if (getgrnam_r(group.c_str(), &entry, memory.data(), memory.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return entry.gr_gid;
}

Result<void> Listener::set_permissions(const Address& address, const SocketFile& file) {
  if (address.kind != Address::Kind::kUnix) return {};
  if (!file.group.empty()) {
    const auto number = group_number(file.group);
    if (!number) {
      return cannot_listen(address, "this machine has no group " + in_quotes(file.group),
                           "set one that it has in publish.unix.group");
    }
    if (lchown(address.path.c_str(), static_cast<uid_t>(-1), *number) != 0) {
      return cannot_listen(
          address, "its file cannot be given to group " + in_quotes(file.group),
          "patternd's user must belong to it, as by SupplementaryGroups= in a drop-in");
    }
  }
  if (chmod(address.path.c_str(), file.mode) == 0) return {};
  const int error = errno;
  return cannot_listen(address, std::strerror(error), cure_of(error));
}

Result<Listener> Listener::open(const Address& address, const SocketFile& file) {
  const bool is_unix = address.kind == Address::Kind::kUnix;
  const SocketAddress where = is_unix ? unix_socket_address(address) : tcp_socket_address(address);
  if (is_unix) {
    if (auto way = remove_stale_socket(address, where); !way)
      return tl::make_unexpected(way.error());
  }
  FileDescriptor socket_fd(
      socket(where.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int one = 1;
  if (!is_unix) setsockopt(socket_fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (!socket_fd.valid() || bind(socket_fd.get(), where.get(), where.size) != 0) {
    const int error = errno;
    return cannot_listen(address, std::strerror(error), cure_of(error));
  }
  Listener listener(address, std::move(socket_fd));
  // Nobody can connect before listen(), so the mode is right from the first client on.
  if (auto given = set_permissions(address, file); !given)
    return tl::make_unexpected(given.error());
  if (listen(listener.fd(), SOMAXCONN) != 0) {
    const int error = errno;
    return cannot_listen(address, std::strerror(error), cure_of(error));
  }
  return listener;
}

Listener::Listener(Address address, FileDescriptor socket)
    : address_(std::move(address)), socket_(std::move(socket)) {}

Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    remove_file();
    address_ = std::move(other.address_);
    socket_ = std::move(other.socket_);
    owns_file_ = other.owns_file_;
  }
  return *this;
}

Listener::~Listener() { remove_file(); }

void Listener::remove_file() {
  if (owns_file_ && socket_.valid() && address_.kind == Address::Kind::kUnix)
    unlink(address_.path.c_str());
}

Result<Listener> Listener::adopt(FileDescriptor socket) {
  int listening = 0;
  socklen_t size = sizeof listening;
  const bool good = getsockopt(socket.get(), SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 &&
                    listening != 0 && fcntl(socket.get(), F_SETFD, FD_CLOEXEC) == 0 &&
                    fcntl(socket.get(), F_SETFL, O_NONBLOCK) == 0;
  const auto address = good ? bound_address_of(socket.get()) : std::nullopt;
  if (!address) {
    return fail(
        ErrorCode::kInvalidArgument,
        "file descriptor " + std::to_string(socket.get()) +
            " was handed over by systemd, but is no stream socket that listens; patternd.socket "
            "must have ListenStream alone");
  }
  Listener listener(*address, std::move(socket));
  listener.owns_file_ = false;
  return listener;
}

Address Listener::bound_address() const {
  const auto bound = address_.port == 0 ? bound_address_of(fd()) : std::nullopt;
  return bound.value_or(address_);
}

}  // namespace patternd
