#include "daemon/publisher.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <thread>

#include "daemon/service_client.h"
#include "tests/support/publisher_fixture.h"
#include "tests/support/test_files.h"
#include "tests/support/vanishing_peer.h"

namespace patternd {
namespace {

using test::any_port;
using test::kPatienceMs;

class PublisherTest : public test::PublisherFixture {};

TEST_F(PublisherTest, SpeaksFirst) {
  start();
  ServiceClient client = connect();
  const Json hello = next(client);
  EXPECT_EQ(hello["type"], "hello");
  EXPECT_EQ(hello["patterns"], (Json{"bolt", "nut"}));
  EXPECT_EQ(hello["frame"], (Json{{"width", 64}, {"height", 48}}));
}

TEST_F(PublisherTest, GivesEveryResultToTwoHundredClientsInOrder) {
  start();
  std::vector<ServiceClient> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(connect_and_greet());
  EXPECT_EQ(publisher_->counters().clients, 200U);
  for (std::uint64_t seq = 0; seq < 20; ++seq) publish(seq);
  for (ServiceClient& client : clients) {
    for (std::uint64_t seq = 0; seq < 20; ++seq) ASSERT_EQ(next(client)["seq"], seq);
  }
  publisher_->finish(kPatienceMs);
  for (ServiceClient& client : clients)
    EXPECT_EQ(client.read_line(kPatienceMs).error().code, ErrorCode::kEndOfStream);
}

TEST_F(PublisherTest, TellsASlowClientHowManyResultsItLostAndDelaysNobody) {
  start();
  ServiceClient slow = connect_and_greet();
  ServiceClient fast = connect_and_greet();
  constexpr std::uint64_t kCount = 30'000;
  std::uint64_t fast_lost = 0;
  std::uint64_t fast_got = 0;
  for (std::uint64_t seq = 0; seq < kCount; ++seq) {
    publish(seq);
    while (fast_got + fast_lost < seq + 1) {
      const Json line = next(fast);
      if (line["type"] == "dropped") fast_lost += line["count"].get<std::uint64_t>();
      if (line["type"] == "result") ++fast_got;
    }
  }
  EXPECT_EQ(fast_got, kCount);
  std::uint64_t got = 0;
  std::uint64_t lost = 0;
  std::int64_t last = -1;
  while (got + lost < kCount) {
    const Json line = next(slow);
    if (line["type"] == "nothing") break;
    if (line["type"] == "dropped") {
      lost += line["count"].get<std::uint64_t>();
      continue;
    }
    // Whatever is missing before this line has been announced.
    EXPECT_EQ(line["seq"].get<std::uint64_t>(), got + lost);
    ++got;
    last = line["seq"].get<std::int64_t>();
  }
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(got + lost, kCount);
  EXPECT_EQ(last, static_cast<std::int64_t>(kCount) - 1);
  EXPECT_EQ(publisher_->counters().dropped_results, lost);
}

TEST_F(PublisherTest, GoesOnSendingToAClientThatClosedItsSide) {
  start();
  ServiceClient client = connect_and_greet();
  client.close_output();
  publish(1);
  EXPECT_EQ(next(client)["seq"], 1);
  publish(2);
  EXPECT_EQ(next(client)["seq"], 2);
}

TEST_F(PublisherTest, ClosesAClientThatClosedItsSideOnceNothingMoreComesToIt) {
  start();
  ServiceClient client = connect_and_greet();
  ASSERT_TRUE(client.ask({{"command", "subscribe"}, {"types", Json::array()}}));
  EXPECT_EQ(publisher_->counters().clients, 1U);
  ASSERT_TRUE(client.send_text("{\"command\":\"status\"}\n{\"command\":\"reload\"}\n"));
  client.close_output();
  EXPECT_EQ(next(client)["command"], "status");
  EXPECT_EQ(next(client)["command"], "reload");
  const auto end = client.read_line(kPatienceMs);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kEndOfStream) << end.error().message;
  publisher_->settle();
  EXPECT_EQ(publisher_->counters().clients, 0U);
}

TEST_F(PublisherTest, KeepsAClientThatClosedItsSideForCameraMessages) {
  start();
  ServiceClient client = connect_and_greet();
  ASSERT_TRUE(client.ask({{"command", "subscribe"}, {"types", {"camera"}}}));
  client.close_output();
  publisher_->tell_camera(true, "unplugged");
  EXPECT_EQ(next(client)["reason"], "unplugged");
  publisher_->tell_camera(false, "fake camera");
  EXPECT_EQ(next(client)["state"], "back");
}

// Which of the kernel's timers runs for the connection that the service holds on this port
// (/proc/net/tcp): 2 is the one that asks a silent peer whether it is still there.
std::string timer_of_connection(int port) {
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::array<char, 8> wanted{};
  std::snprintf(wanted.data(), wanted.size(), ":%04X", static_cast<unsigned>(port));
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string number, local, remote, state, queues, timer;
    words >> number >> local >> remote >> state >> queues >> timer;
    const bool listens = state == "0A";
    if (!listens && local.size() > 5 && local.substr(local.size() - 5) == wanted.data())
      return timer.substr(0, 2);
  }
  return "none";
}

