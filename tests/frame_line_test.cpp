// Frames as lines and back.
#include "daemon/frame_line.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <sstream>

#include "daemon/base64.h"
#include "daemon/line_writer.h"
#include "daemon/result_line.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

std::string base64(const std::string& bytes) {
  std::string text;
  append_base64(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), text);
  return text;
}

TEST(Base64, WritesTheStandardsExamples) {
  // RFC 4648, section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, ReadsBackWhatItWrote) {
  const unsigned seed = 8;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (std::size_t size = 0; size < 70; ++size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() & 255);
    std::vector<std::uint8_t> read = {7};
    ASSERT_TRUE(decode_base64(base64(bytes), read));
    EXPECT_EQ(std::string(read.begin() + 1, read.end()), bytes);
  }
}

TEST(Base64, RefusesWhatIsNone) {
  std::vector<std::uint8_t> read = {7};
  for (const char* text : {"A", "AA", "AAA", "AA!A", "====", "A===", "AA=A", "AAAA=", "ÄÄ"}) {
    SCOPED_TRACE(text);
    EXPECT_FALSE(decode_base64(text, read));
    EXPECT_EQ(read, std::vector<std::uint8_t>{7});
  }
}

Image noise(int width, int height, PixelFormat format) {
  std::mt19937 random(3);
  Image image = Image::create(width, height, format).value();
  const std::size_t row = static_cast<std::size_t>(width) * bytes_per_pixel(format);
  for (int y = 0; y < height; ++y) {
    for (std::size_t i = 0; i < row; ++i)
      image.view().row_bytes(y)[i] = static_cast<std::uint8_t>(random() & 255);
  }
  return image;
}

const FrameStamp kStamp{42, 1'234'567'890, 1'769'860'800'123'456'000};

std::vector<Json> lines_of(const ImageView& luma) {
  std::istringstream text(frame_lines(luma, kStamp, 3));
  std::vector<Json> lines;
  for (std::string line; std::getline(text, line);) {
    EXPECT_LT(line.size(), kMaxLineBytes);
    lines.push_back(Json::parse(line));
  }
  return lines;
}

TEST(FrameLine, BringsEveryPixelAndStampOver) {
  const struct {
    int width, height;
    PixelFormat format;
    std::size_t parts;
  } cases[] = {{1, 1, PixelFormat::kGray8, 1},      {7, 5, PixelFormat::kGray16, 1},
               {641, 479, PixelFormat::kGray8, 1},  {1024, 720, PixelFormat::kGray8, 1},
               {1025, 720, PixelFormat::kGray8, 2}, {1280, 1024, PixelFormat::kGray16, 4}};
  for (const auto& each : cases) {
    SCOPED_TRACE(each.width);
    const Image image = noise(each.width, each.height, each.format);
    const std::vector<Json> lines = lines_of(image.view());
    ASSERT_EQ(lines.size(), each.parts);
    FrameAssembler assembler;
    for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
      const auto part = assembler.take(lines[i]);
      ASSERT_TRUE(part && !*part);
    }
    const auto frame = assembler.take(lines.back());
    ASSERT_TRUE(frame) << frame.error().message;
    ASSERT_TRUE(*frame);
    EXPECT_EQ((*frame)->stamp.seq, kStamp.seq);
    EXPECT_EQ((*frame)->stamp.captured_mono_ns, kStamp.captured_mono_ns);
    EXPECT_EQ((*frame)->stamp.captured_unix_ns, kStamp.captured_unix_ns);
    EXPECT_EQ((*frame)->dropped, 3U);
    const Image& luma = (*frame)->luma;
    ASSERT_EQ(luma.width(), each.width);
    ASSERT_EQ(luma.height(), each.height);
    ASSERT_EQ(luma.format(), each.format);
    const std::size_t row = static_cast<std::size_t>(each.width) * bytes_per_pixel(each.format);
    for (int y = 0; y < each.height; ++y)
      ASSERT_EQ(std::memcmp(luma.view().row_bytes(y), image.view().row_bytes(y), row), 0);
  }
}

TEST(FrameLine, RefusesLinesThatDoNotBelongTogether) {
  const Image image = noise(1280, 1024, PixelFormat::kGray8);
  const std::vector<Json> lines = lines_of(image.view());
  ASSERT_EQ(lines.size(), 2U);
  const auto message = [](FrameAssembler& assembler, const Json& line) {
    const auto taken = assembler.take(line);
    return taken ? std::string("taken") : taken.error().message;
  };
  FrameAssembler assembler;
  EXPECT_THAT(message(assembler, lines[1]), HasSubstr("part 1 of 2 where part 0 must follow"));
  ASSERT_TRUE(assembler.take(lines[0]));
  Json other = lines[1];
  other["height"] = 1023;
  EXPECT_THAT(message(assembler, other), HasSubstr("says 1280x1023 gray8 and brings 1310720"));
  EXPECT_THAT(message(assembler, lines[1]), HasSubstr("part 0 must follow"));
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, Json>>{{"data", "?"},
                                                 {"width", -1280},
                                                 {"width", "wide"},
                                                 {"format", "rgb8"},
                                                 {"captured_at", "yesterday"},
                                                 {"seq", nullptr}}) {
    SCOPED_TRACE(key);
    ASSERT_TRUE(assembler.take(lines[0]));
    Json wrong = lines[1];
    wrong[key] = value;
    EXPECT_THAT(message(assembler, wrong), HasSubstr("a frame line "));
  }
  ASSERT_TRUE(assembler.take(lines[0]));
  EXPECT_TRUE(assembler.take(lines[1])->has_value()) << "a good frame after bad ones";
}

}  // namespace
}  // namespace patternd
