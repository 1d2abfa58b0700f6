#include "daemon/connection.h"

#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <utility>

namespace patternd {

Connection::Connection(FileDescriptor socket) : socket_(std::move(socket)) {}

ssize_t Connection::send(iovec* parts, std::size_t count) {
  if (session_ != nullptr) return session_->write(parts, count);
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return sendmsg(fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t Connection::send(std::string_view text) {
  // Sending only reads, but its interface has no const.
  iovec part{const_cast<char*>(text.data()), text.size()};
  return send(&part, 1);
}

ssize_t Connection::receive(void* data, std::size_t size) {
  return session_ != nullptr ? session_->read(data, size) : recv(fd(), data, size, MSG_DONTWAIT);
}

bool Connection::discard_input() const {
  std::array<char, 16384> ignored{};
  for (int i = 0; i < 64; ++i) {
    const ssize_t got = recv(fd(), ignored.data(), ignored.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
  }
  return true;
}

void Connection::finish_output() {
  if (session_ != nullptr) session_->finish();
  shutdown(fd(), SHUT_WR);
}

}  // namespace patternd
