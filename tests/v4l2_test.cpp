#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "pipeline/sources/v4l2_controls.h"
#include "pipeline/sources/v4l2_error.h"
#include "pipeline/sources/v4l2_formats.h"
#include "pipeline/sources/v4l2_source.h"
#include "pipeline/stage.h"
#include "tests/support/fake_v4l2.h"
#include "tests/support/frame_memory.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kLent = 2;

CameraConfig camera() {
  CameraConfig config;
  config.kind = CameraConfig::Kind::kV4l2;
  config.device = "/dev/fake0";
  return config;
}

// A source over a fake driver.
struct Rig {
  test::FakeV4l2 driver;
  test::FrameMemory memory;
  CameraConfig config = camera();
  std::unique_ptr<V4l2Source> source;

  Result<SourceFormat> start() {
    source = std::make_unique<V4l2Source>(config, driver);
    return source->start(memory, kLent);
  }
  std::string start_error() {
    const auto started = start();
    return started ? "started" : started.error().message;
  }
  // The next frame that is ready; null (and a test failure) where there is none.
  FrameBuffer* next(bool newest_only = true) {
    auto frame = source->next(1000, newest_only);
    EXPECT_TRUE(frame) << frame.error().message;
    return frame ? *frame : nullptr;
  }
  Error next_error() {
    auto frame = source->next(0, true);
    EXPECT_FALSE(frame);
    return frame ? Error{} : frame.error();
  }
  bool capture(std::uint32_t sequence, std::uint8_t value = 7) {
    return driver.capture({value, sequence, -1, false, 0, -1});
  }
};

bool all_bytes_are(const RawImageView& image, std::uint8_t value) {
  for (int y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.data + static_cast<std::size_t>(y) * image.stride_bytes;
    for (std::size_t x = 0; x < min_stride_bytes(image.format, image.width); ++x)
      if (row[x] != value) return false;
  }
  return true;
}

TEST(V4l2Format, AutoPrefersMonoThenLumaPlanesThenPackedThenBayer) {
  const struct {
    std::vector<std::uint32_t> offered;
    std::string chosen;
  } kCases[] = {
      {{V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_Y16, V4L2_PIX_FMT_GREY}, "GREY"},
      {{V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_Y12, V4L2_PIX_FMT_Y10}, "Y10"},
      {{V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_NV12}, "NV12"},
      {{V4L2_PIX_FMT_SBGGR8, V4L2_PIX_FMT_BGR24, V4L2_PIX_FMT_UYVY}, "UYVY"},
      {{V4L2_PIX_FMT_MJPEG, V4L2_PIX_FMT_SBGGR10}, "BGGR10"},
  };
  for (const auto& c : kCases) {
    Rig rig;
    rig.driver.formats = c.offered;
    const auto format = rig.start();
    ASSERT_TRUE(format) << format.error().message;
    EXPECT_EQ(name_of(format->format, format->bayer), c.chosen);
    EXPECT_EQ(format->width, 64);
    EXPECT_EQ(format->height, 48);
    EXPECT_EQ(format->fps, 25);
  }
}

TEST(V4l2Format, TakesEveryRawFormatThatHasAName) {
  for (const V4l2PixelFormat& f : kV4l2PixelFormats) {
    Rig rig;
    rig.driver.formats = {V4L2_PIX_FMT_MJPEG, f.fourcc};
    for (const std::string& name : {name_of(f.format, f.bayer), fourcc_name(f.fourcc)}) {
      rig.config.format = name;
      const auto format = rig.start();
      ASSERT_TRUE(format) << format.error().message;
      EXPECT_EQ(format->format, f.format);
      EXPECT_EQ(format->bayer, f.bayer);
      ASSERT_TRUE(rig.capture(0, 0x35));
      FrameBuffer* const frame = rig.next();
      ASSERT_NE(frame, nullptr);
      EXPECT_EQ(frame->image.format, f.format);
      EXPECT_EQ(frame->image.size_bytes, frame_bytes(f.format, 48, min_stride_bytes(f.format, 64)));
      EXPECT_TRUE(all_bytes_are(frame->image, 0x35));
    }
  }
  EXPECT_EQ(kV4l2PixelFormats.size(), raw_format_names().size());
}

TEST(V4l2Format, RefusesAnotherSizeThanAskedFor) {
  Rig rig;
  rig.config.width = 4000;
  rig.config.height = 3000;
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: asked for 4000x3000 GREY, but the driver set 1920x1080 GREY; sizes of "
            "GREY: 16x16 to 1920x1080 in steps of 2x2");
  EXPECT_FALSE(rig.driver.is_open());
}

