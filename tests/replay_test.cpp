#include <chrono>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "pipeline/image_file.h"
#include "pipeline/sources/recording.h"
#include "pipeline/sources/replay_source.h"
#include "pipeline/stage.h"
#include "tests/support/frame_memory.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

constexpr int kPatienceMs = 20'000;

// A picture whose pixels tell its number.
Image numbered(int number, int width = 7, int height = 5,
               PixelFormat format = PixelFormat::kGray8) {
  auto image = Image::create(width, height, format);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int value = number * 40 + y * width + x;
      if (format == PixelFormat::kGray8)
        image->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(value);
      else
        image->row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(value * 257 + 3);
    }
  }
  return std::move(*image);
}

CameraConfig replay_of(const std::string& path) {
  CameraConfig config;
  config.kind = CameraConfig::Kind::kReplay;
  config.path = path;
  config.realtime = false;
  return config;
}

// Two pictures in the folder, a thousand seconds apart.
CameraConfig two_pictures_far_apart(const test::TemporaryFolder& folder) {
  EXPECT_TRUE(write_image(folder.file("0.pgm"), numbered(0).view()));
  EXPECT_TRUE(write_image(folder.file("1.pgm"), numbered(1).view()));
  CameraConfig config = replay_of(folder.path());
  config.realtime = true;
  config.fps = 0.001;
  return config;
}

struct Played {
  std::vector<FrameInfo> infos;
  std::vector<std::vector<std::uint8_t>> pixels;  // rows without their padding
  SourceFormat format;
  Error end;
};

// Plays until the end or for `limit` frames, giving each buffer back one frame later.
Played play(const CameraConfig& config, std::size_t limit = 1000) {
  test::FrameMemory memory;
  ReplaySource source(config);
  Played played;
  auto format = source.start(memory, 2);
  if (!format) {
    played.end = format.error();
    return played;
  }
  played.format = *format;
  FrameBuffer* held = nullptr;
  while (played.infos.size() < limit) {
    auto frame = source.next(kPatienceMs, true);
    if (!frame) {
      played.end = frame.error();
      break;
    }
    if (held != nullptr) source.release(held);
    held = *frame;
    played.infos.push_back(held->info);
    const RawImageView& view = held->image;
    std::vector<std::uint8_t> rows;
    for (int y = 0; y < view.height; ++y) {
      const std::uint8_t* row = view.data + static_cast<std::size_t>(y) * view.stride_bytes;
      rows.insert(rows.end(), row, row + min_stride_bytes(view.format, view.width));
    }
    played.pixels.push_back(std::move(rows));
  }
  return played;
}

std::vector<std::uint8_t> bytes_of(const Image& image) {
  std::vector<std::uint8_t> bytes;
  const std::size_t row = static_cast<std::size_t>(image.width()) * bytes_per_pixel(image.format());
  for (int y = 0; y < image.height(); ++y) {
    const auto* from = image.view().row_bytes(y);
    bytes.insert(bytes.end(), from, from + row);
  }
  return bytes;
}

void record(const std::string& folder, int count, PixelFormat format = PixelFormat::kGray8,
            RecordingFormat kind = RecordingFormat::kPgm) {
  auto writer = RecordingWriter::create(folder, kind);
  ASSERT_TRUE(writer);
  for (int i = 0; i < count; ++i) {
    const FrameStamp stamp{10 + 2 * static_cast<std::uint64_t>(i), 1000 + 100 * i, 5000 + 1000 * i};
    ASSERT_TRUE(writer->write(numbered(i, 7, 5, format).view(), stamp));
  }
  ASSERT_TRUE(writer->finish());
}

// Whether this build and machine can write lossless videos; else why not.
std::string no_video_because() {
  const test::TemporaryFolder folder;
  auto writer = RecordingWriter::create(folder.path(), RecordingFormat::kVideo);
  const auto written = writer->write(numbered(0).view(), {1, 1, 1});
  return written ? "" : written.error().message;
}

