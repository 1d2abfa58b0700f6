// A socket that clients connect to.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>

#include "daemon/address.h"
#include "daemon/file_descriptor.h"
#include "pipeline/result.h"

namespace patternd {

// Who may connect to a Unix socket: those who may write to its file.
struct SocketFile {
  unsigned mode = 0660;
  std::string group;  // a name or number; empty: as the folder and the service's user have it
};

// The number of a group given by name or number; nothing where this machine has none.
[[nodiscard]] std::optional<gid_t> group_number(const std::string& group);

class Listener {
 public:
  // Binds and listens, non-blocking. A Unix socket's file gets what `file` says; one that a dead
  // service left at its place is removed, one that is served or is no socket is an error. Errors
  // name the address and the cure.
  [[nodiscard]] static Result<Listener> open(const Address& address, const SocketFile& file = {});
  // Takes over a socket that somebody else (systemd) bound and listens on; its file, where it has
  // one, stays theirs. kInvalidArgument where it is no such socket.
  [[nodiscard]] static Result<Listener> adopt(FileDescriptor socket);
  Listener(Listener&& other) noexcept = default;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener();

  [[nodiscard]] int fd() const { return socket_.get(); }
  // Changes the file of a Unix socket that was opened here; nothing for others.
  [[nodiscard]] static Result<void> set_permissions(const Address& address, const SocketFile& file);
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
