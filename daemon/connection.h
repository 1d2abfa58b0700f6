// A connected socket, with TLS or without: the calls of send(2) and recv(2) that never block.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <sys/types.h>
#include <sys/uio.h>
#include <utility>

#include "daemon/file_descriptor.h"
#include "daemon/tls.h"

namespace patternd {

class Connection {
 public:
  explicit Connection(FileDescriptor socket);
  // From here on all goes through the session, made for this socket.
  void start(std::unique_ptr<TlsSession> session) { session_ = std::move(session); }
  [[nodiscard]] int fd() const { return socket_.get(); }
  // Null without TLS.
  [[nodiscard]] TlsSession* session() const { return session_.get(); }

  // Bytes taken, or -1 and errno as send(2) has it.
  [[nodiscard]] ssize_t send(iovec* parts, std::size_t count);
  [[nodiscard]] ssize_t send(std::string_view text);
  // Bytes, 0 at the end, or -1 and errno.
  [[nodiscard]] ssize_t receive(void* data, std::size_t size);
  // Sends what was taken and is not in the socket yet; -1 and errno where that is full or gone.
  [[nodiscard]] int flush() { return session_ != nullptr ? session_->flush() : 0; }
  // Throws away what has come; false where the other side has ended.
  [[nodiscard]] bool discard_input() const;
  // Tells the other side that nothing more comes.
  void finish_output();

 private:
  FileDescriptor socket_;
  std::unique_ptr<TlsSession> session_;
};

}  // namespace patternd
