#include "pipeline/blob_stage.h"

#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patternd {
namespace {

// A picture of one grey level, with spots of 3×3 pixels at 250.
Image picture(int width, int height, std::uint8_t level,
              const std::vector<std::pair<int, int>>& spots) {
  auto image = Image::create(width, height, PixelFormat::kGray8).value();
  image.fill_bytes(level);
  for (const auto& [x, y] : spots) {
    for (int dy = -1; dy <= 1; ++dy) std::memset(image.row<std::uint8_t>(y + dy) + x - 1, 250, 3);
  }
  return image;
}

BlobParams with_reference(BlobParams::Reference reference) {
  BlobParams params;
  params.threshold = 100;
  params.reference = reference;
  return params;
}

TEST(BlobStage, FindsSpotsLargestFirstAndCountsThemAll) {
  BlobParams params;
  params.max_blobs = 1;
  auto stage = BlobStage::create(65, 33, PixelFormat::kGray8, params, {}, nullptr);
  ASSERT_TRUE(stage) << stage.error().message;
  Image scene = picture(65, 33, 10, {{5, 6}, {40, 20}});
  scene.row<std::uint8_t>(20)[42] = 250;  // the second spot has ten pixels
  std::vector<Blob> blobs;
  std::uint64_t total = 0;
  ASSERT_TRUE(stage->process(scene.view(), blobs, total));
  EXPECT_EQ(total, 2U);
  ASSERT_EQ(blobs.size(), 1U);
  EXPECT_EQ(blobs[0].area_px, 10);
}

TEST(BlobStage, SubtractsTheDarkFrame) {
  const Image dark = picture(71, 40, 30, {{50, 30}});  // a lamp that always shines
  auto stage =
      BlobStage::create(71, 40, PixelFormat::kGray8, with_reference(BlobParams::Reference::kDark),
                        dark.view(), nullptr);
  ASSERT_TRUE(stage) << stage.error().message;
  std::vector<Blob> blobs;
  std::uint64_t total = 0;
  ASSERT_TRUE(stage->process(picture(71, 40, 30, {{50, 30}, {10, 11}}).view(), blobs, total));
  ASSERT_EQ(blobs.size(), 1U);
  EXPECT_DOUBLE_EQ(blobs[0].x_px, 10);
  EXPECT_DOUBLE_EQ(blobs[0].y_px, 11);
}

TEST(BlobStage, RefusesADarkFrameOfAnotherSize) {
  const Image dark = picture(70, 40, 30, {});
  const auto stage =
      BlobStage::create(71, 40, PixelFormat::kGray8, with_reference(BlobParams::Reference::kDark),
                        dark.view(), nullptr);
  ASSERT_FALSE(stage);
  EXPECT_THAT(stage.error().message,
              ::testing::HasSubstr("70x40 gray8; the frames are 71x40 gray8"));
}

// Frames by turns with and without the light, and the stage that subtracts each from the next.
struct Alternating {
  Result<BlobStage> stage = BlobStage::create(
      71, 40, PixelFormat::kGray8, with_reference(BlobParams::Reference::kAlternate), {}, nullptr);
  Image unlit = picture(71, 40, 30, {{50, 30}});
  Image lit = picture(71, 40, 30, {{50, 30}, {10, 11}});
  std::vector<Blob> blobs;
  std::uint64_t total = 0;

  [[nodiscard]] bool process(const Image& frame) {
    return stage->process(frame.view(), blobs, total).has_value();
  }
};

TEST(BlobStage, ShowsWithAlternatingLightOnlyWhatTheLitFrameShows) {
  Alternating light;
  ASSERT_TRUE(light.stage) << light.stage.error().message;
  ASSERT_TRUE(light.process(light.lit));
  EXPECT_TRUE(light.blobs.empty()) << "the first frame has nothing before it";
  ASSERT_TRUE(light.process(light.unlit));
  EXPECT_TRUE(light.blobs.empty());
  ASSERT_TRUE(light.process(light.lit));
  ASSERT_EQ(light.blobs.size(), 1U);
  EXPECT_DOUBLE_EQ(light.blobs[0].x_px, 10);
}

TEST(BlobStage, HasNothingToSubtractOnceAnotherHadTheFrameBefore) {
  Alternating light;
  ASSERT_TRUE(light.stage) << light.stage.error().message;
  ASSERT_TRUE(light.process(light.unlit));
  light.stage->restart();
  ASSERT_TRUE(light.process(light.lit));
  EXPECT_TRUE(light.blobs.empty());
  ASSERT_TRUE(light.process(light.unlit));
  ASSERT_TRUE(light.process(light.lit));
  EXPECT_EQ(light.blobs.size(), 1U);
}

TEST(BlobStage, SubtractsEveryWidthAndDepthWithoutGoingBelowZero) {
  for (int width = 1; width <= 70; ++width) {
    for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
      auto a = Image::create(width, 3, format).value();
      auto b = Image::create(width, 3, format).value();
      auto out = Image::create(width, 3, format).value();
      const auto row = static_cast<std::size_t>(width) * bytes_per_pixel(format);
      for (int y = 0; y < 3; ++y) {
        for (std::size_t i = 0; i < row; ++i) {
          a.view().row_bytes(y)[i] = static_cast<std::uint8_t>(i * 37 + 11);
          b.view().row_bytes(y)[i] = static_cast<std::uint8_t>(i * 91 + 5);
        }
      }
      subtract_saturated(a.view(), b, out);
      for (int y = 0; y < 3; ++y) {
        for (int x = 0; x < width; ++x) {
          const bool deep = format == PixelFormat::kGray16;
          const int left = deep ? a.row<std::uint16_t>(y)[x] : a.row<std::uint8_t>(y)[x];
          const int right = deep ? b.row<std::uint16_t>(y)[x] : b.row<std::uint8_t>(y)[x];
          const int got = deep ? out.row<std::uint16_t>(y)[x] : out.row<std::uint8_t>(y)[x];
          ASSERT_EQ(got, std::max(left - right, 0)) << "width " << width << " x " << x;
        }
      }
    }
  }
}

}  // namespace
}  // namespace patternd
