// Captures from the kernel's virtual camera (vivid) through real ioctls; run as root inside the VM
// that tests/vm/run boots. Not part of the ordinary tests: it needs the module and pulls cameras
// out. /dev/video0 is a single-planar vivid, /dev/video1 a multi-planar one.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

#include "pipeline/sources/v4l2_controls.h"
#include "pipeline/sources/v4l2_formats.h"
#include "pipeline/sources/v4l2_source.h"
#include "pipeline/stage.h"
#include "tests/support/frame_memory.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSingle = "/dev/video0";
constexpr const char* kMulti = "/dev/video1";
constexpr int kGrayRamp = 20;      // on vivid's menu of test patterns
constexpr int kNoText = 2;         // on its menu of overlaid texts
constexpr int kPatienceMs = 5000;  // an emulated machine is slow

// The real system calls, but a driver that does not take our memory.
class WithoutUserPointers : public V4l2System {
 public:
  int open(const std::string& path) override { return real_.open(path); }
  int close(int descriptor) override { return real_.close(descriptor); }
  int ioctl(int descriptor, unsigned long request, void* argument) override {
    if (request == VIDIOC_REQBUFS) {
      const auto& buffers = *static_cast<v4l2_requestbuffers*>(argument);
      if (buffers.memory == V4L2_MEMORY_USERPTR) return -EINVAL;
    }
    return real_.ioctl(descriptor, request, argument);
  }
  int mmap(int descriptor, std::size_t length, std::int64_t offset,
           std::uint8_t** memory) override {
    return real_.mmap(descriptor, length, offset, memory);
  }
  int munmap(std::uint8_t* memory, std::size_t length) override {
    return real_.munmap(memory, length);
  }
  int poll(pollfd* descriptors, std::size_t count, int timeout_ms) override {
    return real_.poll(descriptors, count, timeout_ms);
  }
  Result<std::unique_ptr<V4l2Converter>> open_converter(int descriptor, const v4l2_format& from,
                                                        const v4l2_format& to) override {
    return real_.open_converter(descriptor, from, to);
  }

 private:
  V4l2System& real_ = real_v4l2_system();
};

CameraConfig camera(const std::string& device, const std::string& format = "auto") {
  CameraConfig config;
  config.kind = CameraConfig::Kind::kV4l2;
  config.device = device;
  config.format = format;
  config.width = 640;
  config.height = 480;
  return config;
}

struct Rig {
  explicit Rig(const CameraConfig& config, V4l2System& system = real_v4l2_system())
      : source(config, system) {}
  test::FrameMemory memory;
  V4l2Source source;

  std::string start() {
    const auto started = source.start(memory, 3);
    return started ? "started" : started.error().message;
  }
  FrameBuffer* next() {
    auto frame = source.next(kPatienceMs, true);
    EXPECT_TRUE(frame) << frame.error().message;
    return frame ? *frame : nullptr;
  }
  // The first error of several frames.
  Error first_error(int timeout_ms = kPatienceMs) {
    for (int i = 0; i < 100; ++i) {
      auto frame = source.next(timeout_ms, true);
      if (!frame) return frame.error();
      source.release(*frame);
    }
    return {};
  }
};

// Presses a control of a camera that something else streams from.
void press(const std::string& device, const std::string& name, std::int64_t value = 1) {
  auto opened = V4l2Device::open(real_v4l2_system(), device);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto set = set_controls(*opened, {{name, value}});
  ASSERT_TRUE(set) << set.error().message;
}

void write_sysfs(const std::string& file, const std::string& text) { std::ofstream(file) << text; }

// Mean luma of the middle rows between two columns.
double mean_luma(const ImageView& luma, int left, int right) {
  double sum = 0;
  for (int y = luma.height / 3; y < luma.height / 2; ++y) {
    for (int x = left; x < right; ++x) {
      sum += luma.format == PixelFormat::kGray16 ? luma.row<std::uint16_t>(y)[x] / 257.0
                                                 : luma.row<std::uint8_t>(y)[x];
    }
  }
  return sum / ((luma.height / 2 - luma.height / 3) * (right - left));
}

// A ramp from black to white, whatever the format.
void expect_ramp(const RawImageView& image) {
  auto scratch = Image::create(image.width, image.height, luma_format(image.format));
  ASSERT_TRUE(scratch);
  const ImageView luma = to_luma(image, scratch->view());
  const int fifth = image.width / 5;
  double last = -1;
  for (int i = 0; i < 5; ++i) {
    const double mean = mean_luma(luma, i * fifth, (i + 1) * fifth);
    EXPECT_GT(mean, last + 20) << "part " << i;
    last = mean;
  }
  EXPECT_LT(mean_luma(luma, 0, 8), 40);
  EXPECT_GT(mean_luma(luma, image.width - 8, image.width), 200);
}

