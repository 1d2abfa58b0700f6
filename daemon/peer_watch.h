// Finds out that the machine at the other end of a TCP connection has vanished without a word:
// power off, cable pulled. Left to itself TCP tries for a quarter of an hour.
#pragma once

#include <chrono>
#include <cstdint>

namespace patternd {

// How long a machine may be silent before it is given up.
inline constexpr std::chrono::seconds kPeerPatience{30};

// While nothing is on its way the kernel asks the peer whether it is still there, and ends the
// connection with ETIMEDOUT (or what a router says, EHOSTUNREACH) after kPeerPatience.
void ask_silent_peer(int tcp_socket);
// The same while something sent waits for its acknowledgement. Only for those that send to a peer
// that reads: the kernel's clock runs on where the peer is alive and its buffer full.
void bound_unanswered_sending(int tcp_socket);
// Whether errno says that the peer vanished.
[[nodiscard]] bool tells_of_vanished_peer(int error);

// For a peer that may be slow, or stand still for hours, and is nobody's business as long as its
// machine answers: looks at what of ours was sent again and got no answer at all.
class PeerWatch {
 public:
  // True where something is on its way, was tried twice or more, and nothing, not even an
  // acknowledgement of what was there before, has come for `patience`. Asked every few seconds. The
  // tries to a peer that stood still before become rare, two minutes apart at most, so that one is
  // found after up to six minutes.
  [[nodiscard]] bool vanished(int tcp_socket, std::chrono::milliseconds patience);

 private:
  std::int64_t heard_ms_ = 0;   // CLOCK_MONOTONIC, as of the last call
  int backoff_when_heard_ = 0;  // how often the kernel had doubled its time to try again
};

}  // namespace patternd
