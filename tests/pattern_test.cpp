#include "pipeline/pattern.h"

#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/image_file.h"
#include "pipeline/pattern_calibration.h"
#include "tests/support/match_scene.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using testing::HasSubstr;

std::string refusal(const ImageView& picture, const ImageView& mask = {},
                    const TeachOptions& options = {}) {
  auto pattern = teach_pattern("bolt", picture, mask, options);
  return pattern ? "taught" : pattern.error().message;
}

Image stripes(int width, int height, double period, double angle_deg) {
  auto image = Image::create(width, height, PixelFormat::kGray8);
  const double c = std::cos(angle_deg * 3.14159265 / 180);
  const double s = std::sin(angle_deg * 3.14159265 / 180);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      image->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
          std::lround(128 + 80 * std::sin((c * x + s * y) * 6.2831853 / period)));
  return std::move(*image);
}

TEST(TeachPattern, ChoosesLevelsThatKeepEnoughPixelsAndTheStepThatMovesTheFarthestByOne) {
  const auto pattern = teach_pattern("bolt", test::made_texture(128, 128, 3).view(), {}, {});
  ASSERT_TRUE(pattern);
  EXPECT_GE(pattern->levels, 2);
  EXPECT_LE(pattern->levels, 4);
  const double radius = std::hypot(63.5, 63.5) / (1 << pattern->levels);
  EXPECT_NEAR(pattern->angle_step_deg * radius * 3.14159265 / 180, 1, 0.15);
  EXPECT_DOUBLE_EQ(pattern->ref_x, 63.5);
  EXPECT_FALSE(pattern->round);
  EXPECT_GT(pattern->contrast, 10);
}

TEST(TeachPattern, RefusesWhatCannotBeFound) {
  auto flat = Image::create(64, 64, PixelFormat::kGray8);
  flat->fill_bytes(90);
  EXPECT_THAT(refusal(flat->view()), HasSubstr("pattern bolt: flat, its contrast is 0"));
  EXPECT_THAT(refusal(test::made_texture(64, 7, 3).view()), HasSubstr("size is 64x7"));
  EXPECT_THAT(refusal(stripes(96, 64, 24, 0).view()), HasSubstr("one direction only"));
  EXPECT_THAT(refusal(stripes(96, 64, 17, 30).view()), HasSubstr("one direction only"));
  EXPECT_THAT(refusal({}), HasSubstr("no pixel data"));
}

TEST(TeachPattern, RefusesMasksThatDoNotFitOrLeaveTooLittle) {
  const Image picture = test::made_texture(64, 64, 3);
  auto mask = Image::create(63, 64, PixelFormat::kGray8);
  mask->fill_bytes(255);
  EXPECT_THAT(refusal(picture.view(), mask->view()), HasSubstr("mask is 63x64"));
  auto empty = Image::create(64, 64, PixelFormat::kGray8);
  empty->fill_bytes(0);
  empty->row<std::uint8_t>(3)[3] = 1;
  EXPECT_THAT(refusal(picture.view(), empty->view()), HasSubstr("leaves 1 pixels"));
}

TEST(TeachPattern, TakesLevelsAndStepByHandWithinRange) {
  const Image picture = test::made_texture(64, 64, 3);
  TeachOptions options;
  options.levels = 1;
  options.angle_step_deg = 3;
  const auto pattern = teach_pattern("bolt", picture.view(), {}, options);
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->levels, 1);
  EXPECT_DOUBLE_EQ(pattern->angle_step_deg, 3);
  options.levels = 9;
  EXPECT_THAT(refusal(picture.view(), {}, options), HasSubstr("levels 9"));
  options.levels = 1;
  options.angle_step_deg = 0;
  EXPECT_THAT(refusal(picture.view(), {}, options), HasSubstr("angle step 0"));
}