TEST(Replay, PlaysAFolderOfPicturesInNameOrderWithStampsFromItsRate) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_image(folder.file("b.png"), numbered(2).view()));
  ASSERT_TRUE(write_image(folder.file("a.pgm"), numbered(1).view()));
  ASSERT_TRUE(write_image(folder.file("c.PGM.png"), numbered(3).view()));
  ASSERT_TRUE(write_file(folder.file("README.txt"), "no picture"));
  ASSERT_TRUE(write_file(folder.file(".hidden.png"), "no picture either"));
  const Played played = play(replay_of(folder.path()));
  EXPECT_EQ(played.end.code, ErrorCode::kEndOfStream) << played.end.message;
  EXPECT_EQ(played.format.width, 7);
  EXPECT_EQ(played.format.height, 5);
  EXPECT_EQ(played.format.format, RawFormat::kGrey);
  EXPECT_EQ(played.format.fps, 25);
  ASSERT_EQ(played.infos.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    const auto n = static_cast<std::size_t>(i);
    EXPECT_EQ(played.pixels[n], bytes_of(numbered(i + 1)));
    EXPECT_EQ(played.infos[n].seq, n);
    EXPECT_EQ(played.infos[n].captured_mono_ns, i * 40'000'000);
    EXPECT_EQ(played.infos[n].captured_unix_ns, i * 40'000'000);
    EXPECT_EQ(played.infos[n].received_mono_ns, i * 40'000'000);
    EXPECT_EQ(played.infos[n].dropped, 0U);
  }
}

TEST(Replay, PlaysJpegPictures) {
  const std::string sample = test::opencv_sample("left01.jpg");
  if (sample.empty()) GTEST_SKIP() << "opencv-doc is not installed";
  const Played played = play(replay_of(sample));
  ASSERT_EQ(played.infos.size(), 1U) << played.end.message;
  EXPECT_EQ(played.pixels[0], bytes_of(*read_image(sample)));
}

TEST(Replay, GivesRecordedFramesWithTheirOwnStampsBitForBit) {
  for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    const test::TemporaryFolder folder;
    record(folder.path(), 4, format);
    const Played played = play(replay_of(folder.path()));
    EXPECT_EQ(played.end.code, ErrorCode::kEndOfStream) << played.end.message;
    EXPECT_EQ(luma_format(played.format.format), format);
    ASSERT_EQ(played.infos.size(), 4U);
    for (int i = 0; i < 4; ++i) {
      const auto n = static_cast<std::size_t>(i);
      EXPECT_EQ(played.pixels[n], bytes_of(numbered(i, 7, 5, format)));
      EXPECT_EQ(played.infos[n].seq, 10 + 2 * n);
      EXPECT_EQ(played.infos[n].captured_mono_ns, 1000 + 100 * i);
      EXPECT_EQ(played.infos[n].captured_unix_ns, 5000 + 1000 * i);
    }
  }
}

TEST(Replay, LoopsWithStampsThatKeepRisingByTheRecordingsPeriod) {
  const test::TemporaryFolder folder;
  record(folder.path(), 3);
  CameraConfig config = replay_of(folder.path());
  config.loop = true;
  const Played played = play(config, 9000);
  ASSERT_EQ(played.infos.size(), 9000U) << played.end.message;
  for (std::size_t n = 0; n < played.infos.size(); ++n) {
    ASSERT_EQ(played.pixels[n], bytes_of(numbered(static_cast<int>(n % 3))));
    ASSERT_EQ(played.infos[n].captured_mono_ns, 1000 + 100 * static_cast<std::int64_t>(n));
    ASSERT_EQ(played.infos[n].seq, 10 + n / 3 * 5 + n % 3 * 2);
    if (n > 0) {
      ASSERT_GT(played.infos[n].captured_unix_ns, played.infos[n - 1].captured_unix_ns - 2000);
    }
  }
}

