#include "daemon/peer_watch.h"

#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "pipeline/stage.h"

namespace patternd {
namespace {

constexpr int kFewestTries = 2;
// The kernel counts in ticks of up to 10 ms: what differs by less is the same instant.
constexpr std::int64_t kTicksMs = 50;

void set_option(int tcp_socket, int name, int value) {
  setsockopt(tcp_socket, IPPROTO_TCP, name, &value, sizeof value);
}

}  // namespace

void ask_silent_peer(int tcp_socket) {
  constexpr int kIdleS = 10;
  constexpr int kIntervalS = 5;
  constexpr int kProbes = (static_cast<int>(kPeerPatience.count()) - kIdleS) / kIntervalS;
  const int on = 1;
  setsockopt(tcp_socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  set_option(tcp_socket, TCP_KEEPIDLE, kIdleS);
  set_option(tcp_socket, TCP_KEEPINTVL, kIntervalS);
  set_option(tcp_socket, TCP_KEEPCNT, kProbes);
}

void bound_unanswered_sending(int tcp_socket) {
  constexpr std::chrono::milliseconds kPatience = kPeerPatience;
  set_option(tcp_socket, TCP_USER_TIMEOUT, static_cast<int>(kPatience.count()));
}

bool tells_of_vanished_peer(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
}

bool PeerWatch::vanished(int tcp_socket, std::chrono::milliseconds patience) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(tcp_socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  const std::int64_t heard_ms = monotonic_ns() / 1'000'000 - info.tcpi_last_ack_recv;
  if (heard_ms > heard_ms_ + kTicksMs) {
    heard_ms_ = heard_ms;
    backoff_when_heard_ = info.tcpi_backoff;
  }
  // Two kinds of tries: what is on its way is sent again, each time after twice the time before
  // (`tcpi_total_retrans` would leave out those that fail here already, for want of a route); a
  // full peer is asked whether it has room again, and its answer clears `tcpi_probes`.
  const int repeated = info.tcpi_backoff - backoff_when_heard_;
  const bool unanswered =
      info.tcpi_probes >= kFewestTries || (info.tcpi_unacked > 0 && repeated >= kFewestTries);
  return unanswered && info.tcpi_last_ack_recv >= patience.count();
}

}  // namespace patternd
