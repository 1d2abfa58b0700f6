#include <chrono>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>
#include <unistd.h>

#include "pipeline/sources/gstreamer_source.h"
#include "pipeline/stage.h"
#include "tests/support/frame_memory.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceMs = 20'000;

CameraConfig pipeline(const std::string& description) {
  CameraConfig config;
  config.kind = CameraConfig::Kind::kGstreamer;
  config.pipeline = description;
  return config;
}

// A source that has been started, with its memory.
struct Rig {
  explicit Rig(const CameraConfig& config) : source(config), format(source.start(*memory, 3)) {}
  std::shared_ptr<test::FrameMemory> memory = std::make_shared<test::FrameMemory>();
  GstreamerSource source;
  Result<SourceFormat> format;

  [[nodiscard]] std::string error() const { return format ? "started" : format.error().message; }
  FrameBuffer* next(bool newest_only = true) {
    auto frame = source.next(kPatienceMs, newest_only);
    EXPECT_TRUE(frame) << frame.error().message;
    return frame ? *frame : nullptr;
  }
};

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

TEST(Gstreamer, GivesTheFramesOfALivePipelineWithMonotonicStamps) {
  Rig rig(
      pipeline("videotestsrc is-live=true pattern=ball ! "
               "video/x-raw,format=GRAY8,width=160,height=120,framerate=50/1"));
  ASSERT_TRUE(rig.format) << rig.error();
  EXPECT_EQ(rig.format->width, 160);
  EXPECT_EQ(rig.format->height, 120);
  EXPECT_EQ(rig.format->fps, 50);
  EXPECT_EQ(rig.format->format, RawFormat::kGrey);
  EXPECT_THAT(rig.source.description(), HasSubstr("160x120 GRAY8, live"));
  std::int64_t last_ns = 0;
  for (int i = 0; i < 5; ++i) {
    FrameBuffer* const frame = rig.next();
    ASSERT_NE(frame, nullptr);
    EXPECT_GT(frame->info.captured_mono_ns, last_ns);
    EXPECT_LE(frame->info.captured_mono_ns, frame->info.received_mono_ns);
    EXPECT_LE(frame->info.received_mono_ns, monotonic_ns());
    last_ns = frame->info.captured_mono_ns;
    rig.source.release(frame);
  }
  EXPECT_EQ(rig.source.counters().frames, 5U);
  EXPECT_EQ(rig.source.counters().restamped, 0U);
}

TEST(Gstreamer, TakesLumaWhereItIsOffered) {
  const struct {
    const char* description;
    const char* given;  // what the description says behind the size
  } kCases[] = {
      {"videotestsrc ! video/x-raw,width=160,height=120", "160x120 GRAY8"},
      {"videotestsrc ! video/x-raw,width=160,height=120,format=(string){BGR,I420,YUY2}",
       "160x120 I420"},
      {"videotestsrc ! video/x-raw,width=160,height=120,format=GRAY16_LE ! videoconvert",
       "160x120 GRAY16_LE"},
      {"videotestsrc ! video/x-raw,width=160,height=120,format=NV12 ! videoconvert",
       "160x120 NV12"},
      {"videotestsrc ! video/x-raw,width=160,height=120,format=BGR", "160x120 BGR"},
  };
  for (const auto& each : kCases) {
    Rig rig(pipeline(each.description));
    ASSERT_TRUE(rig.format) << each.description << ": " << rig.error();
    EXPECT_THAT(rig.source.description(), HasSubstr(each.given)) << each.description;
  }
  for (const char* end : {"videoconvert", "videoconvert ! queue ! identity"}) {
    Rig rig(pipeline("videotestsrc ! video/x-raw,width=160,height=120,format=BGR ! " +
                     std::string(end)));
    ASSERT_TRUE(rig.format) << rig.error();
    EXPECT_EQ(rig.format->format, RawFormat::kGrey) << end;
  }
}