TEST(Replay, LoopsAFolderWithoutStampsByCountingOn) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_image(folder.file("0.png"), numbered(0).view()));
  ASSERT_TRUE(write_image(folder.file("1.png"), numbered(1).view()));
  CameraConfig config = replay_of(folder.path());
  config.loop = true;
  config.fps = 30;
  const Played played = play(config, 7);
  ASSERT_EQ(played.infos.size(), 7U);
  EXPECT_EQ(played.format.fps, 30);
  EXPECT_EQ(played.infos[6].seq, 6U);
  EXPECT_EQ(played.infos[6].captured_unix_ns, 200'000'000);
  EXPECT_EQ(played.infos[1].captured_unix_ns, 33'333'333);
  EXPECT_EQ(played.pixels[6], bytes_of(numbered(0)));
}

TEST(Replay, TakesNoMoreMemoryWhenStartedAgain) {
  const test::TemporaryFolder folder;
  record(folder.path(), 3);
  test::FrameMemory memory;
  ReplaySource source(replay_of(folder.path()));
  ASSERT_TRUE(source.start(memory, 2));
  const std::size_t blocks = memory.count();
  FrameBuffer* held = *source.next(kPatienceMs, false);
  for (int i = 0; i < 100; ++i) {
    source.stop();
    ASSERT_TRUE(source.start(memory, 2));
    auto frame = source.next(kPatienceMs, false);
    ASSERT_TRUE(frame);
    EXPECT_NE(*frame, held);  // still ours from before
    EXPECT_EQ((*frame)->info.seq, 10U);
    source.release(*frame);
  }
  source.release(held);
  EXPECT_EQ(memory.count(), blocks);
}

TEST(Replay, PlaysARecordingWhoseRecorderWasKilled) {
  const test::TemporaryFolder folder;
  record(folder.path(), 3);
  // Killed between the frame and its line, or within the line.
  ASSERT_TRUE(write_image(folder.file("00000003.pgm"), numbered(3).view()));
  EXPECT_EQ(play(replay_of(folder.path())).infos.size(), 3U);
  std::ofstream(folder.file("index.jsonl"), std::ios::app) << "{\"seq\":16,\"capt";
  const Played played = play(replay_of(folder.path()));
  EXPECT_EQ(played.infos.size(), 3U);
  EXPECT_EQ(played.end.code, ErrorCode::kEndOfStream);
}

TEST(Replay, SaysInItsDescriptionThatTheIndexWasCut) {
  const test::TemporaryFolder folder;
  record(folder.path(), 1);
  std::ofstream(folder.file("index.jsonl"), std::ios::app) << "{\"seq\":16,\"capt";
  test::FrameMemory memory;
  ReplaySource source(replay_of(folder.path()));
  ASSERT_TRUE(source.start(memory, 1));
  EXPECT_EQ(source.description(), "replay of " + folder.path() +
                                      ", 7x5 GREY, the index's last line is cut short and left "
                                      "out");
}

TEST(Replay, RefusesARecordingThatLacksFrames) {
  const test::TemporaryFolder folder;
  record(folder.path(), 3);
  std::filesystem::remove(folder.file("00000001.pgm"));
  const Played played = play(replay_of(folder.path()));
  EXPECT_EQ(played.end.code, ErrorCode::kParse);
  EXPECT_EQ(played.end.message, folder.path() +
                                    ": holds 2 pictures, but its index has 3 lines; each line "
                                    "needs its picture");
}

TEST(Replay, NamesThePictureThatIsNotLikeTheFirst) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_image(folder.file("0.png"), numbered(0).view()));
  ASSERT_TRUE(write_image(folder.file("1.png"), numbered(1, 7, 6).view()));
  const Played played = play(replay_of(folder.path()));
  EXPECT_EQ(played.infos.size(), 1U);
  EXPECT_EQ(played.end.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(played.end.message, folder.file("1.png") + ": is 7x6 gray8, but " +
                                    folder.file("0.png") +
                                    " is 7x5 gray8; all pictures of a folder must agree");
}

TEST(Replay, NamesThePictureThatCannotBeRead) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_image(folder.file("0.png"), numbered(0).view()));
  ASSERT_TRUE(write_file(folder.file("1.png"), "not a picture"));
  const Played played = play(replay_of(folder.path()));
  EXPECT_EQ(played.infos.size(), 1U);
  EXPECT_EQ(played.end.code, ErrorCode::kParse);
  EXPECT_THAT(played.end.message, HasSubstr(folder.file("1.png")));
}

