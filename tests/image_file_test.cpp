#include "pipeline/image_file.h"

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "pipeline/image_codec.h"
#include "pipeline/input_file.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

Image noise(int width, int height, PixelFormat format, unsigned seed) {
  std::mt19937 random(seed);
  auto image = Image::create(width, height, format).value();
  const std::size_t row = static_cast<std::size_t>(width) * bytes_per_pixel(format);
  for (int y = 0; y < height; ++y) {
    for (std::size_t i = 0; i < row; ++i) {
      image.view().row_bytes(y)[i] = static_cast<std::uint8_t>(random());
    }
  }
  return image;
}

bool same(const ImageView& a, const ImageView& b) {
  if (a.width != b.width || a.height != b.height || a.format != b.format) return false;
  const std::size_t row = static_cast<std::size_t>(a.width) * bytes_per_pixel(a.format);
  for (int y = 0; y < a.height; ++y) {
    if (!std::equal(a.row_bytes(y), a.row_bytes(y) + row, b.row_bytes(y))) return false;
  }
  return true;
}

Result<Image> decode(const std::string& content, ReadAs as = ReadAs::kAsIs) {
  return decode_image(reinterpret_cast<const std::uint8_t*>(content.data()), content.size(),
                      "picture", as);
}

TEST(ImageFile, GivesBackWhatWasWrittenInEachFormat) {
  const TemporaryFolder folder;
  for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16, PixelFormat::kRgb8}) {
    for (const auto& [width, height] : {std::pair{1, 1}, {7, 5}, {64, 3}, {641, 79}}) {
      const Image image = noise(width, height, format, 7);
      const char* pnm = format == PixelFormat::kRgb8 ? "a.ppm" : "a.pgm";
      for (const std::string name : {"a.png", pnm}) {
        SCOPED_TRACE(name + " " + name_of(format) + " " + std::to_string(width));
        ASSERT_TRUE(write_image(folder.file(name), image.view()));
        const auto back = read_image(folder.file(name), ReadAs::kAsIs);
        ASSERT_TRUE(back) << back.error().message;
        EXPECT_TRUE(same(back->view(), image.view()));
      }
      ASSERT_TRUE(write_plain_pnm(folder.file("plain.pnm"), image.view()));
      const auto back = read_image(folder.file("plain.pnm"), ReadAs::kAsIs);
      ASSERT_TRUE(back) << back.error().message;
      EXPECT_TRUE(same(back->view(), image.view()));
    }
  }
}

TEST(ImageFile, ReadsPlainTextWithCommentsAndScalesTheMaximum) {
  const auto gray = decode("P2 # a comment\n3 1\n# another\n15\n0 5 15\n");
  ASSERT_TRUE(gray) << gray.error().message;
  EXPECT_EQ(gray->row<std::uint8_t>(0)[0], 0);
  EXPECT_EQ(gray->row<std::uint8_t>(0)[1], 85);
  EXPECT_EQ(gray->row<std::uint8_t>(0)[2], 255);
  const auto bits = decode("P1\n4 1\n0110");
  ASSERT_TRUE(bits) << bits.error().message;
  EXPECT_EQ(bits->row<std::uint8_t>(0)[0], 255);
  EXPECT_EQ(bits->row<std::uint8_t>(0)[1], 0);
  const auto deep = decode("P2 2 1 1023 1023 512");
  ASSERT_TRUE(deep) << deep.error().message;
  EXPECT_EQ(deep->row<std::uint16_t>(0)[0], 65535);
}

TEST(ImageFile, MakesLumaOfColour) {
  const auto gray = decode("P3 3 1 255 255 0 0 0 255 0 0 0 255", ReadAs::kGray);
  ASSERT_TRUE(gray);
  EXPECT_EQ(gray->row<std::uint8_t>(0)[0], 77);
  EXPECT_EQ(gray->row<std::uint8_t>(0)[1], 149);
  EXPECT_EQ(gray->row<std::uint8_t>(0)[2], 29);
}

