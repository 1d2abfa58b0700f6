// A publisher with made-up results, and clients of it.
#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/publisher.h"
#include "daemon/service_client.h"

namespace patternd::test {

inline constexpr int kPatienceMs = 20'000;

inline Address any_port() {
  Address address;
  address.port = 0;
  return address;
}

// A publisher with the pattern "bolt" and "nut", on a port of its own.
class PublisherFixture : public ::testing::Test {
 protected:
  PublisherFixture() {
    auto labels = std::make_shared<ResultFormat>();
    labels->patterns = {{"bolt", 1, 10}, {"nut", 1, 10}};
    format_ = labels;
  }
  void start(const std::vector<Address>& addresses = {any_port()},
             std::chrono::milliseconds peer_patience = kPeerPatience) {
    std::vector<Listener> listeners;
    for (const Address& address : addresses) {
      auto listener = Listener::open(address);
      ASSERT_TRUE(listener) << listener.error().message;
      listeners.push_back(std::move(*listener));
    }
    PublisherCallbacks callbacks;
    callbacks.status = [] { return Json{{"state", "fine"}}; };
    callbacks.latency = [] { return Json::object(); };
    callbacks.reload = [this](std::uint64_t client) {
      publisher_->reply(client, reply_line("reload", {{"first_seq", 7}}));
    };
    publisher_ =
        std::make_unique<Publisher>(std::move(listeners), callbacks, statistics_, 4, peer_patience);
    publisher_->greet_with({"cam0", 64, 48, "cpu", {"bolt", "nut"}});
    publisher_->settle();
  }
  ServiceClient connect() {
    auto client = ServiceClient::connect(publisher_->bound_addresses().at(0));
    EXPECT_TRUE(client) << client.error().message;
    return std::move(client.value());  // ends the test by throwing, where there is none
  }
  // Connected, and greeted.
  ServiceClient connect_and_greet() {
    ServiceClient client = connect();
    EXPECT_EQ(next(client)["type"], "hello");
    return client;
  }
  static Json next(ServiceClient& client) {
    const auto line = client.read_line(kPatienceMs);
    EXPECT_TRUE(line) << line.error().message;
    return line ? Json::parse(*line) : Json{{"type", "nothing"}};
  }
  // One frame with a bolt and a nut.
  void publish(std::uint64_t seq) {
    ResultSlot* slot = publisher_->acquire(std::chrono::milliseconds(kPatienceMs));
    ASSERT_NE(slot, nullptr);
    slot->format = format_;
    slot->info = FrameInfo();
    slot->info.seq = seq;
    slot->result.matches.resize(2);
    slot->result.matches[0].pattern = 0;
    slot->result.matches[1].pattern = 1;
    slot->started_ns = slot->processed_ns = monotonic_ns();
    publisher_->submit(slot);
  }

  LatencyStatistics statistics_;
  std::shared_ptr<const ResultFormat> format_;
  std::unique_ptr<Publisher> publisher_;
};

}  // namespace patternd::test