TEST(Replay, SaysWhatItNeedsWhereThereIsNothingToPlay) {
  const test::TemporaryFolder folder;
  EXPECT_EQ(play(replay_of(folder.file("gone"))).end.code, ErrorCode::kNotFound);
  EXPECT_EQ(play(replay_of(folder.file("gone"))).end.message,
            folder.file("gone") + ": no such file or folder to replay");
  EXPECT_THAT(play(replay_of(folder.path())).end.message, HasSubstr("holds no pictures"));
}

TEST(Replay, TellsAConfigurationThatExpectsOtherFrames) {
  const test::TemporaryFolder folder;
  record(folder.path(), 1);
  CameraConfig config = replay_of(folder.path());
  config.width = 1280;
  config.height = 720;
  EXPECT_EQ(play(config).end.message,
            folder.path() +
                ": frames are 7x5, but the configuration asks for 1280x720; leave width and height "
                "out to take the recording's");
  config = replay_of(folder.path());
  config.format = "Y16";
  EXPECT_EQ(play(config).end.message, folder.path() +
                                          ": frames are GREY, but the configuration asks for Y16; "
                                          "leave format out to take the recording's");
  config.format = "GREY";
  EXPECT_EQ(play(config).infos.size(), 1U);
}

TEST(Replay, KeepsTheRecordedPaceInRealTime) {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(write_image(folder.file(std::to_string(i) + ".pgm"), numbered(i).view()));
  }
  CameraConfig config = replay_of(folder.path());
  config.realtime = true;
  config.fps = 50;
  test::FrameMemory memory;
  ReplaySource source(config);
  ASSERT_TRUE(source.start(memory, 2));
  const std::int64_t before = monotonic_ns();
  for (int i = 0; i < 4; ++i) {
    auto frame = source.next(kPatienceMs, true);
    ASSERT_TRUE(frame);
    EXPECT_GE(monotonic_ns() - before, i * 20'000'000);  // never early
    source.release(*frame);
  }
}

TEST(Replay, GivesATimeoutWhereTheNextFrameIsNotDue) {
  const test::TemporaryFolder folder;
  const CameraConfig config = two_pictures_far_apart(folder);
  test::FrameMemory memory;
  ReplaySource source(config);
  ASSERT_TRUE(source.start(memory, 2));
  ASSERT_TRUE(source.next(kPatienceMs, true));
  const auto second = source.next(1, true);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
}

TEST(Replay, IsInterruptedWhileItWaits) {
  const test::TemporaryFolder folder;
  const CameraConfig config = two_pictures_far_apart(folder);
  test::FrameMemory memory;
  ReplaySource source(config);
  ASSERT_TRUE(source.start(memory, 2));
  ASSERT_TRUE(source.next(kPatienceMs, true));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    source.interrupt();
  });
  const auto second = source.next(600'000, true);
  other.join();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kTimeout);
}

TEST(Replay, LosesNoFrameToASlowConsumerOnAnotherThread) {
  const test::TemporaryFolder folder;
  record(folder.path(), 40);
  test::FrameMemory memory;
  ReplaySource source(replay_of(folder.path()));
  ASSERT_TRUE(source.start(memory, 1));
  std::uint64_t expected = 10;
  for (;;) {
    auto frame = source.next(kPatienceMs, true);
    if (!frame) {
      EXPECT_EQ(frame.error().code, ErrorCode::kEndOfStream);
      break;
    }
    ASSERT_EQ((*frame)->info.seq, expected);
    expected += 2;
    std::thread([&source, frame] { source.release(*frame); }).join();
  }
  EXPECT_EQ(expected, 90U);
}

