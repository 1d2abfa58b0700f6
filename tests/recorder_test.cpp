#include "tools/patternctl/recorder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/image_file.h"
#include "tests/support/test_files.h"

namespace patternd::tools {
namespace {

using ::testing::HasSubstr;

// A camera of 12 bits that loses frames now and then, and ends as it is told.
class PlannedSource : public Source {
 public:
  std::vector<std::uint64_t> dropped;  // before each of its frames
  Error end{ErrorCode::kEndOfStream, "the end"};
  int timeouts = 0;  // before each frame
  std::optional<Error> start_fault;
  bool running = false;
  int lent = 0;

  Result<SourceFormat> start(FrameAllocator& allocator, int) override {
    if (start_fault) return tl::make_unexpected(*start_fault);
    auto memory = allocator.allocate(2 * 6 * 4);
    buffer_.data = *memory;
    running = true;
    return SourceFormat{6, 4, 12, RawFormat::kY12, BayerOrder::kRggb, 0};
  }
  Result<FrameBuffer*> next(int, bool newest_only) override {
    EXPECT_FALSE(newest_only);
    if (timeouts_ < timeouts) {
      ++timeouts_;
      return fail(ErrorCode::kTimeout, "nothing yet");
    }
    timeouts_ = 0;
    if (given_ == dropped.size()) return tl::make_unexpected(end);
    auto* pixels = reinterpret_cast<std::uint16_t*>(buffer_.data);
    for (int i = 0; i < 24; ++i) pixels[i] = static_cast<std::uint16_t>(100 * given_ + 1);
    buffer_.image = {buffer_.data, 48, 6, 4, 12, RawFormat::kY12, BayerOrder::kRggb};
    buffer_.info = FrameInfo{};
    buffer_.info.captured_mono_ns = 1'000'000 + static_cast<std::int64_t>(given_) * 500'000'000;
    buffer_.info.captured_unix_ns = buffer_.info.captured_mono_ns;
    buffer_.info.dropped = dropped[given_++];
    ++lent;
    return &buffer_;
  }
  void release(FrameBuffer*) override { --lent; }
  void stop() override { running = false; }
  void interrupt() override {}
  bool is_live() const override { return true; }
  CapturePath capture_path() const override { return CapturePath::kOneCopy; }
  std::string description() const override { return "a planned camera"; }

 private:
  FrameBuffer buffer_;
  std::size_t given_ = 0;
  int timeouts_ = 0;
};

struct Recorded {
  test::TemporaryFolder folder;
  RecordOptions options;
  std::atomic<bool> stopping{false};
  int shown = 0;

  Recorded() { options.folder = folder.file("recording"); }
  Result<RecordSummary> record(Source& source) {
    return record_frames(source, options, stopping, [this](const RecordSummary&) { ++shown; });
  }
};

TEST(Recorder, WritesLumaAtFullScaleAndShowsGapsInSeq) {
  Recorded recorded;
  PlannedSource camera;
  camera.dropped = {5, 0, 2};
  camera.timeouts = 2;
  const auto summary = recorded.record(camera);
  ASSERT_TRUE(summary) << summary.error().message;
  EXPECT_EQ(summary->frames, 3U);
  EXPECT_EQ(summary->dropped, 2U);
  EXPECT_EQ(summary->seconds, 1.0);
  EXPECT_EQ(summary->source, "a planned camera");
  EXPECT_EQ(recorded.shown, 3);
  EXPECT_FALSE(camera.running);
  EXPECT_EQ(camera.lent, 0);
  const auto index = read_recording_index(recorded.options.folder);
  ASSERT_TRUE(index) << index.error().message;
  ASSERT_EQ(index->stamps.size(), 3U);
  EXPECT_EQ(index->stamps[1].seq, index->stamps[0].seq + 1);
  EXPECT_EQ(index->stamps[2].seq, index->stamps[1].seq + 3);
  EXPECT_EQ(index->stamps[1].captured_mono_ns, 501'000'000);
  const auto picture = read_image(recorded.options.folder + "/00000002.pgm");
  ASSERT_TRUE(picture);
  ASSERT_EQ(picture->format(), PixelFormat::kGray16);
  EXPECT_EQ(picture->row<std::uint16_t>(3)[5], 201 << 4);
}

TEST(Recorder, EndsAfterSoManyFramesOrSeconds) {
  for (const bool by_frames : {true, false}) {
    Recorded recorded;
    PlannedSource camera;
    camera.dropped.assign(10, 0);
    if (by_frames)
      recorded.options.frames = 3;
    else
      recorded.options.seconds = 1.5;  // frames are half a second apart
    const auto summary = recorded.record(camera);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->frames, 3U);
    EXPECT_EQ(camera.lent, 0);
  }
}

TEST(Recorder, EndsWhenToldToWithASoundRecording) {
  Recorded recorded;
  PlannedSource camera;
  camera.dropped.assign(1000, 0);
  const auto summary =
      record_frames(camera, recorded.options, recorded.stopping, [&](const RecordSummary& s) {
        if (s.frames == 4) recorded.stopping = true;
      });
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->frames, 4U);
  EXPECT_EQ(read_recording_index(recorded.options.folder)->stamps.size(), 4U);
}

TEST(Recorder, KeepsWhatItHasWhenTheCameraFails) {
  Recorded recorded;
  PlannedSource camera;
  camera.dropped = {0, 0};
  camera.end = {ErrorCode::kDevice, "unplugged"};
  const auto summary = recorded.record(camera);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().message, "unplugged");
  EXPECT_FALSE(camera.running);
  EXPECT_EQ(read_recording_index(recorded.options.folder)->stamps.size(), 2U);
}

TEST(Recorder, SaysWhyItCannotBegin) {
  Recorded recorded;
  PlannedSource camera;
  camera.start_fault = Error{ErrorCode::kNotFound, "no such camera"};
  EXPECT_EQ(recorded.record(camera).error().message, "no such camera");
  EXPECT_FALSE(std::filesystem::exists(recorded.options.folder));  // to be tried again
  camera.start_fault.reset();
  ASSERT_TRUE(write_file(recorded.folder.file("notes"), "mine"));
  recorded.options.folder = recorded.folder.path();
  EXPECT_THAT(recorded.record(camera).error().message, HasSubstr("the folder is not empty"));
}

}  // namespace
}  // namespace patternd::tools
