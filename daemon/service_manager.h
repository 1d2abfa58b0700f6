// What systemd is told, by one datagram each (the protocol of sd_notify(3)); without systemd,
// nothing happens.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/file_descriptor.h"

namespace patternd {

// The sockets that systemd listens on for us (sd_listen_fds(3)); the first call alone gets them.
[[nodiscard]] std::vector<FileDescriptor> take_inherited_sockets();

class ServiceManager {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment.
  ServiceManager();

  void ready(const std::string& status) const;
  void reloading() const;  // with MONOTONIC_USEC, as Type=notify-reload wants it
  void stopping() const;
  void status(const std::string& status) const;
  void feed_watchdog() const;

  // Time after which systemd restarts a service that did not feed its watchdog; 0: none.
  [[nodiscard]] std::int64_t watchdog_ns() const { return watchdog_ns_; }

 private:
  void send(const std::string& message) const;

  FileDescriptor socket_;
  std::string address_;
  std::int64_t watchdog_ns_ = 0;
};

}  // namespace patternd