TEST(V4l2Format, RefusesAnotherFormatThanAskedFor) {
  Rig rig;
  rig.driver.twist_format = [](v4l2_format& f) { f.fmt.pix.pixelformat = V4L2_PIX_FMT_YUYV; };
  EXPECT_THAT(rig.start_error(), HasSubstr("asked for 64x48 GREY, but the driver set 64x48 YUYV"));
}

TEST(V4l2Format, NamesWhatIsOfferedInPlaceOfWhatIsNot) {
  Rig rig;
  rig.config.format = "Y16";
  EXPECT_EQ(rig.start_error(), "/dev/fake0: Fake Camera does not offer Y16; it offers: YUYV GREY");
  rig.config.format = "GRAY";
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: camera.format GRAY is not known; did you mean GREY?; this camera offers: "
            "YUYV GREY");
  rig.config.format = "auto";
  rig.driver.formats = {V4L2_PIX_FMT_H264, V4L2_PIX_FMT_HEVC};
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: Fake Camera offers none of the formats that patternd takes, only: H264 "
            "HEVC");
}

TEST(V4l2Format, KeepsTheDriversRowsApart) {
  Rig rig;
  rig.driver.row_padding = 32;
  const auto format = rig.start();
  ASSERT_TRUE(format);
  EXPECT_EQ(format->stride_bytes, 96U);
  ASSERT_TRUE(rig.capture(0));
  EXPECT_EQ(rig.next()->image.stride_bytes, 96U);
}

TEST(V4l2Format, TakesAStrideOfNothingForRowsWithoutAGap) {
  Rig rig;
  rig.driver.twist_format = [](v4l2_format& f) { f.fmt.pix.bytesperline = 0; };
  const auto format = rig.start();
  ASSERT_TRUE(format);
  EXPECT_EQ(format->stride_bytes, 64U);
}

TEST(V4l2Format, RefusesLayoutsThatCannotBeRight) {
  const struct {
    std::function<void(v4l2_pix_format&)> twist;
    std::string message;
  } kCases[] = {
      {[](auto& pix) { pix.bytesperline = 63; }, "with rows of 63 bytes"},
      {[](auto& pix) { pix.bytesperline = 0xfffffff0U; }, "with rows of 4294967280 bytes"},
      {[](auto& pix) { pix.sizeimage = 64 * 48 - 1; },
       "in buffers of 3071 bytes; a frame takes 3072"},
      {[](auto& pix) { pix.sizeimage = 0xffffffffU; }, "which cannot be right"},
      {[](auto& pix) { pix.field = V4L2_FIELD_ALTERNATE; }, "as single fields"},
      {[](auto& pix) { pix.width = 0; }, "both sides must be 1 to 32767"},
      {[](auto& pix) { pix.height = 40000; }, "both sides must be 1 to 32767"},
  };
  for (const auto& c : kCases) {
    Rig rig;
    rig.driver.twist_format = [&c](v4l2_format& f) { c.twist(f.fmt.pix); };
    EXPECT_THAT(rig.start_error(), HasSubstr(c.message));
  }
}

TEST(V4l2Format, SetsTheRateOrSaysWhichThereIs) {
  Rig rig;
  rig.config.fps = 25.1;  // as near as 29.97 is to 30
  EXPECT_EQ(rig.start_error(), "started");
  rig.config.fps = 30;
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: asked for 30 frames a second, but the driver set 25; set camera.fps to "
            "what it does, or leave it out");
  rig.driver.rates = {25, 12.5};
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: asked for 30 frames a second, but the driver set 25; at this size and "
            "format it does: 25 12.5; set camera.fps to what it does, or leave it out");
  rig.driver.fps = 0;
  EXPECT_THAT(rig.start_error(), HasSubstr("the frame rate of Fake Camera cannot be set"));
  rig.config.fps = 0;
  const auto format = rig.start();
  ASSERT_TRUE(format);
  EXPECT_EQ(format->fps, 0);
}

TEST(V4l2Device, RefusesNodesThatGiveNoPictures) {
  Rig rig;
  rig.driver.capabilities = V4L2_CAP_META_CAPTURE | V4L2_CAP_STREAMING;
  EXPECT_THAT(rig.start_error(), HasSubstr("captures no video through this node"));
  rig.driver.capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_READWRITE;
  EXPECT_THAT(rig.start_error(), HasSubstr("cannot stream into memory"));
  rig.driver.faults[VIDIOC_QUERYCAP] = {ENOTTY, 0};
  EXPECT_EQ(rig.start_error(), "/dev/fake0: is no V4L2 device");
  EXPECT_FALSE(rig.driver.is_open());
}