TEST(Gstreamer, TakesEachOfItsFormats) {
  const struct {
    const char* theirs;
    const char* configured;
    RawFormat given;
  } kCases[] = {{"GRAY8", "GREY", RawFormat::kGrey}, {"GRAY16_LE", "Y16", RawFormat::kY16},
                {"NV12", "NV12", RawFormat::kGrey},  {"I420", "YU12", RawFormat::kGrey},
                {"YUY2", "YUYV", RawFormat::kYuyv},  {"UYVY", "UYVY", RawFormat::kUyvy},
                {"RGB", "RGB3", RawFormat::kRgb3},   {"BGR", "BGR3", RawFormat::kBgr3}};
  for (const auto& c : kCases) {
    // An odd width, so that GStreamer pads the rows.
    CameraConfig config = pipeline("videotestsrc pattern=white ! video/x-raw,width=161,height=33");
    config.format = c.configured;
    Rig rig(config);
    ASSERT_TRUE(rig.format) << c.theirs << ": " << rig.error();
    EXPECT_EQ(rig.format->format, c.given);
    EXPECT_EQ(rig.format->stride_bytes % 64, 0U);
    EXPECT_THAT(rig.source.description(), HasSubstr(std::string("161x33 ") + c.theirs));
    FrameBuffer* const frame = rig.next();
    ASSERT_NE(frame, nullptr);
    // White everywhere, in each row's last pixel too; luma of limited range is 235.
    const bool packed = c.given == RawFormat::kYuyv || c.given == RawFormat::kUyvy;
    const std::size_t step = packed ? 2 : 1;
    for (int y = 0; y < 33; ++y) {
      const std::uint8_t* row =
          frame->image.data + static_cast<std::size_t>(y) * frame->image.stride_bytes;
      const std::size_t bytes = c.given == RawFormat::kGrey  ? 161U
                                : packed                     ? 322U
                                : c.given == RawFormat::kY16 ? 322U
                                                             : 483U;
      for (std::size_t x = c.given == RawFormat::kUyvy ? 1 : 0; x < bytes; x += step)
        ASSERT_GE(row[x], 235) << c.theirs << " at " << x << ", " << y;
    }
  }
}

TEST(Gstreamer, CountsTheFramesThatANewerOneOvertook) {
  Rig rig(pipeline("videotestsrc is-live=true ! video/x-raw,width=32,height=32,framerate=200/1"));
  ASSERT_TRUE(rig.format) << rig.error();
  // The queue holds two: wait until more than that must have come.
  std::uint64_t dropped = 0;
  for (int i = 0; i < 100 && dropped == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    FrameBuffer* const frame = rig.next(i % 2 == 0);
    ASSERT_NE(frame, nullptr);
    dropped += frame->info.dropped;
    rig.source.release(frame);
  }
  EXPECT_GT(dropped, 0U);
  EXPECT_EQ(rig.source.counters().overtaken, dropped);
}

TEST(Gstreamer, EndsWithTheStream) {
  Rig rig(pipeline("videotestsrc num-buffers=3 ! video/x-raw,width=32,height=32,framerate=100/1"));
  ASSERT_TRUE(rig.format) << rig.error();
  EXPECT_THAT(rig.source.description(), HasSubstr("not live"));
  Error error;
  for (int i = 0; i < 4; ++i) {
    auto frame = rig.source.next(kPatienceMs, false);
    if (!frame) error = frame.error();
    if (frame) rig.source.release(*frame);
  }
  EXPECT_EQ(error.code, ErrorCode::kEndOfStream);
  EXPECT_EQ(error.message, "camera.pipeline: the stream has ended");
}

TEST(Gstreamer, TellsWhatIsWrongWithADescription) {
  EXPECT_THAT(Rig(pipeline("")).error(), HasSubstr("camera.pipeline: is empty"));
  EXPECT_THAT(Rig(pipeline(" ! ")).error(), HasSubstr("camera.pipeline: is empty"));
  EXPECT_EQ(Rig(pipeline("videotestsrc ! appsink")).error(),
            "camera.pipeline: must end before its sink; patternd adds its own appsink");
  EXPECT_EQ(Rig(pipeline("nosuchsrc ! videoconvert")).error(),
            "camera.pipeline: GStreamer does not take the pipeline: no element \"nosuchsrc\"; it "
            "must be as for gst-launch-1.0, without a sink at its end");
  CameraConfig config = pipeline("videotestsrc");
  config.format = "GRAY";
  EXPECT_EQ(Rig(config).error(),
            "camera.format GRAY is none of a GStreamer source's; did you mean GREY?; it takes auto "
            "GREY Y16 NV12 YU12 YUYV UYVY RGB3 BGR3");
}

TEST(Gstreamer, ReportsErrorsFromTheBus) {
  const test::TemporaryFolder folder;
  Rig rig(pipeline("filesrc location=" + folder.file("gone") + " ! decodebin ! videoconvert"));
  ASSERT_FALSE(rig.format);
  EXPECT_EQ(rig.format.error().code, ErrorCode::kDevice);
  EXPECT_THAT(rig.error(), HasSubstr("camera.pipeline: filesrc"));
  EXPECT_THAT(rig.error(), HasSubstr("No such file"));
}

