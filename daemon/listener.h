// A socket that clients connect to.
#pragma once

#include <string>

#include "daemon/address.h"
#include "daemon/file_descriptor.h"
#include "pipeline/result.h"

namespace patternd {

class Listener {
 public:
  // Binds and listens, non-blocking. A Unix socket gets mode 0660; a file that a dead service left
  // at its place is removed, one that is served or is no socket is an error. Errors name the
  // address and the cure.
  [[nodiscard]] static Result<Listener> open(const Address& address);
  // Takes over a socket that somebody else (systemd) bound and listens on; its file, where it has
  // one, stays theirs. kInvalidArgument where it is no such socket.
  [[nodiscard]] static Result<Listener> adopt(FileDescriptor socket);
  Listener(Listener&& other) noexcept = default;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  [[nodiscard]] int fd() const { return socket_.get(); }
  // As configured.
  [[nodiscard]] const Address& address() const { return address_; }
  // As bound: with the port that the system chose for port 0.
  [[nodiscard]] Address bound_address() const;

 private:
  Listener(Address address, FileDescriptor socket);
  void remove_file();

  Address address_;
  FileDescriptor socket_;
  bool owns_file_ = true;
};

}  // namespace patternd
