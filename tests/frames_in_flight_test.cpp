// Several frames in flight through the service's compute thread, on a device made for tests. Run
// under the thread sanitizer too.
#include <gtest/gtest.h>

#include "tests/support/service_fixture.h"

namespace patternd {
namespace {

class FramesInFlight : public test::ServiceFixture {
 protected:
  // A service whose device takes `depth` frames, `delay_us` each, and whose camera has buffers for
  // `streams`.
  void begin(std::size_t depth, int delay_us, int streams, bool live) {
    camera_ = std::make_unique<test::FakeCamera>(live);
    device_ = std::make_shared<test::FakeDevice>(depth, delay_us);
    configure("a", streams_of(streams));
    ASSERT_TRUE(create());
  }
  static std::string streams_of(int streams) {
    return "compute: {streams: " + std::to_string(streams) + "}\n";
  }
  static void expect_result(ServiceClient& client, std::uint64_t seq) {
    const Json line = next_of(client, "result");
    ASSERT_EQ(line["seq"], seq);
    ASSERT_EQ(line["matches"][0]["x_px"], static_cast<double>(seq));
    ASSERT_EQ(line["dropped"], 0);
  }
};

TEST_F(FramesInFlight, KeepTheirOrderAndEachComesOnce) {
  begin(4, 300, 4, false);
  ServiceClient client = connect();
  camera_->allow(500);
  camera_->end_when_empty();
  run();
  for (std::uint64_t seq = 0; seq < 500; ++seq) expect_result(client, seq);
  EXPECT_EQ(device_->most_in_flight(), 4U);
  EXPECT_EQ(status()["compute"]["streams"], 4);
}

// A camera whose next frame comes only after the result of the one before: no result may wait for
// the frame behind it.
TEST_F(FramesInFlight, NeverMakeAResultWaitForTheNextFrame) {
  begin(4, 2000, 4, true);
  ServiceClient client = connect();
  run();
  for (std::uint64_t seq = 0; seq < 50; ++seq) {
    camera_->allow(1);
    expect_result(client, seq);
  }
  EXPECT_EQ(device_->most_in_flight(), 1U);
}

// A frame that comes while the device is at work joins it: nobody waits for the device alone.
TEST_F(FramesInFlight, TakeAFrameThatComesWhileOthersAreComputed) {
  begin(3, 0, 3, true);
  ServiceClient client = connect();
  run();
  device_->hold(true);
  for (std::size_t frames = 1; frames <= 3; ++frames) {
    camera_->allow(1);
    device_->wait_for_in_flight(frames);
  }
  device_->hold(false);
  for (std::uint64_t seq = 0; seq < 3; ++seq) expect_result(client, seq);
}

TEST_F(FramesInFlight, ArePublishedBeforeTheFirstUnderANewConfiguration) {
  begin(4, 0, 4, true);
  ServiceClient client = connect();
  ServiceClient commander = connect();
  run();
  std::uint64_t seq = 0;
  for (const char* name : {"b", "a", "b"}) {
    device_->hold(true);
    for (std::size_t frames = 1; frames <= 3; ++frames) {
      camera_->allow(1);
      device_->wait_for_in_flight(frames);
    }
    configure(name, streams_of(4));
    ASSERT_TRUE(commander.send_line({{"command", "reload"}}));
    while (status()["configuration"]["first_seq"] != nullptr)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    camera_->allow(1);
    device_->hold(false);
    for (int frame = 0; frame < 4; ++frame) {
      const Json line = next_of(client, "result");
      ASSERT_EQ(line["seq"], seq++);
      ASSERT_EQ(line["matches"][0]["pattern"] == name, frame == 3) << line.dump();
    }
    const Json reply = next_of(commander, "reply");
    EXPECT_EQ(reply["data"]["first_seq"], seq - 1) << reply.dump();
  }
}

TEST_F(FramesInFlight, AreFinishedWhenTheServiceStops) {
  begin(4, 20'000, 4, true);
  ServiceClient client = connect();
  run();
  for (std::size_t frames = 1; frames <= 3; ++frames) {
    device_->hold(true);
    camera_->allow(1);
    device_->wait_for_in_flight(frames);
  }
  ending_ = true;
  device_->hold(false);
  for (std::uint64_t seq = 0; seq < 3; ++seq) expect_result(client, seq);
  EXPECT_EQ(client.read_line(test::kPatienceMs).error().code, ErrorCode::kEndOfStream);
}

TEST_F(FramesInFlight, CountAFailedOneOnTheResultBehindIt) {
  begin(4, 300, 4, false);
  device_->fail_collecting(5);
  device_->fail_submitting(9);
  ServiceClient client = connect();
  camera_->allow(12);
  camera_->end_when_empty();
  run();
  for (std::uint64_t seq = 0; seq < 12; ++seq) {
    if (seq == 5 || seq == 9) continue;
    const Json line = next_of(client, "result");
    ASSERT_EQ(line["seq"], seq);
    ASSERT_EQ(line["dropped"], seq == 6 || seq == 10 ? 1 : 0);
  }
  EXPECT_EQ(status()["compute"]["failed"], 2);
}

// The camera was opened for fewer frames than a later configuration computes at once.
TEST_F(FramesInFlight, AreNotMoreThanTheCameraHasBuffersFor) {
  begin(8, 300, 2, false);
  ServiceClient client = connect();
  camera_->allow(200);
  camera_->end_when_empty();
  run();
  for (std::uint64_t seq = 0; seq < 200; ++seq) expect_result(client, seq);
  EXPECT_EQ(device_->most_in_flight(), 2U);
}

}  // namespace
}  // namespace patternd