TEST(Gstreamer, SaysWhatToAddWhereThePipelineGivesSomethingElse) {
  CameraConfig config = pipeline("videotestsrc ! video/x-raw,width=32,height=32");
  config.width = 64;
  EXPECT_THAT(Rig(config).error(), HasSubstr("put videoconvert, or videoscale, at its end"));
  config = pipeline("videotestsrc ! video/x-raw,width=32,height=32,framerate=25/1");
  config.fps = 30;
  EXPECT_EQ(Rig(config).error(),
            "camera.pipeline: gives 25 frames a second, but camera.fps is 30; set the rate in the "
            "pipeline, and camera.fps to the same or not at all");
}

TEST(Gstreamer, SaysThatTheStreamChangedItsFormat) {
  Rig rig(
      pipeline("videotestsrc num-buffers=2 ! video/x-raw,width=32,height=32,framerate=100/1 "
               "! c. videotestsrc num-buffers=2 ! "
               "video/x-raw,width=64,height=32,framerate=100/1 ! c. concat name=c"));
  ASSERT_TRUE(rig.format) << rig.error();
  Error error;
  for (int i = 0; i < 5 && error.message.empty(); ++i) {
    auto frame = rig.source.next(kPatienceMs, false);
    if (!frame) error = frame.error();
    if (frame) rig.source.release(*frame);
  }
  EXPECT_EQ(error.code, ErrorCode::kDevice);
  EXPECT_THAT(error.message, HasSubstr("the stream changed its format, now video/x-raw"));
}

TEST(Gstreamer, GivesATimeoutWhereTheStreamStalls) {
  Rig rig(pipeline("videotestsrc ! video/x-raw,width=32,height=32,framerate=1/1000"));
  ASSERT_TRUE(rig.format) << rig.error();
  rig.source.release(rig.next());  // the first is there at once, the next in a quarter of an hour
  auto second = rig.source.next(1, true);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
}

TEST(Gstreamer, IsInterruptedWhileItWaitsAlsoForItsFirstFrame) {
  // A valve that is shut: a pipeline without any frame.
  test::FrameMemory memory;
  GstreamerSource source(pipeline("videotestsrc is-live=true ! valve drop=true"));
  std::thread other([&source] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    source.interrupt();
  });
  const auto format = source.start(memory, 2);
  other.join();
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, ErrorCode::kTimeout);
  source.interrupt();  // before there is a pipeline
  EXPECT_EQ(source.start(memory, 2).error().code, ErrorCode::kTimeout);
  EXPECT_EQ(source.next(0, true).error().message, "camera.pipeline: the pipeline is not running");
}

// Sanitizers keep freed memory for a while, and find leaks themselves.
constexpr bool resident_memory_tells() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

TEST(Gstreamer, IsOpenedManyTimesWithoutGrowing) {
  const auto config =
      pipeline("videotestsrc is-live=true ! video/x-raw,width=320,height=240,framerate=1000/1");
  test::FrameMemory memory;
  GstreamerSource source(config);
  const auto open_once = [&] {
    ASSERT_TRUE(source.start(memory, 2));
    auto frame = source.next(kPatienceMs, true);
    ASSERT_TRUE(frame);
    source.release(*frame);
  };
  for (int i = 0; i < 20; ++i) open_once();
  const std::size_t before = resident_bytes();
  for (int i = 0; i < 200; ++i) open_once();
  const std::size_t after = resident_bytes();
  EXPECT_EQ(memory.count(), 2U);
  if (resident_memory_tells()) {
    EXPECT_LT(after, before + 2'000'000) << "from " << before << " to " << after;
  }
}

TEST(Gstreamer, PlaysAFileAtItsOwnPace) {
  const std::string video = test::opencv_sample("vtest.avi");
  if (video.empty()) GTEST_SKIP() << "opencv-doc is not installed";
  Rig rig(pipeline("filesrc location=" + video + " ! decodebin ! videoconvert"));
  if (!rig.format && rig.error().find("missing a plug-in") != std::string::npos)
    GTEST_SKIP() << "gstreamer1.0-libav is not installed";
  ASSERT_TRUE(rig.format) << rig.error();
  EXPECT_EQ(rig.format->width, 768);
  EXPECT_EQ(rig.format->format, RawFormat::kGrey);
  EXPECT_NE(rig.next(), nullptr);
}

}  // namespace
}  // namespace patternd