TEST(ImageFile, NamesWhatIsWrong) {
  const auto message = [](const std::string& content) { return decode(content).error().message; };
  EXPECT_THAT(message(""), HasSubstr("picture: is empty"));
  EXPECT_THAT(message("hello"), HasSubstr("is no picture; PNG, JPEG and PNM"));
  EXPECT_THAT(message("P2 3 2 255\n1 2 3 4"), HasSubstr("cut short in row 1"));
  EXPECT_THAT(message("P5 3 2 255\nabcd"), HasSubstr("cut short in row 1 of 2"));
  EXPECT_THAT(message("P2 2 1 255\n1 256"), HasSubstr("a number from 0 to 255"));
  EXPECT_THAT(message("P2 2 1 255\n1 -1"), HasSubstr("a number from 0 to 255"));
  EXPECT_THAT(message("P2 2 1 70000\n1 1"), HasSubstr("maximum value from 1 to 65535"));
  EXPECT_THAT(message("P5 2 x 255\n"), HasSubstr("width and height"));
  EXPECT_THAT(message("P5 99999 99999 255\n"), HasSubstr("cut short"));
  EXPECT_THAT(message("P5 0 5 255\n"), HasSubstr("both must be 1 to 32767"));
  EXPECT_THAT(read_image("/nonexistent/a.png").error().message,
              HasSubstr("/nonexistent/a.png: no such file"));
  EXPECT_THAT(read_image("/").error().message, HasSubstr("is a folder"));
}

TEST(ImageFile, SurvivesEveryCutAndManyFlippedBytes) {
  const Image image = noise(19, 11, PixelFormat::kGray16, 3);
  const auto png = encode_png(image.view()).value();
  for (std::size_t cut = 0; cut < png.size(); ++cut) {
    // The last chunk may be missing (libpng reads the pixels before it); nothing else may.
    const auto result = decode_image(png.data(), cut, "cut", ReadAs::kAsIs);
    if (cut + 12 < png.size()) {
      EXPECT_FALSE(result) << cut;
    }
  }
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    auto bad = png;
    bad[random() % bad.size()] = static_cast<std::uint8_t>(random());
    (void)decode_image(bad.data(), bad.size(), "flipped", ReadAs::kAsIs);
  }
}

TEST(ImageFile, ReadsRealPhotographs) {
  const std::string photo = test::opencv_sample("left01.jpg");
  if (photo.empty()) GTEST_SKIP() << "opencv-doc is not installed";
  const auto image = read_image(photo);
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->width(), 640);
  EXPECT_EQ(image->height(), 480);
  auto content = read_file(photo, 1 << 24).value();
  const auto cut = decode_image(content.data(), content.size() / 2, "cut.jpg", ReadAs::kGray);
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().message, HasSubstr("cut.jpg: is no good JPEG"));
}

TEST(ImageFile, LeavesTheOldFileWhereWritingFails) {
  const Image image = noise(5, 5, PixelFormat::kGrayF32, 1);
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("a.png"), "old"));
  EXPECT_FALSE(write_image(folder.file("a.png"), image.view()));
  const auto content = read_file(folder.file("a.png"), 100).value();
  EXPECT_EQ(std::string(content.begin(), content.end()), "old");
}

TEST(ImageFile, WritesWhereALinkLeadsAndIntoADeviceAsItIs) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_file(folder.file("target"), "old"));
  std::filesystem::create_symlink("target", folder.file("link"));
  ASSERT_TRUE(write_file(folder.file("link"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  const auto content = read_file(folder.file("target"), 100).value();
  EXPECT_EQ(std::string(content.begin(), content.end()), "new");
  std::filesystem::create_symlink("/dev/null", folder.file("null"));
  ASSERT_TRUE(write_file(folder.file("null"), "gone"));
  EXPECT_TRUE(std::filesystem::is_character_file(folder.file("null")));
  std::filesystem::create_symlink("/dev/full", folder.file("full"));
  EXPECT_FALSE(write_file(folder.file("full"), "no room"));
}

}  // namespace
}  // namespace patternd