// Captures by one format; false where the camera does not offer it.
bool capture_format(const std::string& device, const std::string& format, V4l2System& system,
                    CapturePath expected) {
  CameraConfig config = camera(device, format);
  config.fps = 25;
  config.controls = {{"test_pattern", kGrayRamp}, {"osd_text_mode", kNoText}};
  Rig rig(config, system);
  const std::string started = rig.start();
  if (started.find("does not offer") != std::string::npos) return false;
  EXPECT_EQ(started, "started") << format;
  if (started != "started") return false;
  EXPECT_EQ(rig.source.capture_path(), expected) << format;
  std::int64_t last_ns = 0;
  for (int i = 0; i < 4; ++i) {
    FrameBuffer* const frame = rig.next();
    if (frame == nullptr) return true;
    EXPECT_GT(frame->info.captured_mono_ns, last_ns);
    EXPECT_LE(frame->info.captured_mono_ns, frame->info.received_mono_ns);
    last_ns = frame->info.captured_mono_ns;
    SCOPED_TRACE(std::string(device).append(" ").append(format));
    if (i > 0) expect_ramp(frame->image);
    rig.source.release(frame);
  }
  EXPECT_EQ(rig.source.counters().restamped, 0U) << format;
  std::printf("%s\n", rig.source.description().c_str());
  return true;
}

TEST(Vivid, GivesEveryFormatThatItHasByUserPointersAndByMapping) {
  WithoutUserPointers mapping;
  for (const char* device : {kSingle, kMulti}) {
    int formats = 0;
    for (const V4l2PixelFormat& f : kV4l2PixelFormats) {
      const std::string name = name_of(f.format, f.bayer);
      if (!capture_format(device, name, real_v4l2_system(), CapturePath::kUserPointer)) {
        std::printf("%s does not offer %s\n", device, name.c_str());
        continue;
      }
      EXPECT_TRUE(capture_format(device, name, mapping, CapturePath::kOneCopy));
      ++formats;
    }
    EXPECT_GE(formats, 10) << device;
  }
}

TEST(Vivid, IsNamedByItsStablePath) {
  // Both cameras are vivid.0's; the link leads to one of them.
  const std::string link = "/dev/v4l/by-path/platform-vivid.0-video-index0";
  const std::string device = std::filesystem::canonical(link).string();
  EXPECT_EQ(stable_device_path(device), link);
  Rig rig(camera(device));
  ASSERT_EQ(rig.start(), "started");
  EXPECT_THAT(rig.source.description(), HasSubstr(link + " (vivid), 640x480 GREY"));
}

TEST(Vivid, IsRefusedWhatItCannotDo) {
  CameraConfig config = camera(kSingle);
  config.width = 641;
  EXPECT_THAT(Rig(config).start(),
              HasSubstr("asked for 641x480 GREY, but the driver set 640x480 GREY; sizes of GREY:"));
  EXPECT_THAT(Rig(camera(kSingle, "MJPG")).start(), HasSubstr("does not offer MJPG"));
  config = camera(kSingle);
  config.fps = 120;
  EXPECT_THAT(Rig(config).start(), HasSubstr("asked for 120 frames a second, but the driver set"));
  config = camera(kSingle);
  config.controls = {{"brightnes", 1}, {"contrast", 100000}};
  const std::string wrong = Rig(config).start();
  EXPECT_THAT(wrong, HasSubstr("brightnes: no such control; did you mean brightness?"));
  EXPECT_THAT(wrong, HasSubstr("contrast: 100000 is out of range; 0 to 255"));
}

TEST(Vivid, IsSetToItsRate) {
  CameraConfig config = camera(kSingle);
  config.fps = 25;
  Rig rig(config);
  ASSERT_EQ(rig.start(), "started");
  EXPECT_THAT(rig.source.description(), HasSubstr(" at 25 frames a second"));
}

TEST(Vivid, TellsThatAnotherProgramUsesIt) {
  Rig first(camera(kSingle));
  ASSERT_EQ(first.start(), "started");
  EXPECT_THAT(Rig(camera(kSingle)).start(), HasSubstr("another program uses the camera"));
}