TEST(V4l2Device, TellsWhyItCannotBeOpened) {
  Rig rig;
  rig.driver.open_fault = EBUSY;
  EXPECT_THAT(rig.start_error(), HasSubstr("another program uses the camera"));
  rig.driver.open_fault = EPERM;
  EXPECT_THAT(rig.start_error(), HasSubstr("DeviceAllow=char-video4linux"));
  rig.driver.open_fault = ENOENT;
  const auto absent = rig.start();
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);

  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("by-path"));
  EXPECT_EQ(v4l2_open_error("/dev/video7", ENOENT, folder.path()).message,
            "/dev/video7: No such file or directory; no camera is here");
  ASSERT_TRUE(write_file(folder.file("by-path/pci-b"), ""));
  ASSERT_TRUE(write_file(folder.file("by-path/pci-a"), ""));
  EXPECT_EQ(v4l2_open_error("/dev/video7", ENOENT, folder.path()).message,
            "/dev/video7: No such file or directory; cameras here: " +
                folder.file("by-path/pci-a") + " " + folder.file("by-path/pci-b"));
  EXPECT_THAT(v4l2_open_error(folder.file("by-path/pci-a"), EACCES).message,
              HasSubstr("Permission denied; the group "));
}

TEST(V4l2Device, IsCalledByAPathThatStays) {
  const test::TemporaryFolder folder;
  const std::string device = folder.file("video3");
  ASSERT_TRUE(write_file(device, ""));
  EXPECT_EQ(stable_device_path(device, folder.path()), device);
  std::filesystem::create_directories(folder.file("by-id"));
  std::filesystem::create_symlink("../video3", folder.file("by-id/usb-serial"));
  EXPECT_EQ(stable_device_path(device, folder.path()), folder.file("by-id/usb-serial"));
  std::filesystem::create_directories(folder.file("by-path"));
  std::filesystem::create_symlink("../video4", folder.file("by-path/pci-0"));
  std::filesystem::create_symlink("../video3", folder.file("by-path/pci-1"));
  EXPECT_EQ(stable_device_path(device, folder.path()), folder.file("by-path/pci-1"));
  EXPECT_EQ(stable_device_path(folder.file("gone"), folder.path()), folder.file("gone"));
}

TEST(V4l2Capture, GoesIntoOurMemoryWhereTheDriverTakesIt) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  EXPECT_EQ(rig.source->capture_path(), CapturePath::kUserPointer);
  EXPECT_EQ(rig.driver.memory(), std::uint32_t{V4L2_MEMORY_USERPTR});
  EXPECT_EQ(rig.driver.queued(), 5U);
  ASSERT_TRUE(rig.capture(0, 11));
  ASSERT_TRUE(rig.capture(1, 22));
  FrameBuffer* const first = rig.next(false);
  FrameBuffer* const second = rig.next(false);
  EXPECT_TRUE(all_bytes_are(first->image, 11));
  EXPECT_TRUE(all_bytes_are(second->image, 22));
  EXPECT_EQ(first->image.data, first->data);
  EXPECT_EQ(rig.driver.queued(), 3U);  // the lent ones are not the driver's
  rig.source->release(first);
  EXPECT_EQ(rig.driver.queued(), 4U);
  rig.source->release(second);
  rig.source->stop();
  EXPECT_FALSE(rig.driver.is_open());
}

TEST(V4l2Capture, CopiesOnceWhereTheDriverKeepsItsMemory) {
  const struct {
    void (*spoil)(test::FakeV4l2&);
    std::string why;
  } kCases[] = {
      {[](test::FakeV4l2& d) { d.takes_user_pointers = false; }, "Invalid argument"},
      {[](test::FakeV4l2& d) { d.takes_our_memory = false; }, "Bad address"},
      {[](test::FakeV4l2& d) { d.most_buffers = 4; }, "No buffer space available"},
  };
  for (const auto& c : kCases) {
    Rig rig;
    c.spoil(rig.driver);
    ASSERT_TRUE(rig.start());
    EXPECT_EQ(rig.source->capture_path(), CapturePath::kOneCopy);
    EXPECT_THAT(rig.source->description(),
                HasSubstr("copied once (the driver does not take our memory: " + c.why + ")"));
    EXPECT_EQ(rig.driver.mappings(), 4U);
    ASSERT_TRUE(rig.capture(0, 99));
    FrameBuffer* const frame = rig.next();
    EXPECT_TRUE(all_bytes_are(frame->image, 99));
    EXPECT_EQ(rig.driver.queued(), 4U);  // all of them are the driver's again
    rig.source->release(frame);
    rig.source->stop();
    EXPECT_EQ(rig.driver.mappings(), 0U);
    EXPECT_FALSE(rig.driver.is_open());
  }
}

