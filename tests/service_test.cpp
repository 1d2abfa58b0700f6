// The service's threads and its life, with a camera and a processor made for tests. Run under the
// thread sanitizer too.
#include "daemon/service.h"

#include <atomic>
#include <chrono>
#include <gtest/gtest.h>
#include <thread>

#include "daemon/frame_client.h"
#include "tests/support/service_fixture.h"

namespace patternd {
namespace {

using ServiceTest = test::ServiceFixture;
using test::kPatienceMs;

TEST_F(ServiceTest, GivesEveryFrameOfARecordingOnceAndInOrderToEveryClient) {
  camera_ = std::make_unique<test::FakeCamera>(false);
  ASSERT_TRUE(create());
  std::vector<ServiceClient> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(connect());
  camera_->allow(500);
  camera_->end_when_empty();
  run();
  for (ServiceClient& client : clients) {
    for (std::uint64_t seq = 0; seq < 500; ++seq) {
      const Json line = next(client);
      ASSERT_EQ(line["type"], "result");
      ASSERT_EQ(line["seq"], seq);
      ASSERT_EQ(line["matches"][0]["x_px"], static_cast<double>(seq));
      ASSERT_EQ(line["dropped"], 0);
    }
  }
  while (!service_->ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(service_->end_error());
  end();
  EXPECT_EQ(service_->latency()["since_start"]["total"]["count"], 500);
}

TEST_F(ServiceTest, DropsOlderFramesOfALiveCameraAndCountsEach) {
  device_ = std::make_shared<test::FakeDevice>(1, 2000);
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  run();
  for (int i = 0; i < 100; ++i) {
    camera_->allow(5);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  while (camera_->taken() < 500) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::uint64_t accounted = 0;
  std::int64_t last = -1;
  bool dropped = false;
  while (last < 499) {
    const Json line = next(client);
    ASSERT_EQ(line["type"], "result");
    ASSERT_GT(line["seq"].get<std::int64_t>(), last);
    accounted += 1 + line["dropped"].get<std::uint64_t>();
    dropped = dropped || line["dropped"] > 0;
    last = line["seq"].get<std::int64_t>();
    ASSERT_EQ(accounted, static_cast<std::uint64_t>(last) + 1);
  }
  EXPECT_TRUE(dropped);
}

TEST_F(ServiceTest, WaitsForACameraThatIsNotThereYetAndSaysSo) {
  camera_->fail_with({ErrorCode::kNotFound, "/dev/video9: no such camera"});
  ASSERT_TRUE(create());
  run();
  ServiceClient client = connect();
  const Json lost = next(client);
  EXPECT_EQ(lost["state"], "lost");
  EXPECT_EQ(lost["reason"], "/dev/video9: no such camera");
  camera_->allow(1);
  camera_->heal();
  const Json back = next(client);
  EXPECT_EQ(back["state"], "back");
  EXPECT_EQ(back["frame"], (Json{{"width", 32}, {"height", 16}}));
  EXPECT_EQ(next(client)["seq"], 0);
}

TEST_F(ServiceTest, GreetsWithTheConfiguredSizeBeforeTheCameraComes) {
  configure("a", "", "source: replay, path: one, width: 640, height: 480");
  camera_->fail_with({ErrorCode::kNotFound, "/dev/video9: no such camera"});
  ASSERT_TRUE(create());
  auto client = ServiceClient::connect(service_->bound_addresses().at(0));
  ASSERT_TRUE(client);
  EXPECT_EQ(next(*client)["frame"], (Json{{"width", 640}, {"height", 480}}));
  run();
}

TEST_F(ServiceTest, ReopensALostCameraWhileItsClientsStayAndNumbersRise) {
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  run();
  for (std::uint64_t seq = 0; seq < 3; ++seq) {
    camera_->allow(1);
    EXPECT_EQ(next(client)["seq"], seq);
  }
  for (std::uint64_t round = 1; round < 4; ++round) {
    camera_->fail_with({ErrorCode::kDevice, "unplugged"});
    const Json lost = next(client);
    EXPECT_EQ(lost["state"], "lost");
    EXPECT_EQ(lost["reason"], "unplugged");
    EXPECT_EQ(status()["camera"]["state"], "lost");
    EXPECT_TRUE(service_->makes_progress(10'000'000'000));
    camera_->heal();
    camera_->allow(1);
    EXPECT_EQ(next(client)["state"], "back");
    EXPECT_EQ(next(client)["seq"], 2 + round);
  }
  EXPECT_EQ(status()["camera"]["reopened"], 3);
}

TEST_F(ServiceTest, TakesASilentCameraForLost) {
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  camera_->allow(1);
  run();
  EXPECT_EQ(next(client)["seq"], 0);
  EXPECT_EQ(next(client)["state"], "lost");
  camera_->allow(1);
  EXPECT_EQ(next(client)["state"], "back");
  EXPECT_EQ(next(client)["seq"], 1);
}

TEST_F(ServiceTest, LetsACameraOnATriggerBeSilent) {
  configure("a", "", "source: v4l2, device: /dev/video0, max_silence_s: none");
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  camera_->allow(1);
  run();
  EXPECT_EQ(next(client)["seq"], 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));  // TakesASilentCameraForLost: 2 s
  camera_->allow(1);
  EXPECT_EQ(next(client)["seq"], 1) << "and no word about the camera between";
  EXPECT_EQ(camera_->starts(), 1U);
}

TEST_F(ServiceTest, MakesAnotherProcessorWhereTheCameraComesBackWithAnotherSize) {
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  camera_->allow(1);
  run();
  EXPECT_EQ(next(client)["seq"], 0);
  camera_->set_size(64, 48);
  camera_->fail_with({ErrorCode::kDevice, "unplugged"});
  EXPECT_EQ(next(client)["state"], "lost");
  camera_->heal();
  camera_->allow(1);
  EXPECT_EQ(next(client)["state"], "back");
  EXPECT_EQ(next(client)["dropped"], 0);
  EXPECT_EQ(status()["frame"]["width"], 64);
}

TEST_F(ServiceTest, ReloadsBetweenTwoFramesAndNamesTheFirstOne) {
  ASSERT_TRUE(create());
  ServiceClient watcher = connect();
  ServiceClient commander = connect();
  run();
  std::atomic<bool> stop{false};
  std::thread feeder([this, &stop] {
    while (!stop) {
      camera_->allow(1);
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  std::string name = "a";
  std::int64_t last = -1;
  for (int round = 0; round < 10; ++round) {
    const std::string next_name = name == "a" ? "b" : "a";
    configure(next_name);
    const auto reply = commander.ask({{"command", "reload"}});
    ASSERT_TRUE(reply) << reply.error().message;
    const auto first = (*reply)["first_seq"].get<std::int64_t>();
    while (last < first) {
      const Json line = next_of(watcher, "result");
      ASSERT_GT(line["seq"].get<std::int64_t>(), last);
      last = line["seq"].get<std::int64_t>();
      ASSERT_EQ(line["matches"][0]["pattern"], last < first ? name : next_name);
    }
    name = next_name;
  }
  stop = true;
  feeder.join();
}

TEST_F(ServiceTest, KeepsTheRunningConfigurationWhereTheNewOneIsBad) {
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  run();
  configure("b", "unknown: 1\n");
  const auto bad_file = client.ask({{"command", "reload"}});
  ASSERT_FALSE(bad_file);
  EXPECT_NE(bad_file.error().message.find("p.yaml:4:1: unknown: unknown key"), std::string::npos);
  configure("b");
  refuse_processors_ = true;
  const auto bad_processor = client.ask({{"command", "reload"}});
  ASSERT_FALSE(bad_processor);
  EXPECT_NE(bad_processor.error().message.find("no processor today"), std::string::npos);
  configure("b", "latency: {log: /nowhere/l.csv}\n");
  refuse_processors_ = false;
  EXPECT_FALSE(client.ask({{"command", "reload"}}));
  camera_->allow(1);
  EXPECT_EQ(next_of(client, "result")["matches"][0]["pattern"], "a");
  EXPECT_EQ(status()["configuration"]["number"], 1);
}

TEST_F(ServiceTest, ChangesTheCameraOnReloadOrKeepsTheOldOne) {
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  run();
  for (std::uint64_t seq = 0; seq < 2; ++seq) {
    camera_->allow(1);
    EXPECT_EQ(next(client)["seq"], seq);
  }
  configure("b", "", "source: replay, path: two");
  second_camera_.fail_with({ErrorCode::kDevice, "it is broken"});
  const auto refused = client.ask({{"command", "reload"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("it is broken; the running camera was closed for "),
            std::string::npos)
      << refused.error().message;
  EXPECT_EQ(status()["camera"]["reopened"], 1);
  EXPECT_EQ(status()["camera"]["frames"], 2);
  camera_->allow(1);
  const Json old = next_of(client, "result");
  EXPECT_EQ(old["matches"][0]["pattern"], "a");
  EXPECT_EQ(old["seq"], 2);
  second_camera_.heal();
  second_camera_.allow(1);
  const auto accepted = client.ask({{"command", "reload"}});
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ((*accepted)["first_seq"], 3);
}

// What cannot share a device with it is tried beside it.
TEST_F(ServiceTest, LeavesARecordingRunningWhereTheNewCameraIsRefused) {
  camera_ = std::make_unique<test::FakeCamera>(false);
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  run();
  camera_->allow(2);
  EXPECT_EQ(next(client)["seq"], 0);
  EXPECT_EQ(next(client)["seq"], 1);
  configure("b", "", "source: replay, path: two");
  second_camera_.fail_with({ErrorCode::kNotFound, "no such recording"});
  const auto refused = client.ask({{"command", "reload"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the running configuration stays: no such recording");
  second_camera_.heal();
  refuse_processors_ = true;  // as where the calibration is for another size
  EXPECT_FALSE(client.ask({{"command", "reload"}}));
  EXPECT_EQ(second_camera_.starts(), 2U);
  EXPECT_EQ(camera_->starts(), 1U);
  camera_->allow(1);
  const Json old = next_of(client, "result");
  EXPECT_EQ(old["seq"], 2);
  EXPECT_EQ(old["matches"][0]["x_px"], 2);  // the source counts on
  EXPECT_EQ(status()["camera"]["reopened"], 0);
  refuse_processors_ = false;
  second_camera_.allow(1);
  const auto accepted = client.ask({{"command", "reload"}});
  ASSERT_TRUE(accepted) << accepted.error().message;
  EXPECT_EQ((*accepted)["first_seq"], 3);
}

TEST_F(ServiceTest, OpensAgainACameraThatDidNotComeBackAfterARefusedReload) {
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  run();
  configure("b", "", "source: replay, path: two");
  camera_->fail_with({ErrorCode::kDevice, "unplugged"});
  second_camera_.fail_with({ErrorCode::kDevice, "it is broken"});
  EXPECT_FALSE(client.ask({{"command", "reload"}}));
  camera_->heal();
  camera_->allow(1);
  EXPECT_EQ(next_of(client, "result")["matches"][0]["pattern"], "a");
}

TEST_F(ServiceTest, SendsFramesToWhomAsksForThem) {
  ASSERT_TRUE(create());
  run();
  const auto address = service_->bound_addresses().at(0);
  auto frames = FrameClient::request(address, {{"command", "record"}, {"frames", 5}, {"every", 2}});
  ASSERT_TRUE(frames) << frames.error().message;
  std::vector<std::uint64_t> numbers;
  for (;;) {
    camera_->allow(1);
    auto frame = frames->next(5);
    if (!frame && frame.error().code == ErrorCode::kTimeout) continue;
    ASSERT_TRUE(frame) << frame.error().message;
    if (!*frame) break;
    // The camera writes its count into the first pixels.
    EXPECT_EQ((*frame)->luma.row<std::uint8_t>(0)[0], (*frame)->stamp.seq & 255);
    EXPECT_EQ((*frame)->luma.width(), 32);
    numbers.push_back((*frame)->stamp.seq);
  }
  ASSERT_EQ(numbers.size(), 5U);
  for (std::size_t i = 1; i < numbers.size(); ++i) EXPECT_GE(numbers[i], numbers[i - 1] + 2);
}

TEST_F(ServiceTest, SendsTheFramesThatAClientWaitsForAfterItClosedItsSide) {
  ASSERT_TRUE(create());
  run();
  ServiceClient client = connect();
  ASSERT_TRUE(client.ask({{"command", "subscribe"}, {"types", Json::array()}}));
  ASSERT_TRUE(client.send_line({{"command", "record"}, {"frames", 2}}));
  client.close_output();
  (void)status();  // by now the service knows
  std::vector<std::string> types;
  for (;;) {
    camera_->allow(1);
    const auto line = client.read_line(5);
    if (!line && line.error().code == ErrorCode::kTimeout) continue;
    if (!line) {
      EXPECT_EQ(line.error().code, ErrorCode::kEndOfStream) << line.error().message;
      break;
    }
    types.push_back(Json::parse(*line).value("type", ""));
  }
  EXPECT_EQ(types, (std::vector<std::string>{"frame", "frame", "reply"}));
}

TEST_F(ServiceTest, SaysWhyNoFramesCanBeRecorded) {
  camera_->fail_with({ErrorCode::kNotFound, "/dev/video9: no such camera"});
  ASSERT_TRUE(create());
  run();
  auto frames = FrameClient::request(service_->bound_addresses().at(0), {{"command", "snapshot"}});
  ASSERT_TRUE(frames);
  while (frames->camera_lost().empty())
    EXPECT_EQ(frames->next(50).error().code, ErrorCode::kTimeout);
  EXPECT_EQ(frames->camera_lost(), "/dev/video9: no such camera");
  auto wrong = FrameClient::request(service_->bound_addresses().at(0),
                                    {{"command", "record"}, {"frames", -1}});
  ASSERT_TRUE(wrong);
  const auto refused = wrong->next(kPatienceMs);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDevice);
  EXPECT_NE(refused.error().message.find("frames must be"), std::string::npos);
}

TEST_F(ServiceTest, RefusesAtStartWhatCanNeverRun) {
  refuse_processors_ = true;
  const auto opened = create();
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("no processor today"), std::string::npos);
}

TEST_F(ServiceTest, EndsWithTheReasonWhereARecordingCannotBeReadOn) {
  camera_ = std::make_unique<test::FakeCamera>(false);
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  camera_->allow(2);
  run();
  EXPECT_EQ(next(client)["seq"], 0);
  EXPECT_EQ(next(client)["seq"], 1);
  camera_->fail_with({ErrorCode::kIo, "frame 3 is cut short"});
  while (!service_->ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(service_->end_error()->message, "frame 3 is cut short");
}

TEST_F(ServiceTest, StopsWhileACameraThatDoesNotLetGoIsBeingOpened) {
  ASSERT_TRUE(create());
  ServiceClient client = connect();
  camera_->allow(1);
  run();
  EXPECT_EQ(next(client)["seq"], 0);
  camera_->block_starts(true);
  camera_->fail_with({ErrorCode::kDevice, "unplugged"});
  EXPECT_EQ(next(client)["state"], "lost");
  while (camera_->starts() < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ending_ = true;
  main_.join();
  EXPECT_FALSE(stopped_);
  EXPECT_EQ(client.read_line(kPatienceMs).error().code, ErrorCode::kEndOfStream);
  camera_->block_starts(false);
}

// Stopped at any moment: before the first frame, while frames flow, while the camera is away, while
// a reload is under way, with a client that does not read.
TEST_F(ServiceTest, StopsCleanlyInEveryState) {
  for (int state = 0; state < 5; ++state) {
    SCOPED_TRACE(state);
    camera_ = std::make_unique<test::FakeCamera>(true);
    device_ = std::make_shared<test::FakeDevice>(1, state == 1 ? 500 : 0);
    ending_ = false;
    configure("a");
    ASSERT_TRUE(create());
    ServiceClient client = connect();
    run();
    if (state >= 1) camera_->allow(1'000'000'000'000);
    if (state == 2) {
      EXPECT_EQ(next(client)["type"], "result");
      camera_->fail_with({ErrorCode::kDevice, "gone"});
      EXPECT_EQ(next_of(client, "camera")["state"], "lost");
    }
    if (state == 3) {
      ASSERT_TRUE(client.send_line({{"command", "reload"}}));
    }
    if (state == 4) {
      while (status()["publish"]["dropped_results"] == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      patience_ms_ = 50;  // this client reads no more
    }
    end();
    while (client.read_line(kPatienceMs)) {
    }
    service_.reset();
  }
}

}  // namespace
}  // namespace patternd