TEST(Vivid, TellsWhichGroupMayOpenIt) {
  ASSERT_EQ(::seteuid(65534), 0);
  const std::string refused = Rig(camera(kSingle)).start();
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(refused, HasSubstr("Permission denied; the group video may open it"));
}

TEST(Vivid, FailsToStartWithAMessageAndThenStarts) {
  Rig rig(camera(kSingle));
  press(kSingle, "inject_vidioc_streamon_error");
  EXPECT_EQ(rig.start(), "/dev/video0: VIDIOC_STREAMON: Invalid argument");
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
}

TEST(Vivid, FallsBackToMappingWhereOurMemoryIsRefused) {
  for (const char* fault : {"inject_vidioc_reqbufs_error", "inject_vidioc_qbuf_error"}) {
    Rig rig(camera(kSingle));
    press(kSingle, fault);
    ASSERT_EQ(rig.start(), "started") << fault;
    EXPECT_EQ(rig.source.capture_path(), CapturePath::kOneCopy) << fault;
    FrameBuffer* const frame = rig.next();
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->image.width, 640);
  }
}

TEST(Vivid, CountsADamagedBuffer) {
  Rig rig(camera(kSingle));
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
  press(kSingle, "inject_v4l2_buf_flag_error");
  for (int i = 0; i < 50 && rig.source.counters().damaged == 0; ++i) rig.source.release(rig.next());
  EXPECT_EQ(rig.source.counters().damaged, 1U);
}

TEST(Vivid, RecoversFromAFatalStreamingError) {
  Rig rig(camera(kSingle));
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
  press(kSingle, "inject_fatal_streaming_error");
  const Error error = rig.first_error();
  EXPECT_EQ(error.code, ErrorCode::kDevice);
  std::printf("%s\n", error.message.c_str());
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
}

TEST(Vivid, TellsThatItWasDisconnectedAndComesBack) {
  Rig rig(camera(kSingle));
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
  press(kSingle, "disconnect");
  const Error error = rig.first_error();
  EXPECT_THAT(error.message, HasSubstr("No such device: the camera is gone"));
  rig.source.stop();  // the last descriptor closes, and the device works again
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
}

TEST(Vivid, GivesTimeoutsWhileItStallsAndCountsWhatWasLost) {
  Rig rig(camera(kSingle));
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
  press(kSingle, "percentage_of_dropped_buffers", 100);
  EXPECT_EQ(rig.first_error(700).code, ErrorCode::kTimeout);
  const std::uint64_t lost = rig.source.counters().lost;
  press(kSingle, "percentage_of_dropped_buffers", 0);
  rig.source.release(rig.next());
  EXPECT_GT(rig.source.counters().lost, lost + 5);
}

TEST(Vivid, CountsNothingWhereTheSequenceWraps) {
  Rig rig(camera(kSingle));
  press(kSingle, "wrap_sequence_number", 1);
  ASSERT_EQ(rig.start(), "started");
  std::uint64_t frames = 0;
  std::uint64_t dropped = 0;
  for (; frames < 150; ++frames) {
    FrameBuffer* const frame = rig.next();
    ASSERT_NE(frame, nullptr);
    dropped += frame->info.dropped;
    rig.source.release(frame);
  }
  press(kSingle, "wrap_sequence_number", 0);
  // A slow machine may lose some; a wrap taken for a loss would be four thousand million.
  EXPECT_LT(dropped, 1000U);
}

TEST(Vivid, IsPulledOutInMidStreamAndPluggedInAgain) {
  Rig rig(camera(kSingle));
  ASSERT_EQ(rig.start(), "started");
  rig.source.release(rig.next());
  const std::size_t blocks = rig.memory.count();
  for (int round = 0; round < 8; ++round) {
    std::thread hand([] { write_sysfs("/sys/bus/platform/drivers/vivid/unbind", "vivid.0"); });
    const Error error = rig.first_error();
    EXPECT_EQ(error.code, ErrorCode::kDevice) << error.message;
    rig.source.stop();
    hand.join();
    const auto absent = rig.source.start(rig.memory, 3);
    ASSERT_FALSE(absent);
    if (round == 0) std::printf("%s\n%s\n", error.message.c_str(), absent.error().message.c_str());
    EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
    write_sysfs("/sys/bus/platform/drivers/vivid/bind", "vivid.0");
    std::string started;
    for (int i = 0; i < 100 && started != "started"; ++i) {
      started = rig.start();
      if (started != "started") std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    ASSERT_EQ(started, "started");
    rig.source.release(rig.next());
  }
  EXPECT_EQ(rig.memory.count(), blocks);
}

}  // namespace
}  // namespace patternd