TEST(V4l2Capture, WorksWithMultiPlanarDevicesBothWays) {
  for (const bool user_pointers : {true, false}) {
    Rig rig;
    rig.driver.capabilities = V4L2_CAP_VIDEO_CAPTURE_MPLANE | V4L2_CAP_STREAMING;
    rig.driver.formats = {V4L2_PIX_FMT_NV12};
    rig.driver.takes_user_pointers = user_pointers;
    rig.driver.data_offset = 128;
    ASSERT_EQ(rig.start_error(), "started");
    EXPECT_EQ(rig.source->capture_path(),
              user_pointers ? CapturePath::kUserPointer : CapturePath::kOneCopy);
    for (std::uint32_t i = 0; i < 20; ++i) {
      ASSERT_TRUE(rig.capture(i, static_cast<std::uint8_t>(i)));
      FrameBuffer* const frame = rig.next();
      ASSERT_NE(frame, nullptr);
      EXPECT_TRUE(all_bytes_are(frame->image, static_cast<std::uint8_t>(i)));
      rig.source->release(frame);
    }
  }
}

TEST(V4l2Capture, RefusesFramesInSeparatePlanes) {
  Rig rig;
  rig.driver.capabilities = V4L2_CAP_VIDEO_CAPTURE_MPLANE | V4L2_CAP_STREAMING;
  rig.driver.formats = {V4L2_PIX_FMT_NV12};
  rig.driver.twist_format = [](v4l2_format& f) { f.fmt.pix_mp.num_planes = 2; };
  EXPECT_THAT(rig.start_error(), HasSubstr("in 2 separate planes; patternd takes one"));
}

TEST(V4l2Capture, GivesTheNewestFrameAndCountsTheOthers) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(rig.capture(i, static_cast<std::uint8_t>(i)));
  FrameBuffer* const frame = rig.next(true);
  EXPECT_TRUE(all_bytes_are(frame->image, 3));
  EXPECT_EQ(frame->info.dropped, 3U);
  EXPECT_EQ(rig.source->counters().overtaken, 3U);
  EXPECT_EQ(rig.driver.queued(), 4U);
  ASSERT_TRUE(rig.capture(4));
  EXPECT_EQ(rig.next()->info.dropped, 0U);
}

TEST(V4l2Capture, GivesEachFrameInItsTurnWhereAsked) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  for (std::uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(rig.capture(i, static_cast<std::uint8_t>(i)));
  std::uint64_t last_seq = 0;
  for (int i = 0; i < 3; ++i) {
    FrameBuffer* const frame = rig.next(false);
    EXPECT_TRUE(all_bytes_are(frame->image, static_cast<std::uint8_t>(i)));
    EXPECT_EQ(frame->info.dropped, 0U);
    EXPECT_TRUE(i == 0 || frame->info.seq > last_seq);
    last_seq = frame->info.seq;
    rig.source->release(frame);
  }
}

TEST(V4l2Capture, CountsGapsOfTheSequenceAlsoWhereItWraps) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  const struct {
    std::uint32_t sequence;
    std::uint64_t dropped;
  } kFrames[] = {{4294967290U, 0}, {4294967291U, 0}, {4294967295U, 3}, {0, 0},
                 {2, 1},           {2, 0},           {1, 0},           {2, 0}};
  for (const auto& f : kFrames) {
    ASSERT_TRUE(rig.capture(f.sequence));
    FrameBuffer* const frame = rig.next();
    EXPECT_EQ(frame->info.dropped, f.dropped) << f.sequence;
    rig.source->release(frame);
  }
  EXPECT_EQ(rig.source->counters().lost, 4U);
  EXPECT_EQ(rig.source->counters().frames, 8U);
}

TEST(V4l2Capture, LeavesOutDamagedAndShortFramesAndCountsThem) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  ASSERT_TRUE(rig.driver.capture({1, 0, -1, true, 0, -1}));
  ASSERT_TRUE(rig.driver.capture({2, 1, -1, false, 1, -1}));
  ASSERT_TRUE(rig.driver.capture({3, 2, -1, false, 0, -1}));
  FrameBuffer* const frame = rig.next(false);
  EXPECT_TRUE(all_bytes_are(frame->image, 3));
  EXPECT_EQ(frame->info.dropped, 2U);
  EXPECT_EQ(rig.source->counters().damaged, 2U);
  ASSERT_TRUE(rig.driver.capture({1, 3, -1, true, 0, -1}));
  EXPECT_EQ(rig.next_error().message, "/dev/fake0: no frame within 0 ms, only 1 damaged ones");
}

TEST(V4l2Capture, NeverWaitsLongerThanAsked) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  const Error error = rig.next_error();
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_EQ(error.message, "/dev/fake0: no frame within 0 ms");
}

