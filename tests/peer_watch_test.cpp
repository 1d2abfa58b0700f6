#include "daemon/peer_watch.h"

#include <array>
#include <cerrno>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <thread>

#include "pipeline/stage.h"
#include "tests/support/vanishing_peer.h"

namespace patternd {
namespace {

using std::chrono::milliseconds;
using test::LoopbackPair;

constexpr milliseconds kShortPatience{300};
constexpr milliseconds kStep{20};

// Sends until the socket takes no more: the client never reads.
void fill(int socket) {
  const std::array<char, 4096> block{};
  while (send(socket, block.data(), block.size(), MSG_NOSIGNAL | MSG_DONTWAIT) > 0) {
  }
  ASSERT_EQ(errno, EAGAIN);
}

bool vanishes_within(PeerWatch& watch, int socket, milliseconds limit) {
  for (milliseconds waited{0}; waited < limit; waited += kStep) {
    if (watch.vanished(socket, kShortPatience)) return true;
    std::this_thread::sleep_for(kStep);
  }
  return false;
}

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(socket, level, name, &value, &size), 0);
  return value;
}

TEST(PeerWatch, FindsAPeerThatAnswersNoMoreWhatItIsSent) {
  LoopbackPair pair;
  PeerWatch watch;
  EXPECT_FALSE(watch.vanished(pair.server.get(), kShortPatience));
  test::vanish(pair.client.get());
  ASSERT_EQ(send(pair.server.get(), "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_TRUE(vanishes_within(watch, pair.server.get(), milliseconds(15'000)));
}

TEST(PeerWatch, KeepsAPeerThatStandsStillButAnswers) {
  LoopbackPair pair;
  fill(pair.server.get());
  PeerWatch watch;
  // (The kernel asks after 0.2, 0.4, 0.8 and 1.6 s: the patience passes in between.)
  EXPECT_FALSE(vanishes_within(watch, pair.server.get(), milliseconds(3'500)));
}

TEST(PeerWatch, FindsAPeerThatStoodStillAndThenVanished) {
  LoopbackPair pair;
  fill(pair.server.get());
  PeerWatch watch;
  EXPECT_FALSE(vanishes_within(watch, pair.server.get(), kShortPatience));
  test::vanish(pair.client.get());
  EXPECT_TRUE(vanishes_within(watch, pair.server.get(), milliseconds(15'000)));
}

TEST(PeerWatch, LeavesAPeerToTheKernelWhileNothingIsOnItsWay) {
  LoopbackPair pair;
  PeerWatch watch;
  test::vanish(pair.client.get());
  EXPECT_FALSE(vanishes_within(watch, pair.server.get(), 3 * kShortPatience));
}

TEST(PeerWatch, TakesWhatIsNoTcpSocketForAPeerThatIsThere) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const FileDescriptor one(ends[0]);
  const FileDescriptor other(ends[1]);
  PeerWatch watch;
  EXPECT_FALSE(watch.vanished(one.get(), milliseconds(0)));
}

TEST(PeerWatch, LetsTheKernelAskForHalfAMinute) {
  LoopbackPair pair;
  const int socket = pair.server.get();
  ask_silent_peer(socket);
  EXPECT_EQ(option(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(
      option(socket, IPPROTO_TCP, TCP_KEEPIDLE) +
          option(socket, IPPROTO_TCP, TCP_KEEPINTVL) * option(socket, IPPROTO_TCP, TCP_KEEPCNT),
      kPeerPatience.count());
  EXPECT_EQ(option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);  // it ends slow readers
  bound_unanswered_sending(socket);
  EXPECT_EQ(option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), milliseconds(kPeerPatience).count());
}

TEST(PeerWatch, KnowsTheErrorsOfAPeerThatVanished) {
  EXPECT_TRUE(tells_of_vanished_peer(ETIMEDOUT));
  EXPECT_TRUE(tells_of_vanished_peer(EHOSTUNREACH));
  EXPECT_FALSE(tells_of_vanished_peer(ECONNRESET));
  EXPECT_FALSE(tells_of_vanished_peer(EPIPE));
  EXPECT_FALSE(tells_of_vanished_peer(0));
}

}  // namespace
}  // namespace patternd
