#include "daemon/service_manager.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>

#include "pipeline/stage.h"

namespace patternd {
namespace {

std::int64_t number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return 0;
  const std::string_view view(text);
  std::int64_t value = 0;
  const auto end = std::from_chars(view.data(), view.data() + view.size(), value);
  return end.ec == std::errc() && end.ptr == view.data() + view.size() && value > 0 ? value : 0;
}

// A status is one line.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

std::vector<FileDescriptor> take_inherited_sockets() {
  constexpr int kFirst = 3;
  constexpr std::int64_t kMost = 16;
  std::vector<FileDescriptor> sockets;
  const bool ours = number_from_environment("LISTEN_PID") == getpid();
  const std::int64_t count = std::min(number_from_environment("LISTEN_FDS"), kMost);
  for (int i = 0; ours && i < count; ++i) sockets.emplace_back(kFirst + i);
  unsetenv("LISTEN_PID");
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_FDNAMES");
  return sockets;
}

ServiceManager::ServiceManager() {
  const char* address = std::getenv("NOTIFY_SOCKET");
  if (address != nullptr && (address[0] == '/' || address[0] == '@') &&
      std::strlen(address) < sizeof(sockaddr_un::sun_path)) {
    address_ = address;
    socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  }
  const std::int64_t pid = number_from_environment("WATCHDOG_PID");
  if (pid == 0 || pid == getpid()) watchdog_ns_ = number_from_environment("WATCHDOG_USEC") * 1000;
}

void ServiceManager::send(const std::string& message) const {
  if (!socket_.valid()) return;
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  std::memcpy(where.sun_path, address_.data(), address_.size());
  // '@' stands for the NUL of an abstract name.
  if (where.sun_path[0] == '@') where.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  // A manager that does not listen is none of our concern; MSG_DONTWAIT: nor shall it hold us up.
  (void)sendto(socket_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&where), size);
}

void ServiceManager::ready(const std::string& status) const {
  send("READY=1\nSTATUS=" + one_line(status));
}

void ServiceManager::reloading() const {
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(monotonic_ns() / 1000));
}

void ServiceManager::stopping() const { send("STOPPING=1"); }
void ServiceManager::status(const std::string& status) const { send("STATUS=" + one_line(status)); }
void ServiceManager::feed_watchdog() const { send("WATCHDOG=1"); }

}  // namespace patternd