TEST(V4l2Capture, IsInterruptedEvenWhenAFrameIsReady) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  rig.source->interrupt();
  EXPECT_EQ(rig.next_error().code, ErrorCode::kTimeout);
  ASSERT_TRUE(rig.capture(0));
  EXPECT_NE(rig.next(), nullptr);  // an interruption counts once
}

TEST(V4l2Capture, TellsThatTheCameraIsGone) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  rig.driver.unplug();
  const Error error = rig.next_error();
  EXPECT_EQ(error.code, ErrorCode::kDevice);
  EXPECT_EQ(error.message, "/dev/fake0: VIDIOC_DQBUF: No such device: the camera is gone");
  rig.source->stop();
  EXPECT_FALSE(rig.driver.is_open());
  EXPECT_EQ(rig.source->next(0, true).error().message, "/dev/fake0: the camera is not started");
}

TEST(V4l2Capture, TellsOfFaultsInTheStream) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  ASSERT_TRUE(rig.capture(0));
  rig.driver.faults[VIDIOC_DQBUF] = {EIO, 0};
  EXPECT_THAT(rig.next_error().message, HasSubstr("VIDIOC_DQBUF: Input/output error: the camera "
                                                  "or its driver reports a fault"));
  rig.driver.faults.clear();
  EXPECT_NE(rig.next(), nullptr);
  rig.driver.poll_events = POLLERR;
  EXPECT_EQ(rig.next_error().message, "/dev/fake0: the driver has ended the stream");
}

TEST(V4l2Capture, SuggestsWhatToDoWhenTheUsbBusIsFull) {
  for (const bool user_pointers : {true, false}) {
    Rig rig;
    rig.driver.takes_user_pointers = user_pointers;
    rig.driver.faults[VIDIOC_STREAMON] = {ENOSPC, 0};
    const auto started = rig.start();
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::kExhausted);
    EXPECT_THAT(started.error().message, HasSubstr("the USB bus has not the bandwidth"));
    EXPECT_THAT(started.error().message, HasSubstr("format: MJPG"));
    EXPECT_EQ(rig.driver.mappings(), 0U);
    EXPECT_FALSE(rig.driver.is_open());
  }
}

TEST(V4l2Capture, LeavesNothingBehindWhereverStartingFails) {
  for (const bool user_pointers : {true, false}) {
    for (const unsigned long request : {VIDIOC_QUERYCAP, VIDIOC_G_FMT, VIDIOC_S_FMT, VIDIOC_REQBUFS,
                                        VIDIOC_QUERYBUF, VIDIOC_QBUF, VIDIOC_STREAMON}) {
      for (const int after : {0, 1, 3}) {
        Rig rig;
        rig.driver.takes_user_pointers = user_pointers;
        rig.driver.faults[request] = {EIO, after};
        const auto started = rig.start();
        if (started) rig.source->stop();
        EXPECT_EQ(rig.driver.mappings(), 0U);
        EXPECT_FALSE(rig.driver.is_open());
        rig.driver.faults.clear();
        ASSERT_TRUE(rig.source->start(rig.memory, kLent));
        ASSERT_TRUE(rig.capture(0));
        ASSERT_NE(rig.next(), nullptr);
      }
    }
  }
}

TEST(V4l2Capture, RefusesADriverWithTooFewBuffers) {
  Rig rig;
  rig.driver.most_buffers = 1;
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: the driver gave 1 buffers; 2 are the least to stream with");
}

TEST(V4l2Capture, TellsThatAllBuffersAreLent) {
  Rig rig;
  rig.driver.takes_user_pointers = false;
  ASSERT_TRUE(rig.start());
  std::vector<FrameBuffer*> lent;
  std::uint32_t sequence = 0;
  for (; lent.size() < rig.memory.count(); ++sequence) {
    ASSERT_TRUE(rig.capture(sequence));
    lent.push_back(rig.next(false));
  }
  ASSERT_TRUE(rig.capture(sequence++));
  EXPECT_EQ(rig.next_error().code, ErrorCode::kExhausted);
  rig.source->release(lent.front());
  ASSERT_TRUE(rig.capture(sequence));
  EXPECT_EQ(rig.next(false)->info.dropped, 1U);
}

