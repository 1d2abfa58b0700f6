// Video files that are whole, and others that are not.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gst/gst.h>
#include <gtest/gtest.h>
#include <iterator>
#include <vector>

#include "pipeline/input_file.h"
#include "pipeline/sources/frame_reader.h"
#include "pipeline/sources/gstreamer_support.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kFrames = 60;  // 2.4 s
constexpr const char* kCure =
    ": what it holds has been played; copy it again, or remux it where "
    "this is all that is left";

// Makes a film of 2.4 s, with sound of `sound_s` (0: none), in the container that `muxer` writes;
// else says why this machine cannot.
std::string make_film(const std::string& muxer, int sound_s, const std::string& path) {
  if (auto ready = initialise_gstreamer(); !ready) return ready.error().message;
  std::string description = "videotestsrc num-buffers=" + std::to_string(kFrames) +
                            " ! video/x-raw,width=64,height=48,framerate=25/1 ! jpegenc ! m. ";
  if (sound_s > 0) {
    description += "audiotestsrc num-buffers=" + std::to_string(sound_s) +
                   " samplesperbuffer=44100 ! "
                   "audio/x-raw,format=S16LE,rate=44100,channels=1 ! m. ";
  }
  description += muxer + " name=m ! filesink location=\"" + path + "\"";
  GError* error = nullptr;
  const GstElementPtr pipeline(
      gst_parse_launch_full(description.c_str(), nullptr, GST_PARSE_FLAG_FATAL_ERRORS, &error));
  if (error != nullptr) {
    std::string why = error->message;
    g_error_free(error);
    return why;
  }
  gst_element_set_state(pipeline.get(), GST_STATE_PLAYING);
  GstBus* bus = gst_element_get_bus(pipeline.get());
  constexpr GstClockTime kPatience = 20 * GST_SECOND;
  const auto kinds = static_cast<GstMessageType>(GST_MESSAGE_EOS | GST_MESSAGE_ERROR);
  GstMessage* message = gst_bus_timed_pop_filtered(bus, kPatience, kinds);
  const bool written = message != nullptr && GST_MESSAGE_TYPE(message) == GST_MESSAGE_EOS;
  std::string why = written ? "" : message != nullptr ? bus_error_text(message) : "too slow";
  if (message != nullptr) gst_message_unref(message);
  gst_object_unref(bus);
  gst_element_set_state(pipeline.get(), GST_STATE_NULL);
  return why;
}

struct Played {
  int frames = 0;
  std::string error;  // none where it came to its end
};

Played play(const std::string& path) {
  Played played;
  auto reader = open_video(path);
  if (!reader) return {0, reader.error().message};
  const SourceFormat& format = (*reader)->format();
  std::vector<std::uint8_t> pixels(frame_bytes(format.format, format.height, format.stride_bytes));
  for (;;) {
    const auto read = (*reader)->read(pixels.data());
    if (!read) played.error = read.error().message;
    if (!read || !*read) return played;
    ++played.frames;
  }
}

void halve(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
}

std::string bytes_of(const std::string& path) {
  const auto content = read_file(path, std::size_t{1} << 30);
  return content ? std::string(content->begin(), content->end()) : "";
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class VideoReaderTest : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
};

TEST_F(VideoReaderTest, SaysWhatWouldBeRightInPlaceOfAFileThatIsNoVideo) {
  const std::string path = folder_.file("f.mp4");
  std::ofstream(path, std::ios::binary) << std::string(1000, '\1');
  const auto reader = open_video(path);
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, ::testing::Not(HasSubstr(".;")));
  EXPECT_THAT(reader.error().message, StartsWith(path + ": "));
  EXPECT_THAT(reader.error().message,
              EndsWith("; must be a video that this machine's GStreamer decodes "
                       "(gst-discoverer-1.0 tells), or a folder of pictures"));
}