TEST_F(PublisherTest, LetsTheKernelAskAfterASilentClientThatClosedItsSide) {
  start();
  ServiceClient client = connect_and_greet();
  ASSERT_TRUE(client.ask({{"command", "subscribe"}, {"types", {"camera"}}}));
  client.close_output();
  publisher_->settle();
  EXPECT_EQ(publisher_->counters().clients, 1U);
  // (Another runs for as long as something sent is on its way.)
  const int port = publisher_->bound_addresses().at(0).port;
  const std::int64_t deadline_ns = monotonic_ns() + kPatienceMs * std::int64_t{1'000'000};
  while (timer_of_connection(port) != "02" && monotonic_ns() < deadline_ns)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(timer_of_connection(port), "02");
}

// As patternctl snapshot does: no results, so that nothing sent finds out that nobody reads.
TEST_F(PublisherTest, NoticesAtOnceThatAServiceClientHasGone) {
  start();
  {
    ServiceClient client = connect_and_greet();
    ASSERT_TRUE(client.ask({{"command", "subscribe"}, {"types", {"camera"}}}));
    EXPECT_EQ(publisher_->counters().clients, 1U);
  }
  const std::int64_t deadline_ns = monotonic_ns() + kPatienceMs * std::int64_t{1'000'000};
  while (publisher_->counters().clients > 0 && monotonic_ns() < deadline_ns)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(publisher_->counters().clients, 0U);
}

// What both ends ask of the kernel while nothing is on its way.
TEST_F(PublisherTest, HasTheKernelLookAfterTheMachinesAtBothEnds) {
  start();
  const ServiceClient client = connect_and_greet();
  const std::uint16_t port = publisher_->bound_addresses().at(0).port;
  for (const bool ours : {true, false}) {
    const int socket = test::connected_socket(port, ours);
    int asks = 0;
    socklen_t size = sizeof asks;
    ASSERT_EQ(getsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &asks, &size), 0);
    EXPECT_EQ(asks, 1);
    // The service's end would end clients that are alive and read slowly.
    int bound_ms = -1;
    ASSERT_EQ(getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &bound_ms, &size), 0);
    EXPECT_EQ(bound_ms, ours ? 0 : 30'000);
  }
}