TEST(V4l2Capture, TakesNoMoreMemoryHoweverOftenItIsStarted) {
  for (const bool user_pointers : {true, false}) {
    Rig rig;
    rig.driver.takes_user_pointers = user_pointers;
    ASSERT_TRUE(rig.start());
    ASSERT_TRUE(rig.capture(0, 77));
    FrameBuffer* held = rig.next();
    const std::size_t blocks = rig.memory.count();
    for (std::uint32_t i = 1; i < 1000; ++i) {
      rig.driver.unplug();
      EXPECT_EQ(rig.next_error().code, ErrorCode::kDevice);
      ASSERT_TRUE(rig.source->start(rig.memory, kLent));
      ASSERT_TRUE(rig.capture(i, static_cast<std::uint8_t>(i)));
      FrameBuffer* const frame = rig.next();
      ASSERT_NE(frame, nullptr);
      ASSERT_NE(frame, held);
      rig.source->release(frame);
    }
    ASSERT_TRUE(all_bytes_are(held->image, 77));  // still ours all the while
    rig.source->release(held);
    EXPECT_EQ(rig.memory.count(), blocks);
  }
}

TEST(V4l2Capture, TakesBuffersBackFromAnotherThreadWhileItStreamsAndRestarts) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  std::atomic<FrameBuffer*> handed{nullptr};
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) {
      if (FrameBuffer* const frame = handed.exchange(nullptr)) rig.source->release(frame);
      std::this_thread::yield();
    }
  });
  for (std::uint32_t i = 0; i < 500; ++i) {
    if (i % 50 == 49) {
      ASSERT_TRUE(rig.source->start(rig.memory, kLent));
    }
    while (!rig.capture(i)) std::this_thread::yield();
    FrameBuffer* const frame = rig.next();
    ASSERT_NE(frame, nullptr);
    while (handed != nullptr) std::this_thread::yield();
    handed = frame;
  }
  while (handed != nullptr) std::this_thread::yield();
  done = true;
  other.join();
}

TEST(V4l2Stamps, AreTheDriversWhereTheyAreMonotonic) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  const std::int64_t stamp = monotonic_ns() - 5'000'000;
  ASSERT_TRUE(rig.driver.capture({1, 0, stamp, false, 0, -1}));
  const FrameInfo info = rig.next()->info;
  EXPECT_EQ(info.captured_mono_ns, stamp / 1000 * 1000);
  EXPECT_GE(info.received_mono_ns, info.captured_mono_ns);
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t unix_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  EXPECT_LT(info.captured_unix_ns, unix_ns);
  EXPECT_GT(info.captured_unix_ns, unix_ns - 60'000'000'000);
  EXPECT_EQ(rig.source->counters().restamped, 0U);
}

TEST(V4l2Stamps, AreTakenOnArrivalWhereTheDriversAreOfAnotherClock) {
  for (const std::uint32_t flag : {std::uint32_t{V4L2_BUF_FLAG_TIMESTAMP_UNKNOWN},
                                   std::uint32_t{V4L2_BUF_FLAG_TIMESTAMP_COPY}}) {
    Rig rig;
    rig.driver.stamp_flag = flag;
    ASSERT_TRUE(rig.start());
    ASSERT_TRUE(rig.driver.capture({1, 0, 1'700'000'000'000'000'000, false, 0, -1}));
    const FrameInfo info = rig.next()->info;
    EXPECT_EQ(info.captured_mono_ns, info.received_mono_ns);
    EXPECT_THAT(rig.source->description(),
                HasSubstr("stamped on arrival (the driver's stamps are not of the monotonic "
                          "clock)"));
    EXPECT_EQ(rig.source->counters().restamped, 1U);
  }
}