TEST(ReplayOfVideo, IsTheSameEachTime) {
  const std::string video = test::opencv_sample("vtest.avi");
  if (video.empty()) GTEST_SKIP() << "opencv-doc is not installed";
  const Played first = play(replay_of(video), 60);
  if (first.end.code == ErrorCode::kUnsupported) GTEST_SKIP() << first.end.message;
  ASSERT_EQ(first.infos.size(), 60U) << first.end.message;
  EXPECT_EQ(first.format.width, 768);
  EXPECT_EQ(first.format.height, 576);
  EXPECT_EQ(first.infos[59].captured_unix_ns, std::llround(59e9 / first.format.fps));
  const Played second = play(replay_of(video), 60);
  EXPECT_TRUE(first.pixels == second.pixels);
  EXPECT_FALSE(first.pixels[0] == first.pixels[59]);
}

TEST(ReplayOfVideo, GivesLosslessVideosBackBitForBit) {
  if (const std::string why = no_video_because(); !why.empty()) GTEST_SKIP() << why;
  for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    const test::TemporaryFolder folder;
    record(folder.path(), 40, format, RecordingFormat::kVideo);
    CameraConfig config = replay_of(folder.path());
    config.loop = true;
    const Played played = play(config, 100);
    ASSERT_EQ(played.infos.size(), 100U) << played.end.message;
    EXPECT_EQ(luma_format(played.format.format), format);
    for (std::size_t n = 0; n < played.infos.size(); ++n) {
      ASSERT_EQ(played.pixels[n], bytes_of(numbered(static_cast<int>(n % 40), 7, 5, format))) << n;
      ASSERT_EQ(played.infos[n].captured_mono_ns, 1000 + 100 * static_cast<std::int64_t>(n));
    }
  }
}

TEST(ReplayOfVideo, PlaysWhatAKilledRecorderLeftAndSaysThatItIsNotAll) {
  if (const std::string why = no_video_because(); !why.empty()) GTEST_SKIP() << why;
  const test::TemporaryFolder folder;
  record(folder.path(), 200, PixelFormat::kGray16, RecordingFormat::kVideo);
  const std::string video = folder.file(kVideoName);
  std::filesystem::resize_file(video, std::filesystem::file_size(video) * 2 / 3);
  const Played played = play(replay_of(folder.path()));
  EXPECT_EQ(played.end.code, ErrorCode::kIo);
  EXPECT_THAT(
      played.end.message,
      HasSubstr(folder.path() + ": the video ends after " + std::to_string(played.infos.size()) +
                " frames, but its index has 200 lines; it was cut short"));
  EXPECT_GT(played.infos.size(), 20U);
  EXPECT_LT(played.infos.size(), 200U);
  for (std::size_t n = 0; n < played.infos.size(); ++n) {
    ASSERT_EQ(played.pixels[n],
              bytes_of(numbered(static_cast<int>(n), 7, 5, PixelFormat::kGray16)));
  }
}

TEST(ReplayOfVideo, SaysThatAFileWasCutShort) {
  if (const std::string why = no_video_because(); !why.empty()) GTEST_SKIP() << why;
  constexpr std::int64_t kPeriodNs = 40'000'000;
  const test::TemporaryFolder folder;
  auto writer = RecordingWriter::create(folder.path(), RecordingFormat::kVideo);
  ASSERT_TRUE(writer);
  for (int i = 0; i < 200; ++i) {
    const FrameStamp stamp{static_cast<std::uint64_t>(i), i * kPeriodNs, 0};
    ASSERT_TRUE(writer->write(numbered(i).view(), stamp));
  }
  ASSERT_TRUE(writer->finish());
  const std::string video = folder.file("film.mkv");
  std::filesystem::rename(folder.file(kVideoName), video);
  const Played whole = play(replay_of(video));
  EXPECT_EQ(whole.infos.size(), 200U);
  EXPECT_EQ(whole.end.code, ErrorCode::kEndOfStream) << whole.end.message;
  std::filesystem::resize_file(video, std::filesystem::file_size(video) / 2);
  const Played cut = play(replay_of(video));
  EXPECT_GT(cut.infos.size(), 10U);
  EXPECT_EQ(cut.end.code, ErrorCode::kIo);
  EXPECT_THAT(cut.end.message, HasSubstr(video + ": the video ends after "));
  EXPECT_THAT(cut.end.message, HasSubstr("but its file says that it lasts "));
}