TEST_F(PublisherTest, GivesUpAndCountsAClientWhoseMachineVanishedWithResultsOnTheWay) {
  start({any_port()}, std::chrono::milliseconds(600));
  ServiceClient gone = connect_and_greet();
  test::vanish(test::connected_socket(publisher_->bound_addresses().at(0).port, false));
  ServiceClient there = connect_and_greet();
  std::uint64_t seq = 0;
  const std::int64_t deadline_ns = monotonic_ns() + kPatienceMs * std::int64_t{1'000'000};
  while (publisher_->counters().vanished == 0 && monotonic_ns() < deadline_ns) {
    publish(++seq);
    EXPECT_EQ(next(there)["seq"], seq);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  publisher_->settle();
  EXPECT_EQ(publisher_->counters().vanished, 1U);
  EXPECT_EQ(publisher_->counters().clients, 1U);
}

TEST_F(PublisherTest, KeepsAClientThatReadsNothingForManyTimesThePatience) {
  constexpr std::chrono::milliseconds kPeerPatienceHere{60};
  start({any_port()}, kPeerPatienceHere);
  ServiceClient still = connect_and_greet();
  const std::int64_t end_ns = monotonic_ns() + std::int64_t{2'500'000'000};
  std::uint64_t seq = 0;
  while (monotonic_ns() < end_ns) {
    publish(seq++);
    if (seq > 20'000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(publisher_->counters().vanished, 0U);
  ASSERT_EQ(publisher_->counters().clients, 1U);
  EXPECT_EQ(next(still)["seq"], 0);
}

TEST_F(PublisherTest, TellsAServiceClientThatTheMachineHasNotAnswered) {
  start();
  ServiceClient client = connect_and_greet();
  const std::uint16_t port = publisher_->bound_addresses().at(0).port;
  const int socket = test::connected_socket(port, false);
  const int soon_ms = 300;
  ASSERT_EQ(setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &soon_ms, sizeof soon_ms), 0);
  test::vanish(socket);
  ASSERT_TRUE(client.send_line({{"command", "status"}}));
  const auto line = client.read_line(kPatienceMs);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().message,
            "127.0.0.1:" + std::to_string(port) +
                ": its machine has not answered for 30 s (Connection timed out); look whether it "
                "runs, and at the network between");
}

TEST_F(PublisherTest, AnswersBadLinesAndLivesOn) {
  start();
  ServiceClient client = connect_and_greet();
  ASSERT_TRUE(client.send_text("garbage\n\n\xff\xfe\n" + std::string(20'000, '{') +
                               "\n{\"command\":\"nothing\"}\r\n{\"command\":\"status\"}\n"));
  for (const char* command : {"null", "null", "null", "\"nothing\""}) {
    const Json reply = next(client);
    EXPECT_EQ(reply["ok"], false);
    EXPECT_EQ(reply["command"].dump(), command);
  }
  const Json status = next(client);
  EXPECT_EQ(status["ok"], true);
  EXPECT_EQ(status["data"]["state"], "fine");
  publish(1);
  EXPECT_EQ(next(client)["seq"], 1);
}

// More lines than are answered in a round.
TEST_F(PublisherTest, AnswersEachOfThousandsOfLinesSentAtOnceInTheirOrder) {
  start();
  ServiceClient client = connect_and_greet();
  std::thread writer([&client] {
    for (int i = 0; i < 6000; ++i)
      EXPECT_TRUE(client.send_line({{"command", "subscribe"}, {"every", i + 1}}));
    client.close_output();
  });
  for (int i = 0; i < 6000;) {
    const Json line = next(client);
    ASSERT_EQ(line["data"]["every"], i + 1);
    ++i;
  }
  writer.join();
  publish(1);
  EXPECT_EQ(next(client)["seq"], 1);
}

// The first twenty are answered at once, the rest in their time, results in between as ever.
TEST_F(PublisherTest, HearsASenderOfGarbageMoreSlowlyAndForgetsNoLine) {
  start();
  ServiceClient client = connect_and_greet();
  std::string garbage;
  for (int i = 0; i < 30; ++i) garbage += "garbage\n";
  ASSERT_TRUE(client.send_text(garbage + "{\"command\":\"status\"}\n"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(next(client)["ok"], false);
  publish(1);
  int bad = 20;
  int results = 0;
  for (Json line = next(client); line["ok"] != true; line = next(client)) {
    ASSERT_NE(line["type"], "nothing");
    (line["type"] == "result" ? results : bad) += 1;
  }
  EXPECT_EQ(bad, 30);
  EXPECT_EQ(results, 1);
}

TEST_F(PublisherTest, ClosesAfterALineOfMoreThan64KiBAndSaysWhy) {
  start();
  ServiceClient client = connect_and_greet();
  ServiceClient other = connect_and_greet();
  ASSERT_TRUE(client.send_text(std::string(70'000, 'x')));
  const Json reply = next(client);
  EXPECT_EQ(reply["ok"], false);
  EXPECT_NE(reply["error"].get<std::string>().find("65536 bytes"), std::string::npos);
  EXPECT_EQ(client.read_line(kPatienceMs).error().code, ErrorCode::kEndOfStream);
  publish(1);
  EXPECT_EQ(next(other)["seq"], 1);
}

TEST_F(PublisherTest, AnswersACommandWithoutAnEndOfLineWhenTheClientClosesItsSide) {
  start();
  ServiceClient client = connect_and_greet();
  ASSERT_TRUE(client.send_text("{\"command\":\"status\"}"));
  client.close_output();
  EXPECT_EQ(next(client)["command"], "status");
}

TEST_F(PublisherTest, GivesASubscriberWhatItAskedFor) {
  start();
  ServiceClient client = connect_and_greet();
  ASSERT_TRUE(client.ask({{"command", "subscribe"}, {"patterns", {"nut"}}, {"every", 3}}));
  for (std::uint64_t seq = 10; seq < 20; ++seq) publish(seq);
  for (int seq : {10, 13, 16, 19}) {
    const Json line = next(client);
    EXPECT_EQ(line["seq"], seq);
    ASSERT_EQ(line["matches"].size(), 1U);
    EXPECT_EQ(line["matches"][0]["pattern"], "nut");
    EXPECT_TRUE(line.contains("latency_us"));
  }
  const auto none = client.ask({{"command", "subscribe"}, {"patterns", Json::array()}});
  ASSERT_TRUE(none);
  EXPECT_EQ((*none)["patterns"], Json::array());
  publish(20);
  const Json empty = next(client);
  EXPECT_EQ(empty["seq"], 20);
  EXPECT_EQ(empty["matches"], Json::array());
  EXPECT_TRUE(empty.contains("latency_us"));
  ASSERT_TRUE(client.ask({{"command", "subscribe"}, {"types", {"camera"}}}));
  publish(21);
  publisher_->tell_camera(true, "unplugged");
  const Json camera = next(client);
  EXPECT_EQ(camera["type"], "camera");
  EXPECT_EQ(camera["reason"], "unplugged");
}

TEST_F(PublisherTest, TellsOfTheCameraInOrderAndToThoseWhoComeLater) {
  start();
  ServiceClient client = connect_and_greet();
  publisher_->tell_camera(false, "the first frame is no news");
  publish(1);
  publisher_->tell_camera(true, "no frame");
  EXPECT_EQ(next(client)["seq"], 1);
  EXPECT_EQ(next(client)["state"], "lost");
  ServiceClient later = connect_and_greet();
  EXPECT_EQ(next(later)["state"], "lost");
  publisher_->tell_camera(false, "here");
  publish(2);
  EXPECT_EQ(next(client)["state"], "back");
  EXPECT_EQ(next(client)["seq"], 2);
}

TEST_F(PublisherTest, TellsThoseWhoComeLaterThatTheCameraHasMovedWhileItHas) {
  start();
  Drift drift;
  drift.moved = true;
  drift.worst_mm = 1.5;
  publisher_->tell_drift(drift);
  ServiceClient later = connect_and_greet();
  const Json told = next(later);
  EXPECT_EQ(told["type"], "drift");
  EXPECT_EQ(told["worst_mm"], 1.5);
  drift.moved = false;
  publisher_->tell_drift(drift);
  EXPECT_EQ(next(later)["moved"], false);
  ServiceClient in_place = connect_and_greet();
  drift.moved = true;
  publisher_->tell_drift(drift);
  EXPECT_EQ(next(in_place)["moved"], true);
  publisher_->forget_drift();
  ServiceClient anew = connect_and_greet();
  publish(1);
  EXPECT_EQ(next(anew)["type"], "result");
}

TEST_F(PublisherTest, GivesADriftWithTheDecimalsOfResults) {
  start();
  ServiceClient client = connect_and_greet();
  Drift drift;
  drift.moved = true;
  drift.found = 2;
  drift.worst_mm = 1.8017504262834922;
  drift.shift_x_mm = 0.80004999;
  drift.shift_y_mm = -0.00001;
  drift.turn_deg = -0.0215678;
  publisher_->tell_drift(drift);
  const auto line = client.read_line(kPatienceMs);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(*line,
            R"({"type":"drift","moved":true,"found":2,"worst_mm":1.8018,"shift_mm":[0.8,0.0],)"
            R"("turn_deg":-0.022})");
}

TEST_F(PublisherTest, AnswersAReloadLater) {
  start();
  ServiceClient client = connect_and_greet();
  const auto reply = client.ask({{"command", "reload"}});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ((*reply)["first_seq"], 7);
}

TEST_F(PublisherTest, ServesAUnixSocketForOwnerAndGroupAloneAndRemovesIt) {
  const test::TemporaryFolder folder;
  Address address;
  address.kind = Address::Kind::kUnix;
  address.path = folder.file("p.sock");
  start({address});
  struct stat status {};
  ASSERT_EQ(stat(address.path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0660U);
  ServiceClient client = connect_and_greet();
  publish(3);
  EXPECT_EQ(next(client)["seq"], 3);
  EXPECT_NE(Listener::open(address).error().message.find("another program"), std::string::npos);
  publisher_->finish(kPatienceMs);
  EXPECT_NE(stat(address.path.c_str(), &status), 0);
}

TEST_F(PublisherTest, TakesTheUnixSocketOverFromAServiceThatDied) {
  const test::TemporaryFolder folder;
  Address address;
  address.kind = Address::Kind::kUnix;
  address.path = folder.file("p.sock");
  {
    const FileDescriptor dead(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    address.path.copy(where.sun_path, sizeof where.sun_path - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
  }
  start({address});
  connect_and_greet();
}

TEST_F(PublisherTest, MovesToAnotherAddressWithoutLosingItsClients) {
  start();
  ServiceClient old = connect_and_greet();
  auto listener = Listener::open(any_port());
  ASSERT_TRUE(listener);
  std::vector<Listener> added;
  added.push_back(std::move(*listener));
  const Address before = publisher_->bound_addresses().at(0);
  publisher_->change_listeners(std::move(added), {});
  publisher_->settle();
  EXPECT_FALSE(ServiceClient::connect(before));
  ServiceClient fresh = connect_and_greet();
  publish(5);
  EXPECT_EQ(next(old)["seq"], 5);
  EXPECT_EQ(next(fresh)["seq"], 5);
}

// Both ends of every connection are this program's, and a shell allows 1,024 descriptors.
TEST_F(PublisherTest, TurnsAwayWhoeverComesWhenItIsFull) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4 * Publisher::kMaxClients);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  start();
  std::vector<ServiceClient> clients;
  for (std::size_t i = 0; i < Publisher::kMaxClients; ++i) clients.push_back(connect_and_greet());
  ServiceClient refused = connect();
  EXPECT_NE(next(refused)["error"].get<std::string>().find("512 clients at most"),
            std::string::npos);
  EXPECT_EQ(publisher_->counters().refused, 1U);
  // One that closed its side makes room.
  clients[3].close_output();
  for (;;) {
    ServiceClient again = connect();
    if (next(again)["type"] == "hello") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Sockets made beforehand connect while no further descriptor can be had: the publisher hangs up on
// them, counts them, and serves on.
TEST_F(PublisherTest, HangsUpOnAndCountsClientsForWhichNoFileDescriptorIsLeft) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer's vptr check needs a file descriptor itself";
#endif
  start();
  ServiceClient steady = connect_and_greet();
  const Address address = publisher_->bound_addresses().at(0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(address.port);
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 10; ++i) sockets.emplace_back(socket(AF_INET, SOCK_STREAM, 0));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(sockets.back().get()) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_NE(ServiceClient::connect(address).error().message.find("limit of open files"),
            std::string::npos);
  for (const FileDescriptor& each : sockets) {
    ASSERT_EQ(::connect(each.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where), 0);
    char byte = 0;
    EXPECT_LE(recv(each.get(), &byte, 1, 0), 0);
  }
  publish(1);
  EXPECT_EQ(next(steady)["seq"], 1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(publisher_->counters().refused, 10U);
  connect_and_greet();
}

// To see whether somebody serves at a Unix socket takes a descriptor; without one it must stay.
TEST_F(PublisherTest, LeavesAServedSocketAloneWhenNoFileDescriptorIsLeft) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the undefined-behaviour sanitizer's vptr check needs a file descriptor itself";
#endif
  const test::TemporaryFolder folder;
  Address address;
  address.kind = Address::Kind::kUnix;
  address.path = folder.file("served.sock");
  start({address});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto second = Listener::open(address);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(second);
  connect_and_greet();
}

TEST_F(PublisherTest, LetsClientsReadTheLastResultsBeforeItCloses) {
  start();
  ServiceClient client = connect_and_greet();
  for (std::uint64_t seq = 0; seq < 2000; ++seq) publish(seq);
  std::thread finisher([this] { publisher_->finish(kPatienceMs); });
  std::uint64_t seq = 0;
  for (; seq < 2000; ++seq) ASSERT_EQ(next(client)["seq"], seq);
  EXPECT_EQ(client.read_line(kPatienceMs).error().code, ErrorCode::kEndOfStream);
  finisher.join();
}

TEST_F(PublisherTest, SurvivesClientsThatComeAndGoWhileResultsFlow) {
  start();
  std::atomic<bool> stop{false};
  std::vector<std::thread> visitors;
  for (int v = 0; v < 4; ++v) {
    visitors.emplace_back([this, v, &stop] {
      for (int i = 0; !stop; ++i) {
        ServiceClient client = connect();
        if (v % 2 == 0) (void)client.send_text("{\"command\":\"status\"}\n{\"comm");
        if (i % 3 == 0) (void)client.read_line(kPatienceMs);
      }
    });
  }
  ServiceClient steady = connect_and_greet();
  for (std::uint64_t seq = 0; seq < 300; ++seq) {
    publish(seq);
    ASSERT_EQ(next(steady)["seq"], seq);
  }
  stop = true;
  for (std::thread& visitor : visitors) visitor.join();
}

}  // namespace
}  // namespace patternd