TEST(V4l2Stamps, AreTakenOnArrivalWhereTheDriversCannotBeRight) {
  Rig rig;
  ASSERT_TRUE(rig.start());
  const std::int64_t now = monotonic_ns();
  // The wall clock's time under a false flag; a minute old; far ahead; nothing.
  for (const std::int64_t stamp : {std::int64_t{1'700'000'000'000'000'000}, now - 60'000'000'000,
                                   now + 60'000'000'000, std::int64_t{0}}) {
    ASSERT_TRUE(rig.driver.capture({1, 0, stamp, false, 0, -1}));
    FrameBuffer* const frame = rig.next();
    EXPECT_EQ(frame->info.captured_mono_ns, frame->info.received_mono_ns);
    rig.source->release(frame);
  }
  EXPECT_EQ(rig.source->counters().restamped, 4U);
  EXPECT_THAT(rig.source->description(), HasSubstr("4 frames stamped on arrival"));
}

TEST(V4l2Stamps, RiseStrictly) {
  StampChecker checker;
  EXPECT_EQ(checker.captured_ns(5'000, 0, 6'000), 5'000);
  EXPECT_EQ(checker.captured_ns(5'000, 0, 6'100), 5'001);
  EXPECT_EQ(checker.captured_ns(4'000, 0, 6'200), 5'002);
  EXPECT_EQ(checker.captured_ns(std::nullopt, 0, 6'300), 6'300);
  EXPECT_EQ(checker.captured_ns(7'000, 0, 6'400), 6'400);  // just ahead: not later than arrived
  EXPECT_EQ(checker.implausible(), 0U);
}

TEST(V4l2Controls, AreNamedAsTheToolsDo) {
  EXPECT_EQ(control_name("Exposure Time, Absolute"), "exposure_time_absolute");
  EXPECT_EQ(control_name("White Balance, Auto & Preset"), "white_balance_auto_preset");
  EXPECT_EQ(control_name("  Gain (dB) "), "gain_db");
}

// A camera with a few controls.
struct ControlRig : Rig {
  ControlRig() {
    driver.add_control("Exposure Time, Absolute", V4L2_CTRL_TYPE_INTEGER, 1, 5000);
    driver.add_control("Auto Exposure", V4L2_CTRL_TYPE_MENU, 0, 3);
    driver.controls.back().menu = {"", "Manual Mode", "", "Aperture Priority Mode"};
    driver.add_control("Gain", V4L2_CTRL_TYPE_INTEGER, 0, 100, 10);
    driver.add_control("Zoom, Automatic", V4L2_CTRL_TYPE_BOOLEAN, 0, 1);
    driver.add_control("Serial", V4L2_CTRL_TYPE_INTEGER, 0, 9);
    driver.controls.back().info.flags = V4L2_CTRL_FLAG_READ_ONLY;
    driver.add_control("Pixel Rate", V4L2_CTRL_TYPE_INTEGER64, 0, 1'000'000'000'000);
    driver.add_control("Restart", V4L2_CTRL_TYPE_BUTTON, 0, 0);
    driver.add_control("Camera Controls", V4L2_CTRL_TYPE_CTRL_CLASS, 0, 0);
  }
};

TEST(V4l2Controls, AreSetByNameSwitchesFirst) {
  ControlRig rig;
  rig.config.controls = {
      {"exposure_time_absolute", 50},  {"gain", 20},  {"auto_exposure", 1}, {"zoom_automatic", 0},
      {"pixel_rate", 123'456'789'012}, {"restart", 1}};
  ASSERT_EQ(rig.start_error(), "started");
  EXPECT_EQ(rig.driver.control("exposure_time_absolute"), 50);
  EXPECT_EQ(rig.driver.control("gain"), 20);
  EXPECT_EQ(rig.driver.control("pixel_rate"), 123'456'789'012);
  EXPECT_THAT(rig.driver.set_order(),
              ElementsAre("auto_exposure", "zoom_automatic", "exposure_time_absolute", "gain",
                          "pixel_rate", "restart"));
}

TEST(V4l2Controls, ReportAllFaultsAtOnceAndSetNothingThen) {
  ControlRig rig;
  rig.config.controls = {{"auto_exposure", 2}, {"exposure_time_absolut", 50},
                         {"gain", 15},         {"pixel_rate", -1},
                         {"serial", 3},        {"zoom_automatic", 1}};
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: camera.controls: auto_exposure: 2 is not on its menu; 1 (Manual Mode), 3 "
            "(Aperture Priority Mode); exposure_time_absolut: no such control; did you mean "
            "exposure_time_absolute?; this camera has: exposure_time_absolute auto_exposure gain "
            "zoom_automatic serial pixel_rate restart; gain: 15 is between steps; 0 and every 10 "
            "above; pixel_rate: -1 is out of range; 0 to 1000000000000; serial: can only be read");
  EXPECT_TRUE(rig.driver.set_order().empty());
}

TEST(V4l2Controls, TellWhereTheCameraRefusesOrRounds) {
  ControlRig rig;
  rig.driver.controls[0].refuses_with = EACCES;
  rig.config.controls = {{"exposure_time_absolute", 50}};
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: camera.controls: exposure_time_absolute: the camera refuses 50 "
            "(Permission denied); an automatic mode may hold it, which is a control of its own");
  rig.driver.controls[0].refuses_with = 0;
  rig.driver.controls[0].rounds_to = 16;
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: camera.controls: exposure_time_absolute: asked for 50, but the driver set "
            "48");
}

TEST(V4l2Controls, OfACameraWithoutAnySaySo) {
  Rig rig;
  rig.config.controls = {{"gain", 1}};
  EXPECT_EQ(rig.start_error(),
            "/dev/fake0: camera.controls: gain: no such control; this camera has none");
}

TEST(V4l2Compressed, FramesAreDecodedToYu12) {
  Rig rig;
  rig.driver.formats = {V4L2_PIX_FMT_MJPEG};
  rig.driver.decode = [](const std::uint8_t* data, std::size_t size, std::uint8_t* target,
                         std::size_t target_size) {
    if (size < 10) return false;
    std::memset(target, data[0] + 1, target_size);
    return true;
  };
  const auto format = rig.start();
  ASSERT_TRUE(format) << format.error().message;
  EXPECT_EQ(format->format, RawFormat::kYu12);
  EXPECT_EQ(rig.source->capture_path(), CapturePath::kDecoded);
  EXPECT_THAT(rig.source->description(), HasSubstr("64x48 MJPG decoded to YU12"));
  ASSERT_TRUE(rig.driver.capture({1, 0, -1, false, 0, 5}));  // cannot be decoded
  ASSERT_TRUE(rig.driver.capture({2, 1, -1, false, 0, 500}));
  FrameBuffer* const frame = rig.next(false);
  ASSERT_NE(frame, nullptr);
  EXPECT_TRUE(all_bytes_are(frame->image, 3));
  EXPECT_EQ(frame->image.size_bytes, 64U * 48 * 3 / 2);
  EXPECT_EQ(frame->info.dropped, 1U);
  EXPECT_EQ(rig.source->counters().damaged, 1U);
}

TEST(V4l2Compressed, FramesAreDecodedByLibv4lconvert) {
  const std::string sample = test::opencv_sample("fruits.jpg");
  if (sample.empty()) GTEST_SKIP() << "opencv-doc is not installed";
  auto data = *read_file(sample, 10'000'000);
  const Image expected = *read_image(sample);
  const auto format = [&expected](std::uint32_t fourcc, std::uint32_t stride) {
    v4l2_format f{};
    f.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    f.fmt.pix.width = static_cast<std::uint32_t>(expected.width());
    f.fmt.pix.height = static_cast<std::uint32_t>(expected.height());
    f.fmt.pix.pixelformat = fourcc;
    f.fmt.pix.bytesperline = stride;
    return f;
  };
  test::FakeV4l2 driver;
  const int descriptor = driver.open(driver.path);
  auto converter = open_libv4l_converter(
      driver, descriptor, format(V4L2_PIX_FMT_MJPEG, 0),
      format(V4L2_PIX_FMT_YUV420, static_cast<std::uint32_t>(expected.width())));
  ASSERT_TRUE(converter);
  const auto stride = static_cast<std::size_t>(expected.width());
  std::vector<std::uint8_t> decoded(frame_bytes(RawFormat::kYu12, expected.height(), stride));
  const auto done = (*converter)->convert(data.data(), data.size(), decoded.data(), decoded.size());
  ASSERT_TRUE(done) << done.error().message;
  double difference = 0;
  for (int y = 0; y < expected.height(); ++y) {
    for (int x = 0; x < expected.width(); ++x)
      difference +=
          std::abs(decoded[static_cast<std::size_t>(y) * stride + static_cast<std::size_t>(x)] -
                   expected.row<std::uint8_t>(y)[x]);
  }
  EXPECT_LT(difference / (expected.width() * expected.height()), 1.0);
  EXPECT_FALSE((*converter)->convert(data.data(), 200, decoded.data(), decoded.size()));
}

TEST(V4l2Compressed, IsRefusedWhereItCannotBeDecoded) {
  Rig rig;
  rig.driver.formats = {V4L2_PIX_FMT_MJPEG};
  EXPECT_EQ(rig.start_error(), "the fake has no decoder for this");
  rig.driver.capabilities = V4L2_CAP_VIDEO_CAPTURE_MPLANE | V4L2_CAP_STREAMING;
  EXPECT_THAT(rig.start_error(), HasSubstr("compressed formats of multi-planar devices"));
}

TEST(V4l2Source, DescribesItself) {
  Rig rig;
  V4l2Source idle(rig.config, rig.driver);
  EXPECT_EQ(idle.description(), "V4L2 camera /dev/fake0, not started");
  ASSERT_TRUE(rig.start());
  EXPECT_EQ(rig.source->description(),
            "V4L2 camera /dev/fake0 (Fake Camera), 64x48 GREY at 25 frames a second");
  EXPECT_TRUE(rig.source->is_live());
}

TEST(V4l2Source, OfTheRealSystemSaysThatADeviceIsNotThere) {
  CameraConfig config = camera();
  config.device = "/dev/patternd-no-such-camera";
  const auto source = make_source(config);
  ASSERT_TRUE(source);
  test::FrameMemory memory;
  const auto started = (*source)->start(memory, kLent);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(started.error().message,
              HasSubstr("/dev/patternd-no-such-camera: No such file or directory"));
  config.device = "/dev/null";
  EXPECT_EQ((*make_source(config))->start(memory, kLent).error().message,
            "/dev/null: is no V4L2 device");
}

}  // namespace
}  // namespace patternd
