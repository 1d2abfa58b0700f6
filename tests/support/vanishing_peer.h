// Makes a machine at one end of a TCP connection vanish, as far as the other end can tell.
#pragma once

#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "daemon/file_descriptor.h"

namespace patternd::test {

// From here on nothing that comes for the socket reaches it, so that nothing is answered either.
inline void vanish(int socket) {
  std::array<sock_filter, 1> take_nothing = {{{BPF_RET | BPF_K, 0, 0, 0}}};
  const sock_fprog program{1, take_nothing.data()};
  ASSERT_EQ(setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program), 0);
}

inline std::uint16_t port_of(const sockaddr_storage& where) {
  sockaddr_in v4{};
  std::memcpy(&v4, &where, sizeof v4);
  return where.ss_family == AF_INET ? ntohs(v4.sin_port) : 0;
}

// A connection on 127.0.0.1, with a small buffer at the client's end.
struct LoopbackPair {
  LoopbackPair() {
    const FileDescriptor listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    auto* address = reinterpret_cast<sockaddr*>(&where);
    EXPECT_EQ(bind(listener.get(), address, size), 0);
    EXPECT_EQ(listen(listener.get(), 1), 0);
    EXPECT_EQ(getsockname(listener.get(), address, &size), 0);
    client.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int small = 4096;
    setsockopt(client.get(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    EXPECT_EQ(connect(client.get(), address, size), 0);
    server.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    EXPECT_TRUE(server.valid());
  }
  FileDescriptor client;
  FileDescriptor server;
};

// This process's connected socket whose own port (`ours`), or whose peer's, is this one; -1 where
// there is none.
inline int connected_socket(std::uint16_t port, bool ours) {
  constexpr int kMostFiles = 1024;
  for (int fd = 0; fd < kMostFiles; ++fd) {
    sockaddr_storage local{};
    sockaddr_storage peer{};
    socklen_t local_size = sizeof local;
    socklen_t peer_size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0) continue;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_size) != 0) continue;
    if (port_of(ours ? local : peer) == port) return fd;
  }
  return -1;
}

}  // namespace patternd::test
