#include "pipeline/sources/recording.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/image_file.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

Image gray(int width, int height, PixelFormat format = PixelFormat::kGray8) {
  auto image = Image::create(width, height, format);
  image->fill_bytes(0x5a);
  return std::move(*image);
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string kLine1 =
    "{\"seq\":1,\"captured_mono_ns\":100,\"captured_at\":\"2026-01-31T12:00:00.000001Z\"}\n";
const std::string kLine2 =
    "{\"seq\":3,\"captured_mono_ns\":200,\"captured_at\":\"2026-01-31T12:00:00.000002Z\"}\n";

TEST(RecordingWriter, WritesNumberedPicturesAndTheirStamps) {
  for (const RecordingFormat kind : {RecordingFormat::kPgm, RecordingFormat::kPng}) {
    const std::string ending = kind == RecordingFormat::kPgm ? ".pgm" : ".png";
    const test::TemporaryFolder folder;
    const std::string path = folder.file("new/recording");
    auto writer = RecordingWriter::create(path, kind);
    ASSERT_TRUE(writer) << writer.error().message;
    Image picture = gray(5, 3, PixelFormat::kGray16);
    picture.row<std::uint16_t>(2)[4] = 54321;
    ASSERT_TRUE(writer->write(picture.view(), {1, 100, 1'769'860'800'000'001'000}));
    ASSERT_TRUE(writer->write(picture.view(), {3, 200, 1'769'860'800'000'002'000}));
    ASSERT_TRUE(writer->finish());
    EXPECT_EQ(writer->frame_count(), 2U);
    EXPECT_EQ(read_text(path + "/index.jsonl"), kLine1 + kLine2);
    const auto read = read_image(std::string(path).append("/00000001").append(ending));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(read->format(), PixelFormat::kGray16);
    EXPECT_EQ(read->row<std::uint16_t>(2)[4], 54321);
    EXPECT_EQ(read->row<std::uint16_t>(0)[0], 0x5a5a);
  }
}

TEST(RecordingWriter, RefusesAFolderThatHoldsAnything) {
  const test::TemporaryFolder folder;
  write_text(folder.file("notes.txt"), "mine");
  const auto writer = RecordingWriter::create(folder.path(), RecordingFormat::kPgm);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer.error().message,
            folder.path() + ": the folder is not empty; a recording needs a new or an empty one");
}

TEST(RecordingWriter, SaysWhereAFolderCannotBeMade) {
  const test::TemporaryFolder folder;
  write_text(folder.file("file"), "");
  const auto writer = RecordingWriter::create(folder.file("file/below"), RecordingFormat::kPgm);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().code, ErrorCode::kIo);
  EXPECT_THAT(writer.error().message, HasSubstr("file/below: the folder cannot be made"));
}

TEST(RecordingWriter, RefusesFramesThatDoNotFitAndKeepsTheRecordingSound) {
  const test::TemporaryFolder folder;
  auto writer = RecordingWriter::create(folder.path(), RecordingFormat::kPgm);
  ASSERT_TRUE(writer);
  ASSERT_TRUE(writer->write(gray(8, 8).view(), {5, 500, 0}));
  const auto refused = [&](const Image& image, const FrameStamp& stamp) {
    const auto outcome = writer->write(image.view(), stamp);
    return outcome ? std::string("accepted") : outcome.error().message;
  };
  EXPECT_THAT(refused(gray(8, 7), {6, 600, 0}),
              HasSubstr("frame 1 is 8x7 gray8, the first frame 8x8 gray8; all must agree"));
  EXPECT_THAT(refused(gray(8, 8, PixelFormat::kGray16), {6, 600, 0}), HasSubstr("8x8 gray16"));
  EXPECT_THAT(refused(gray(8, 8, PixelFormat::kRgb8), {6, 600, 0}),
              HasSubstr("recordings hold gray8 or gray16"));
  EXPECT_THAT(refused(gray(8, 8), {5, 600, 0}), HasSubstr("both must rise"));
  EXPECT_THAT(refused(gray(8, 8), {6, 500, 0}), HasSubstr("both must rise"));
  ASSERT_TRUE(writer->write(gray(8, 8).view(), {6, 501, 0}));
  const auto index = read_recording_index(folder.path());
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_EQ(index->stamps.size(), 2U);
  EXPECT_TRUE(std::filesystem::exists(folder.file("00000001.pgm")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("00000002.pgm")));
}

TEST(RecordingWriter, ReportsAFrameThatCannotBeWritten) {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("recording");
  auto writer = RecordingWriter::create(path, RecordingFormat::kPgm);
  ASSERT_TRUE(writer);
  std::filesystem::remove_all(path);
  EXPECT_FALSE(writer->write(gray(8, 8).view(), {1, 100, 0}));
  EXPECT_EQ(writer->frame_count(), 0U);
}

