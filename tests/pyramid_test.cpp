#include "pipeline/pyramid.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace patternd {
namespace {

// A picture of noise, of all zeros or of all ones.
Image made_image(int width, int height, PixelFormat format, unsigned seed, int fill = -1) {
  auto image = Image::create(width, height, format);
  std::mt19937 random(seed);
  const auto bytes = static_cast<std::size_t>(width) * bytes_per_pixel(format);
  for (int y = 0; y < height; ++y) {
    for (std::size_t i = 0; i < bytes; ++i)
      image->view().row_bytes(y)[i] = static_cast<std::uint8_t>(fill >= 0 ? fill : random() & 0xFF);
  }
  return std::move(*image);
}

TEST(Pyramid, HalvesExactlyAsThePlainVersionOverEveryRemainder) {
  for (PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    for (int width = 2; width < 280; width += width < 140 ? 1 : 7) {
      for (int fill : {-1, 0, 255}) {
        SCOPED_TRACE(testing::Message() << name_of(format) << " width " << width << " seed 7");
        const Image in = made_image(width, 5, format, 7, fill);
        auto fast = Image::create(width / 2, 2, format);
        auto plain = Image::create(width / 2, 2, format);
        fast->fill_bytes(0xA5);
        plain->fill_bytes(0xA5);
        halve(in.view(), fast->view(), 0, 2);
        halve_reference(in.view(), plain->view(), 0, 2);
        for (int y = 0; y < 2; ++y) {
          // The padding is the canary: both must have left it alone.
          for (std::size_t i = 0; i < fast->view().stride_bytes; ++i)
            ASSERT_EQ(fast->view().row_bytes(y)[i], plain->view().row_bytes(y)[i]) << i;
        }
      }
    }
  }
}

TEST(Pyramid, RoundsHalvesUpAndDropsTheOddRowAndColumn) {
  auto image = Image::create(3, 3, PixelFormat::kGray8);
  const std::uint8_t pixels[3][3] = {{0, 1, 99}, {1, 0, 99}, {99, 99, 99}};
  for (int y = 0; y < 3; ++y) std::copy_n(pixels[y], 3, image->row<std::uint8_t>(y));
  auto pyramid = Pyramid::create(3, 3, PixelFormat::kGray8, 1);
  ASSERT_TRUE(pyramid);
  pyramid->build(image->view(), nullptr);
  EXPECT_EQ(pyramid->level(1).width, 1);
  EXPECT_EQ(pyramid->level(1).height, 1);
  EXPECT_EQ(pyramid->level(1).row<std::uint8_t>(0)[0], 1);
}

TEST(Pyramid, IsTheSameOnAnyNumberOfThreads) {
  const Image image = made_image(641, 479, PixelFormat::kGray8, 11);
  auto alone = Pyramid::create(641, 479, PixelFormat::kGray8, 4);
  auto together = Pyramid::create(641, 479, PixelFormat::kGray8, 4);
  ThreadPool pool(3);
  alone->build(image.view(), nullptr);
  together->build(image.view(), &pool);
  for (int l = 0; l <= 4; ++l) {
    const ImageView a = alone->level(l);
    const ImageView b = together->level(l);
    ASSERT_EQ(a.width, 641 >> l);
    ASSERT_EQ(a.height, 479 >> l);
    for (int y = 0; y < a.height; ++y)
      for (int x = 0; x < a.width; ++x)
        ASSERT_EQ(a.row<std::uint8_t>(y)[x], b.row<std::uint8_t>(y)[x]);
  }
}

// Levels are made in strips, several at a time: more levels than that, and heights that leave every
// remainder of a strip.
TEST(Pyramid, HasTheLevelsThatHalvingOneAfterTheOtherGives) {
  for (int height : {64, 65, 95, 97, 128, 131, 259}) {
    SCOPED_TRACE(testing::Message() << "height " << height << " seed 13");
    const Image image = made_image(203, height, PixelFormat::kGray8, 13);
    const int levels = deepest_level(203, height);
    auto pyramid = Pyramid::create(203, height, PixelFormat::kGray8, levels);
    ASSERT_TRUE(pyramid);
    pyramid->build(image.view(), nullptr);
    for (int l = 1; l <= levels; ++l) {
      auto plain = Image::create(203 >> l, height >> l, PixelFormat::kGray8);
      halve_reference(pyramid->level(l - 1), plain->view(), 0, height >> l);
      for (int y = 0; y < height >> l; ++y)
        for (int x = 0; x < 203 >> l; ++x)
          ASSERT_EQ(pyramid->level(l).row<std::uint8_t>(y)[x], plain->row<std::uint8_t>(y)[x])
              << "level " << l << " at " << x << ", " << y;
    }
  }
}

TEST(Pyramid, RefusesMoreLevelsThanThePictureHas) {
  EXPECT_TRUE(Pyramid::create(8, 100, PixelFormat::kGray8, 3));
  auto refused = Pyramid::create(8, 100, PixelFormat::kGray8, 4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "a picture of 8x100 has 0 to 3 pyramid levels above its own, not 4");
}

TEST(Pyramid, CoordinatesOfLevelsAreInverseToEachOther) {
  EXPECT_DOUBLE_EQ(level_coordinate(0.5, 1), 0.0);  // the middle of the first four pixels
  for (int level : {0, 1, 3})
    EXPECT_DOUBLE_EQ(level_coordinate(level0_coordinate(12.25, level), level), 12.25);
}

}  // namespace
}  // namespace patternd
