// Start, reload, a camera that goes and comes back, clients that come and go, and the end, in every
// order, while capture, compute and publish run. Made for the thread sanitizer; what each order
// must give is held everywhere.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "daemon/service.h"
#include "daemon/service_client.h"
#include "pipeline/image_file.h"
#include "tests/support/fake_camera.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

constexpr int kPatienceMs = 20'000;

enum class Act { kStart, kReload, kReopen, kConnect, kDisconnect };
constexpr Act kActs[] = {Act::kStart, Act::kReload, Act::kReopen, Act::kConnect, Act::kDisconnect};

std::string in_words(const std::vector<Act>& order) {
  constexpr const char* kNames[] = {"start ", "reload ", "reopen ", "connect ", "disconnect "};
  std::string text;
  for (const Act act : order) text += kNames[static_cast<std::size_t>(act)];
  return text + "stop";
}

bool may_follow(const std::vector<Act>& order, Act act) {
  const auto has = [&order](Act wanted) {
    return std::find(order.begin(), order.end(), wanted) != order.end();
  };
  return !has(act) && (act != Act::kDisconnect || has(Act::kConnect));
}

// One service from its making to its end. The parameter: frames come from a recording, not from a
// live camera.
class ServiceOrders : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    for (const char* recording : {"one", "two"}) {
      ASSERT_EQ(mkdir(folder_.file(recording).c_str(), 0700), 0);
      std::ofstream(folder_.file(std::string(recording) + ".yaml"))
          << "camera: {source: replay, loop: true, realtime: false, path: " << recording
          << "}\npublish: {tcp: {listen: \"127.0.0.1:0\"}}\nblobs: {}\n";
      for (int i = 0; i < 3; ++i) {
        auto picture = Image::create(32, 16, PixelFormat::kGray8);
        ASSERT_TRUE(picture);
        for (int y = 0; y < 16; ++y)
          std::fill_n(picture->row<std::uint8_t>(y), 32, std::uint8_t(i));
        const std::string name = std::string(recording) + "/" + std::to_string(i) + ".png";
        ASSERT_TRUE(write_image(folder_.file(name), picture->view()));
      }
    }
  }
  [[nodiscard]] bool is_recording() const { return GetParam(); }

  // p.yaml is a link, exchanged hundreds of times: that writes nothing to the disk.
  void configure(const std::string& recording) {
    const std::string link = folder_.file("link");
    ASSERT_EQ(symlink((recording + ".yaml").c_str(), link.c_str()), 0);
    ASSERT_EQ(std::rename(link.c_str(), folder_.file("p.yaml").c_str()), 0);
  }

  void create() {
    configure("one");
    camera_ = std::make_unique<test::FakeCamera>(true);
    camera_->allow(3);
    ServiceParts parts;
    parts.make_source = [this](const CameraConfig& config) -> Result<std::unique_ptr<Source>> {
      return is_recording() ? make_source(config) : camera_->make_source();
    };
    parts.make_processor = [](const ComputeConfig&, const ProcessorConfig& config) {
      return Result<std::unique_ptr<FrameProcessor>>(test::make_fake_processor(config));
    };
    auto configuration = load_configuration(folder_.file("p.yaml"));
    ASSERT_TRUE(configuration) << configuration.error().message;
    auto service = Service::create({folder_.file("p.yaml"), {}}, std::move(*configuration), parts);
    ASSERT_TRUE(service) << service.error().message;
    service_ = std::move(*service);
    ASSERT_TRUE(service_->open());
    started_ = false;
  }

  void perform(Act act) {
    switch (act) {
      case Act::kStart:
        service_->start();
        started_ = true;
        break;
      case Act::kReload:
        configure("one");
        service_->reload(std::nullopt);
        break;
      case Act::kReopen:
        reopen();
        break;
      case Act::kConnect: {
        auto client = ServiceClient::connect(service_->bound_addresses().at(0));
        ASSERT_TRUE(client) << client.error().message;
        client_.emplace(std::move(*client));
        ASSERT_TRUE(client_->send_text("{\"command\":\"reload\"}\n{\"command\":\"status\"}\n"));
        break;
      }
      case Act::kDisconnect:
        client_.reset();
        break;
    }
    main_round();
  }

  // A recording is exchanged for another; a camera is unplugged and comes back.
  void reopen() {
    if (is_recording()) {
      configure("two");
      service_->reload(std::nullopt);
    } else {
      camera_->fail_with({ErrorCode::kDevice, "unplugged"});
      // Once it runs it must be missed; before, nobody looks.
      do {
        main_round();
      } while (started_ && service_->status()["camera"]["state"] != "lost");
      camera_->heal();
    }
  }

  // What the program's main thread does again and again.
  void main_round() {
    camera_->allow(3);
    service_->tick();
    for (const std::uint64_t client : service_->take_reload_requests()) service_->reload(client);
    EXPECT_TRUE(service_->makes_progress(std::int64_t{60} * 1'000'000'000));
    EXPECT_FALSE(service_->status_text().empty());
  }

  // The client that is there gets a result.
  void wait_for_result() {
    if (!client_ || !started_) return;
    for (;;) {
      main_round();
      const auto line = client_->read_line(kPatienceMs);
      ASSERT_TRUE(line) << line.error().message;
      if (Json::parse(*line)["type"] == "result") return;
    }
  }

  void end() {
    EXPECT_TRUE(service_->stop(client_ ? kPatienceMs : 0));
    const Json status = service_->status();
    EXPECT_EQ(status["compute"]["frames"], status["publish"]["results"]);
    EXPECT_EQ(status["compute"]["failed"], 0);
    if (client_) read_to_the_end();
    service_.reset();
    client_.reset();
  }

  // Whole lines in order, up to the service's goodbye. Whoever was not let in yet is cut off.
  void read_to_the_end() {
    std::int64_t last = -1;
    for (bool greeted = false;; greeted = true) {
      const auto line = client_->read_line(kPatienceMs);
      if (!line) {
        const ErrorCode code = line.error().code;
        EXPECT_TRUE(code == ErrorCode::kEndOfStream || (code == ErrorCode::kIo && !greeted))
            << line.error().message;
        return;
      }
      const Json object = Json::parse(*line, nullptr, false);
      ASSERT_TRUE(object.is_object()) << *line;
      if (object["type"] != "result") continue;
      EXPECT_GT(object["seq"].get<std::int64_t>(), last);
      last = object["seq"].get<std::int64_t>();
    }
  }

  void run(const std::vector<Act>& order, bool patient) {
    SCOPED_TRACE(in_words(order) + (patient ? ", each after a result" : ", at once"));
    create();
    for (const Act act : order) {
      if (HasFatalFailure()) return;
      perform(act);
      if (patient) wait_for_result();
    }
    end();
    ++orders_;
  }

  void run_all_that_begin_with(std::vector<Act> order) {
    const bool whole = order.size() == std::size(kActs);
    if (whole || !is_recording()) run(order, false);
    if (whole) run(order, true);
    for (const Act act : kActs) {
      if (HasFatalFailure() || !may_follow(order, act)) continue;
      order.push_back(act);
      run_all_that_begin_with(order);
      order.pop_back();
    }
  }

  const test::TemporaryFolder folder_;
  std::unique_ptr<test::FakeCamera> camera_;
  std::unique_ptr<Service> service_;
  std::optional<ServiceClient> client_;
  bool started_ = false;
  int orders_ = 0;
};

TEST_P(ServiceOrders, EndWellWhateverHappensBefore) {
  run_all_that_begin_with({});
  // Every choice of the five acts in every order, disconnecting only after connecting: 1 + 4 + 13 +
  // 33 + 60 + 60, at once with a camera; the 60 of all five with a recording too, and patiently.
  EXPECT_EQ(orders_, is_recording() ? 2 * 60 : 171 + 60);
}

INSTANTIATE_TEST_SUITE_P(Sources, ServiceOrders, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Recording" : "Camera"; });

}  // namespace
}  // namespace patternd