TEST_F(VideoReaderTest, PlaysAFilmToItsEndThatHasLongerSound) {
  for (const char* muxer : {"avimux", "matroskamux", "qtmux"}) {
    const std::string path = folder_.file(std::string("film.") + muxer);
    if (const std::string why = make_film(muxer, 6, path); !why.empty()) GTEST_SKIP() << why;
    const Played played = play(path);
    EXPECT_EQ(played.frames, kFrames) << muxer;
    EXPECT_EQ(played.error, "") << muxer;
  }
}

TEST_F(VideoReaderTest, SaysWhereAFilmWithLongerSoundWasCut) {
  for (const char* muxer : {"avimux", "matroskamux", "qtmux faststart=true"}) {
    const std::string path = folder_.file("film");
    if (const std::string why = make_film(muxer, 6, path); !why.empty()) GTEST_SKIP() << why;
    halve(path);
    const Played cut = play(path);
    EXPECT_GT(cut.frames, 10) << muxer;
    EXPECT_THAT(cut.error, StartsWith(path + ": the video ends after ")) << muxer;
    EXPECT_THAT(cut.error, EndsWith(std::string("; it was cut short") + kCure)) << muxer;
  }
}

TEST_F(VideoReaderTest, SaysHowManyBytesAnAviFileLacksThatWasCutWithItsIndex) {
  const std::string path = folder_.file("film.avi");
  if (const std::string why = make_film("avimux", 0, path); !why.empty()) GTEST_SKIP() << why;
  const std::string whole = bytes_of(path);
  const std::size_t index = whole.rfind("idx1");
  ASSERT_NE(index, std::string::npos);
  // Of the last frame alone, which no count of seconds would tell.
  write_bytes(path, whole.substr(0, index - 100));
  const Played cut = play(path);
  EXPECT_GE(cut.frames, kFrames - 1);
  EXPECT_THAT(cut.error, HasSubstr(", but its file lacks 100 bytes of frames; it was cut short"));
  write_bytes(path, whole.substr(0, index));
  const Played without_index = play(path);
  EXPECT_EQ(without_index.frames, kFrames);
  EXPECT_EQ(without_index.error, "");
}

TEST_F(VideoReaderTest, SaysThatTheRecorderOfAnAviFileWasStopped) {
  const std::string path = folder_.file("film.avi");
  if (const std::string why = make_film("avimux", 0, path); !why.empty()) GTEST_SKIP() << why;
  std::string bytes = bytes_of(path);
  bytes.resize(bytes.rfind("idx1"));
  bytes.replace(bytes.find("movi") - 4, 4, 4, '\0');
  write_bytes(path, bytes);
  const Played played = play(path);
  EXPECT_EQ(played.frames, kFrames);
  EXPECT_EQ(played.error,
            path +
                ": the video ends after 2.4 s, and its file says nowhere how much it should "
                "hold; its recorder was stopped before it was done" +
                kCure);
}

TEST_F(VideoReaderTest, PlaysTheVideosOfOpencvToTheirEndsAndSaysWhereACopyWasCut) {
  for (const char* name : {"vtest.avi", "Megamind.avi", "Megamind_bugy.avi", "tree.avi"}) {
    const std::string sample = test::opencv_sample(name);
    if (sample.empty()) GTEST_SKIP() << "opencv-doc is not installed";
    const Played whole = play(sample);
    if (whole.error.find("missing a plug-in") != std::string::npos) GTEST_SKIP() << whole.error;
    EXPECT_EQ(whole.error, "");
    EXPECT_GT(whole.frames, 60) << name;
    const std::string copy = folder_.file(name);
    std::filesystem::copy_file(sample, copy);
    halve(copy);
    const Played cut = play(copy);
    EXPECT_GT(cut.frames, 10) << name;
    EXPECT_LT(cut.frames, whole.frames) << name;
    EXPECT_THAT(cut.error, HasSubstr(" bytes of frames; it was cut short")) << name;
  }
}

}  // namespace
}  // namespace patternd
