// The scene maker's arithmetic: portable functions, random numbers, the spline, exact coverage.
#include <array>
#include <cmath>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "tools/synth/board.h"
#include "tools/synth/coverage.h"
#include "tools/synth/portable_math.h"
#include "tools/synth/random.h"
#include "tools/synth/spline_picture.h"

namespace patternd::synth {
namespace {

constexpr double kPi = 3.141592653589793;

TEST(PortableMath, AgreesWithTheCLibrary) {
  // Farther out the comparison's own product, angle · π, is off by more than ours.
  for (int i = 0; i <= 972; ++i) {
    const double angle = -180 + 0.37 * i;
    const SinCos turn = sin_cos_deg(angle);
    EXPECT_NEAR(turn.sin, std::sin(angle * kPi / 180), 1e-15) << angle;
    EXPECT_NEAR(turn.cos, std::cos(angle * kPi / 180), 1e-15) << angle;
  }
  for (int i = 0; i < 132; ++i) {  // up to 1e9
    const double value = 1e-9 * std::pow(1.37, i);
    EXPECT_NEAR(natural_log(value), std::log(value), 1e-14 * (1 + std::abs(std::log(value))));
  }
  for (int i = 0; i < 143; ++i) {
    const double value = -50 + 0.7 * i;
    EXPECT_NEAR(exponential(value) / std::exp(value), 1, 1e-12) << value;
  }
}

TEST(PortableMath, TurnsByQuartersExactly) {
  for (const int quarter : {-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5}) {
    const SinCos turn = sin_cos_deg(90.0 * quarter);
    EXPECT_EQ(std::abs(turn.sin) + std::abs(turn.cos), 1) << quarter;
    EXPECT_EQ(turn.cos, std::round(std::cos(quarter * kPi / 2)));
  }
}

TEST(Random, GivesTheSameNumbersOnEveryMachine) {
  Random random(42, 3, 7);
  EXPECT_EQ(random.bits(), 0xfbfbe813677261e8U);
  EXPECT_EQ(random.bits(), 0xa43abce59c22e74eU);
  EXPECT_EQ(Random(42).gaussian(), Random(42).gaussian());
  EXPECT_NE(Random(42).bits(), Random(43).bits());
  EXPECT_NE(Random(42, 1).bits(), Random(42, 2).bits());
  EXPECT_NE(Random(42, 1, 1).bits(), Random(42, 1, 2).bits());
}

// Clang works out arguments from the left, GCC from the right.
TEST(Random, GivesTheSameBoardsWithEveryCompiler) {
  BoardFace face;
  face.columns = 9;
  face.rows = 6;
  face.square_mm = 30;
  Lens lens;
  lens.model = LensModel::kBrownConrady;
  lens.camera_matrix = {800, 0, 399.5, 0, 800, 299.5, 0, 0, 1};
  BoardOptions options;
  options.width = 800;
  options.height = 600;
  Random random(5);
  const auto pose = random_board_pose(face, lens, options, 35, random);
  ASSERT_TRUE(pose) << pose.error().message;
  const double expected[] = {0.9712562109745208, 0.2052277420131094, -0.1205941397897007,
                             -164.4203886069777, -27.8822593101622,  526.2433281301442};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(pose->rotation[i], expected[i], 1e-12);
    EXPECT_NEAR(pose->translation_mm[i], expected[i + 3], 1e-9);
  }
}

TEST(Random, DrawsNormalNumbersWithTheRightMoments) {
  SCOPED_TRACE("seed 5");
  Random random(5);
  constexpr int kCount = 400'000;
  std::array<double, 5> moment{};
  for (int i = 0; i < kCount; ++i) {
    const double value = random.gaussian();
    double power = 1;
    for (double& sum : moment) {
      sum += power / kCount;
      power *= value;
    }
  }
  EXPECT_NEAR(moment[1], 0, 0.01);
  EXPECT_NEAR(moment[2], 1, 0.01);
  EXPECT_NEAR(moment[3], 0, 0.02);
  EXPECT_NEAR(moment[4], 3, 0.05);
}

// A picture whose spline is tested: cos along x times a slope along y.
Image cosine_picture(int width, int height, double period) {
  Image picture = *Image::create(width, height, PixelFormat::kGrayF32);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x)
      picture.row<float>(y)[x] =
          static_cast<float>(128 + 50 * std::cos(2 * kPi * x / period) + 0.25 * y);
  }
  return picture;
}

TEST(SplinePicture, PassesThroughThePixels) {
  for (const auto& size : {std::pair{1, 1}, std::pair{2, 3}, std::pair{7, 5}, std::pair{40, 31}}) {
    const Image picture = cosine_picture(size.first, size.second, 9);
    const auto spline = SplinePicture::create(picture.view());
    ASSERT_TRUE(spline) << spline.error().message;
    for (int y = 0; y < size.second; ++y) {
      for (int x = 0; x < size.first; ++x) {
        EXPECT_NEAR(spline->value(x, y), static_cast<double>(picture.row<float>(y)[x]), 1e-4);
        EXPECT_NEAR(spline->sample(x, y).value, spline->value(x, y), 1e-9);
      }
    }
  }
}

TEST(SplinePicture, GivesTheDerivativesOfItsOwnValues) {
  const Image picture = cosine_picture(40, 31, 9);
  const auto spline = SplinePicture::create(picture.view());
  ASSERT_TRUE(spline);
  constexpr double kStep = 1e-3;
  for (int row = 0; row < 9; ++row) {
    for (int column = 0; column < 30; ++column) {
      const double x = 0.1 + 1.3 * column;
      const double y = 0.3 + 3.7 * row;
      const auto sample = spline->sample(x, y);
      EXPECT_NEAR(sample.dx,
                  (spline->value(x + kStep, y) - spline->value(x - kStep, y)) / (2 * kStep), 1e-3);
      EXPECT_NEAR(sample.dy,
                  (spline->value(x, y + kStep) - spline->value(x, y - kStep)) / (2 * kStep), 1e-3);
    }
  }
}

// Share of a parallelogram by counting 400×400 points.
double counted_share(double f, double a, double b) {
  constexpr int kSide = 400;
  int positive = 0;
  for (int i = 0; i < kSide; ++i) {
    for (int j = 0; j < kSide; ++j)
      positive += f + a * ((i + 0.5) / kSide - 0.5) + b * ((j + 0.5) / kSide - 0.5) > 0 ? 1 : 0;
  }
  return static_cast<double>(positive) / (kSide * kSide);
}

TEST(Coverage, IsTheExactShareOnThePositiveSideOfALine) {
  for (const auto& [a, b] :
       {std::pair{1.0, 0.0}, std::pair{1.0, 1.0}, std::pair{0.3, 0.9}, std::pair{1e-7, 0.25}}) {
    for (int i = 0; i <= 34; ++i) {
      const double f = -1.2 + 0.07 * i;
      EXPECT_NEAR(positive_share(f, a, b), counted_share(f, a, b), 0.004)
          << f << " " << a << " " << b;
    }
  }
  EXPECT_EQ(positive_share(0.1, 0, 0), 1);
  EXPECT_EQ(positive_share(-0.1, 0, 0), 0);
  EXPECT_DOUBLE_EQ(positive_share(0, 0.5, 0.5), 0.5);
}

}  // namespace
}  // namespace patternd::synth