TEST(RecordingIndex, ReadsItsLinesAndIgnoresFurtherKeys) {
  const test::TemporaryFolder folder;
  write_text(folder.file("index.jsonl"),
             kLine1 +
                 "{\"captured_at\":\"2026-01-31T12:00:01Z\",\"truth\":[1,2],\"seq\":9,"
                 "\"captured_mono_ns\":300}\n");
  const auto index = read_recording_index(folder.path());
  ASSERT_TRUE(index) << index.error().message;
  ASSERT_EQ(index->stamps.size(), 2U);
  EXPECT_EQ(index->stamps[0].seq, 1U);
  EXPECT_EQ(index->stamps[0].captured_mono_ns, 100);
  EXPECT_EQ(index->stamps[0].captured_unix_ns, 1'769'860'800'000'001'000);
  EXPECT_EQ(index->stamps[1].seq, 9U);
  EXPECT_FALSE(index->cut);
}

TEST(RecordingIndex, LeavesOutALastLineThatWasCutShort) {
  for (const std::size_t kept : {1U, 20U, 70U}) {
    const test::TemporaryFolder folder;
    write_text(folder.file("index.jsonl"), kLine1 + kLine2.substr(0, kept));
    const auto index = read_recording_index(folder.path());
    ASSERT_TRUE(index) << index.error().message;
    EXPECT_EQ(index->stamps.size(), 1U);
    EXPECT_TRUE(index->cut);
  }
}

TEST(RecordingIndex, NamesTheLineAndWhatIsWrongWithIt) {
  const struct {
    std::string line;
    std::string message;
  } kCases[] = {
      {"\n", "not valid JSON"},
      {"{\"seq\":5\n", "not valid JSON"},
      {"[5]\n", "not an object"},
      {"{\"captured_mono_ns\":200,\"captured_at\":\"2026-01-31T12:00:00Z\"}\n", "seq is missing"},
      {"{\"seq\":-5,\"captured_mono_ns\":200,\"captured_at\":\"2026-01-31T12:00:00Z\"}\n",
       "seq is -5"},
      {"{\"seq\":5.5,\"captured_mono_ns\":200,\"captured_at\":\"2026-01-31T12:00:00Z\"}\n",
       "seq is 5.5"},
      {"{\"seq\":18446744073709551615,\"captured_mono_ns\":200}\n", "seq is 18446744073709551615"},
      {"{\"seq\":9007199254740993,\"captured_mono_ns\":200}\n", "seq is 9007199254740993"},
      {"{\"seq\":5,\"captured_mono_ns\":9000000000000000001}\n",
       "captured_mono_ns is 9000000000000000001"},
      {"{\"seq\":5,\"captured_mono_ns\":200,\"captured_at\":\"2256-01-31T12:00:00Z\"}\n",
       "captured_at is no UTC time"},
      {"{\"seq\":5,\"captured_at\":\"2026-01-31T12:00:00Z\"}\n", "captured_mono_ns is missing"},
      {"{\"seq\":5,\"captured_mono_ns\":\"200\"}\n", "captured_mono_ns is \"200\""},
      {"{\"seq\":\"" + std::string(38, 'x') + "\xc3\xa9\"}\n", "seq is \"" + std::string(38, 'x')},
      {"{\"seq\":5,\"captured_mono_ns\":200}\n", "captured_at is missing"},
      {"{\"seq\":5,\"captured_mono_ns\":200,\"captured_at\":17}\n", "captured_at is no UTC time"},
      {"{\"seq\":5,\"captured_mono_ns\":200,\"captured_at\":\"yesterday\"}\n",
       "captured_at is no UTC time"},
      {kLine1, "seq 1 does not rise above 1 of the line before"},
      {"{\"seq\":5,\"captured_mono_ns\":99,\"captured_at\":\"2026-01-31T12:00:00Z\"}\n",
       "captured_mono_ns 99 does not rise above 100 of the line before"},
      {"\xff\xfe\n", "not valid JSON"},
      {std::string(70000, ' ') + "\n", "longer than 65536 bytes"},
  };
  for (const auto& c : kCases) {
    const test::TemporaryFolder folder;
    write_text(folder.file("index.jsonl"), std::string(kLine1).append(c.line).append(kLine2));
    const auto index = read_recording_index(folder.path());
    ASSERT_FALSE(index) << c.line;
    EXPECT_EQ(index.error().code, ErrorCode::kParse);
    EXPECT_THAT(index.error().message, HasSubstr("/index.jsonl:2: " + c.message + "; "));
  }
}

TEST(RecordingIndex, RefusesOneWithoutACompleteLine) {
  const test::TemporaryFolder folder;
  write_text(folder.file("index.jsonl"), "{\"seq\":1");
  const auto index = read_recording_index(folder.path());
  ASSERT_FALSE(index);
  EXPECT_THAT(index.error().message, HasSubstr("/index.jsonl: holds no complete line"));
}

TEST(RecordingIndex, IsNotFoundWhereThereIsNone) {
  const test::TemporaryFolder folder;
  const auto index = read_recording_index(folder.path());
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace patternd
