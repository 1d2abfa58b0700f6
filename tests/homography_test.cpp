// Homographies from point pairs: exact, least squares, with outliers, and what is refused.
#include "calibration/homography.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace patternd {
namespace {

using ::testing::HasSubstr;

constexpr Matrix3 kTruth = {3.1, 0.4, 200, -0.2, 2.7, 150, 2e-4, 1.5e-3, 1};

std::vector<PointPair> grid(int columns, int rows, double noise, std::mt19937& random) {
  std::normal_distribution<double> error(0, noise);
  std::vector<PointPair> pairs;
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      const Point2 from{x * 200.0 / (columns - 1), y * 150.0 / (rows - 1)};
      Point2 to = apply(kTruth, from).value();
      if (noise > 0) to = {to.x + error(random), to.y + error(random)};
      pairs.push_back({from, to});
    }
  }
  return pairs;
}

double worst(const Matrix3& h) {
  double most = 0;
  for (double y = 0; y <= 150; y += 10) {
    for (double x = 0; x <= 200; x += 10) {
      const Point2 a = apply(h, {x, y}).value();
      const Point2 b = apply(kTruth, {x, y}).value();
      most = std::max(most, std::hypot(a.x - b.x, a.y - b.y));
    }
  }
  return most;
}

TEST(Homography, PassesThroughFourPointsExactly) {
  std::mt19937 random(1);
  const auto fit = fit_homography(grid(2, 2, 0, random));
  ASSERT_TRUE(fit) << fit.error().message;
  EXPECT_LT(worst(fit->homography), 1e-8);
  EXPECT_NEAR(fit->homography[8], 1, 1e-12);
}

TEST(Homography, AveragesNoiseOverManyPoints) {
  std::mt19937 random(2);
  const auto fit = fit_homography(grid(9, 6, 0.1, random));
  ASSERT_TRUE(fit);
  EXPECT_LT(worst(fit->homography), 0.15);
  EXPECT_NEAR(fit->rms, 0.1 * std::sqrt(2.0), 0.03);
}

TEST(Homography, LeavesOutliersOut) {
  const unsigned seed = 3;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const int columns : {3, 8}) {
    std::vector<PointPair> pairs = grid(columns, 3, 0.05, random);
    pairs[1].to = {pairs[1].to.x + 40, pairs[1].to.y};
    pairs[5].to = {pairs[5].to.x, pairs[5].to.y - 25};
    const auto fit = fit_homography_robust(pairs, 0.5);
    ASSERT_TRUE(fit) << fit.error().message;
    EXPECT_LT(worst(fit->homography), 0.6);
    EXPECT_FALSE(fit->used[1]);
    EXPECT_FALSE(fit->used[5]);
    EXPECT_NEAR(fit->distances[1], 40, 1);
  }
}

TEST(Homography, RefusesWhatDoesNotDetermineAPlane) {
  std::mt19937 random(4);
  std::vector<PointPair> pairs = grid(2, 2, 0, random);
  pairs.pop_back();
  EXPECT_THAT(fit_homography(pairs).error().message,
              HasSubstr("3 pairs of points; a plane needs at least 4"));
  std::vector<PointPair> line;
  line.reserve(6);
  for (int i = 0; i < 6; ++i) line.push_back({{i * 10.0, i * 20.0}, {i * 5.0, i * 3.0 + i * i}});
  EXPECT_THAT(fit_homography(line).error().message,
              HasSubstr("the points lie nearly on a line on the plane"));
  pairs = grid(2, 2, 0, random);
  pairs[3].from = {100, 0};  // on the line of the first two
  EXPECT_THAT(fit_homography(pairs).error().message, HasSubstr("three of the four points"));
  pairs = grid(2, 2, 0, random);
  std::swap(pairs[0].to, pairs[1].to);  // crossed
  EXPECT_THAT(fit_homography(pairs).error().message, HasSubstr("check their order"));
}

}  // namespace
}  // namespace patternd