TEST(ReplayOfVideo, SaysThatItCannotBeWritten) {
  if (const std::string why = no_video_because(); !why.empty()) GTEST_SKIP() << why;
  const test::TemporaryFolder folder;
  const std::string path = folder.file("recording");
  auto writer = RecordingWriter::create(path, RecordingFormat::kVideo);
  ASSERT_TRUE(writer);
  std::filesystem::remove_all(path);
  const auto written = writer->write(numbered(0).view(), {1, 100, 0});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr(path + "/frames.mkv: "));
}

TEST(ReplayOfVideo, SaysThatAFileIsNoVideo) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("film.avi"), "nothing of the kind"));
  const Played played = play(replay_of(folder.file("film.avi")));
  EXPECT_TRUE(played.infos.empty());
  EXPECT_THAT(played.end.message, HasSubstr(folder.file("film.avi") + ": "));
}

TEST(Replay, TakesTheServicesWordForWhatIsMade) {
  const auto source = make_source(replay_of("somewhere"));
  ASSERT_TRUE(source);
  EXPECT_FALSE((*source)->is_live());
  EXPECT_EQ((*source)->capture_path(), CapturePath::kDecoded);
}

TEST(ReplayTimeline, EndsBeforeItsStampsPassTheBoundsOfAnIndex) {
  // Two stamps as far apart as can be: no second loop. (Its length is twice that.)
  const ReplayTimeline longest({{0, 0, 0}, {kMostSeq, kMostNs, kMostNs}}, 25);
  EXPECT_TRUE(longest.reaches(1));
  EXPECT_EQ(longest.stamp(1).captured_mono_ns, kMostNs);
  EXPECT_FALSE(longest.reaches(2));
  const std::int64_t half = kMostNs / 4;
  const ReplayTimeline looped({{5, 0, 7}, {6, half / 2, 9}}, 25);
  EXPECT_TRUE(looped.reaches(6));
  EXPECT_EQ(looped.stamp(6).seq, 11U);
  EXPECT_EQ(looped.stamp(6).captured_mono_ns, 3 * half);
  EXPECT_FALSE(looped.reaches(8));
  const ReplayTimeline by_seq({{kMostSeq - 5, 0, 0}, {kMostSeq - 4, 10, 0}}, 25);
  EXPECT_TRUE(by_seq.reaches(5));
  EXPECT_FALSE(by_seq.reaches(6));
  const ReplayTimeline slow(1e-9);
  EXPECT_TRUE(slow.reaches(9));
  EXPECT_FALSE(slow.reaches(10));
}

TEST(RawFormats, AreFoundByTheNamesThatTheyHave) {
  for (const std::string& name : raw_format_names()) {
    const auto format = find_raw_format(name);
    ASSERT_TRUE(format) << name;
    EXPECT_EQ(name_of(format->format, format->order), name);
  }
  EXPECT_FALSE(find_raw_format("grey"));
  EXPECT_FALSE(find_raw_format(""));
  EXPECT_EQ(raw_format_names().size(), 30U);
}

TEST(RawFormats, TakeTheBytesThatTheirLayoutNeeds) {
  EXPECT_EQ(min_stride_bytes(RawFormat::kGrey, 7), 7U);
  EXPECT_EQ(min_stride_bytes(RawFormat::kYuyv, 7), 16U);
  EXPECT_EQ(min_stride_bytes(RawFormat::kRgb3, 7), 21U);
  EXPECT_EQ(min_stride_bytes(RawFormat::kBayer12, 7), 14U);
  EXPECT_EQ(frame_bytes(RawFormat::kGrey, 5, 8), 40U);
  EXPECT_EQ(frame_bytes(RawFormat::kNv12, 5, 8), 40U + 24U);
  EXPECT_EQ(frame_bytes(RawFormat::kYu12, 5, 8), 40U + 24U);
}

}  // namespace
}  // namespace patternd