TEST(PatternFile, ComesBackAsItWasSaved) {
  const test::TemporaryFolder folder;
  const Image picture = test::made_texture(64, 48, 3, PixelFormat::kGray16);
  auto mask = Image::create(64, 48, PixelFormat::kGray8);
  mask->fill_bytes(255);
  for (int x = 0; x < 64; ++x) mask->row<std::uint8_t>(7)[x] = 0;
  TeachOptions options;
  options.ref_x = -3.25;
  options.ref_y = 12;
  options.calibration = "odd \"name\".yaml";
  const auto taught = teach_pattern("bolt", picture.view(), mask->view(), options);
  ASSERT_TRUE(taught);
  const std::string path = folder.file("bolt.yaml");
  ASSERT_TRUE(save_pattern(path, *taught));
  const auto loaded = load_pattern(path, "other");
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->name, "other");
  EXPECT_EQ(loaded->ref_x, -3.25);
  EXPECT_EQ(loaded->ref_y, 12);
  EXPECT_EQ(loaded->levels, taught->levels);
  EXPECT_NEAR(loaded->angle_step_deg, taught->angle_step_deg, 1e-8);
  EXPECT_EQ(loaded->calibration, options.calibration);
  EXPECT_EQ(loaded->contrast, taught->contrast);
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 64; ++x) {
      ASSERT_EQ(loaded->picture.row<std::uint16_t>(y)[x], picture.row<std::uint16_t>(y)[x]);
      ASSERT_EQ(loaded->mask.row<std::uint8_t>(y)[x], mask->row<std::uint8_t>(y)[x]);
    }
  }
}

TEST(PatternFile, IsReadStrictly) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_image(folder.file("p.png"), test::made_texture(64, 48, 3).view()));
  const auto message = [&](const std::string& text) {
    std::ofstream(folder.file("p.yaml")) << text;
    const auto loaded = load_pattern(folder.file("p.yaml"), "p");
    return loaded ? std::string("loaded") : loaded.error().message;
  };
  EXPECT_EQ(message("picture: p.png\n"), "loaded");
  EXPECT_THAT(message("picture: p.png\nlevel: 3\n"), HasSubstr("did you mean levels"));
  EXPECT_THAT(message("levels: 3\n"), HasSubstr("picture"));
  EXPECT_THAT(message("picture: p.png\nreference_px: [1]\n"), HasSubstr("reference_px"));
  EXPECT_THAT(message("picture: p.png\nangle_step_deg: -1\n"), HasSubstr("angle_step_deg"));
  EXPECT_THAT(message("picture: gone.png\n"), HasSubstr("gone.png"));
  EXPECT_THAT(message("picture: [1, 2\n"), HasSubstr("p.yaml"));
}

TEST(PatternFile, SaysWhereItIsSearchedWithAnotherCalibrationThanItWasTaughtWith) {
  const test::TemporaryFolder folder;
  const std::string camera = folder.file("camera.yaml");
  const std::string copy = folder.file("copy.yaml");
  const std::string other = folder.file("other.yaml");
  ASSERT_TRUE(write_file(camera, "a"));
  ASSERT_TRUE(write_file(copy, "a"));
  ASSERT_TRUE(write_file(other, "b"));
  Pattern pattern;
  pattern.name = "bolt";
  const std::string file = folder.file("bolt.yaml");
  EXPECT_EQ(other_calibration(pattern, file, ""), "");
  EXPECT_EQ(other_calibration(pattern, file, camera), "");
  pattern.calibration = "./camera.yaml";  // counted from the pattern's file
  EXPECT_EQ(other_calibration(pattern, file, camera), "");
  EXPECT_EQ(other_calibration(pattern, file, copy), "");
  const std::string taught = "pattern bolt was taught with calibration " + camera;
  EXPECT_THAT(other_calibration(pattern, file, ""),
              testing::StartsWith(taught + ", but is searched without one; its size"));
  EXPECT_THAT(other_calibration(pattern, file, other),
              testing::StartsWith(taught + ", but is searched with " + other + "; its size"));
  // The folder it was taught in is not here: the name is all that is left.
  pattern.calibration = "/nowhere/camera.yaml";
  EXPECT_EQ(other_calibration(pattern, file, camera), "");
  EXPECT_NE(other_calibration(pattern, file, other), "");
}

TEST(PatternFile, MayBeAPlainPicture) {
  const test::TemporaryFolder folder;
  ASSERT_TRUE(write_image(folder.file("p.png"), test::made_texture(64, 48, 3).view()));
  const auto loaded = load_pattern(folder.file("p.png"), "p");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->picture.width(), 64);
  EXPECT_FALSE(load_pattern(folder.file("none.png"), "p"));
}

}  // namespace
}  // namespace patternd
