// A service with a camera and processors made for tests, and clients of it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>

#include "daemon/service.h"
#include "daemon/service_client.h"
#include "pipeline/image_file.h"
#include "tests/support/fake_camera.h"
#include "tests/support/test_files.h"

namespace patternd::test {

inline constexpr int kPatienceMs = 20'000;

class ServiceFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    auto picture = Image::create(32, 32, PixelFormat::kGray8);
    ASSERT_TRUE(picture);
    for (int y = 0; y < 32; ++y) {
      for (int x = 0; x < 32; ++x)
        picture->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>((x * 37 + y * y * 11) & 255);
    }
    ASSERT_TRUE(write_image(folder_.file("p.png"), picture->view()));
    configure("a");
  }
  void TearDown() override { end(); }

  // One pattern of this name; more YAML behind it.
  void configure(const std::string& pattern, const std::string& more = "",
                 const std::string& camera = "source: replay, path: one") {
    const std::string temporary = folder_.file("new.yaml");
    std::ofstream(temporary) << "camera: {" << camera
                             << "}\npublish: {tcp: {listen: \"127.0.0.1:0\"}}\npatterns: [{name: "
                             << pattern << ", pattern: p.png}]\n"
                             << more;
    ASSERT_EQ(std::rename(temporary.c_str(), folder_.file("p.yaml").c_str()), 0);
  }
  Result<void> create() {
    ServiceParts parts;
    parts.make_source = [this](const CameraConfig& config) -> Result<std::unique_ptr<Source>> {
      const bool second = config.path.find("two") != std::string::npos;
      return (second ? second_camera_ : *camera_).make_source();
    };
    parts.make_processor =
        [this](const ComputeConfig&,
               const ProcessorConfig& config) -> Result<std::unique_ptr<FrameProcessor>> {
      if (refuse_processors_) return fail(ErrorCode::kInvalidArgument, "no processor today");
      return test::make_fake_processor(config, device_);
    };
    auto configuration = load_configuration(folder_.file("p.yaml"));
    EXPECT_TRUE(configuration) << configuration.error().message;
    ServiceOptions options;
    options.config_path = folder_.file("p.yaml");
    auto service = Service::create(options, std::move(*configuration), parts);
    if (!service) return tl::make_unexpected(service.error());
    service_ = std::move(*service);
    return service_->open();
  }
  void run() {
    service_->start();
    main_ = std::thread([this] {
      while (!ending_) {
        service_->tick();
        for (const std::uint64_t client : service_->take_reload_requests())
          service_->reload(client);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      stopped_ = service_->stop(patience_ms_);
    });
  }
  void end() {
    ending_ = true;
    if (main_.joinable()) main_.join();
  }
  ServiceClient connect() {
    auto client = ServiceClient::connect(service_->bound_addresses().at(0));
    EXPECT_TRUE(client) << client.error().message;
    EXPECT_EQ(next(*client)["type"], "hello");
    return std::move(*client);
  }
  static Json next(ServiceClient& client) {
    const auto line = client.read_line(kPatienceMs);
    EXPECT_TRUE(line) << line.error().message;
    return line ? Json::parse(*line) : Json{{"type", "nothing"}};
  }
  static Json next_of(ServiceClient& client, const std::string& type) {
    for (;;) {
      Json line = next(client);
      if (line["type"] == type || line["type"] == "nothing") return line;
    }
  }
  Json status() {
    ServiceClient client = connect();
    const auto reply = client.ask({{"command", "status"}});
    EXPECT_TRUE(reply) << reply.error().message;
    return reply ? *reply : Json();
  }

  const test::TemporaryFolder folder_;
  std::unique_ptr<test::FakeCamera> camera_ = std::make_unique<test::FakeCamera>(true);
  test::FakeCamera second_camera_{true};
  std::shared_ptr<test::FakeDevice> device_ = std::make_shared<test::FakeDevice>();
  std::atomic<bool> refuse_processors_{false};
  std::unique_ptr<Service> service_;
  std::atomic<bool> ending_{false};
  std::atomic<int> patience_ms_{kPatienceMs};
  bool stopped_ = false;
  std::thread main_;
};

}  // namespace patternd::test
