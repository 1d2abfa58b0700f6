#include "pipeline/drift_watch.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace patternd {
namespace {

FiducialParams two_fiducials() { return {{1, 0}, {{0, 0}, {200, 0}}, 0.5, 10}; }

Match seen(int pattern, double x_mm, double y_mm, double score = 0.9) {
  Match match;
  match.pattern = pattern;
  match.score = score;
  match.has_mm = true;
  match.x_mm = x_mm;
  match.y_mm = y_mm;
  return match;
}

// Feeds the same matches for `comparisons` comparisons; how often the state changed.
int feed(DriftWatch& watch, const std::vector<Match>& matches, int comparisons) {
  int changes = 0;
  for (int i = 0; i < comparisons * two_fiducials().every; ++i)
    changes += watch.feed(matches) ? 1 : 0;
  return changes;
}

TEST(DriftWatch, SaysThatTheCameraMovedAfterThreeComparisonsAndThatItIsBack) {
  auto watch = DriftWatch::create(two_fiducials(), 2);
  ASSERT_TRUE(watch) << watch.error().message;
  const std::vector<Match> home{seen(1, 0.1, 0), seen(0, 200.1, 0)};
  const std::vector<Match> away{seen(1, 0.6, 0.3), seen(0, 200.6, 0.3)};
  EXPECT_EQ(feed(*watch, home, 5), 0);
  EXPECT_FALSE(watch->drift().moved);
  EXPECT_NEAR(watch->drift().shift_x_mm, 0.1, 1e-9);
  EXPECT_EQ(feed(*watch, away, 2), 0) << "two comparisons are not enough";
  EXPECT_EQ(feed(*watch, away, 1), 1);
  EXPECT_TRUE(watch->drift().moved);
  EXPECT_NEAR(watch->drift().worst_mm, std::hypot(0.6, 0.3), 1e-9);
  EXPECT_EQ(feed(*watch, home, 3), 1);
  EXPECT_FALSE(watch->drift().moved);
}

TEST(DriftWatch, MeasuresTheTurnAboutTheMiddle) {
  auto watch = DriftWatch::create(two_fiducials(), 2);
  ASSERT_TRUE(watch);
  const double angle = 1.5 * 3.14159265358979323846 / 180;
  const double c = 100 * std::cos(angle);
  const double s = 100 * std::sin(angle);
  EXPECT_EQ(feed(*watch, {seen(0, 100 + c, s), seen(1, 100 - c, -s)}, 3), 1);
  EXPECT_NEAR(watch->drift().turn_deg, 1.5, 1e-9);
  EXPECT_NEAR(watch->drift().shift_x_mm, 0, 1e-9);
}

TEST(DriftWatch, IsNotMovedByCoveredFiducialsOrAWorseSecondFind) {
  auto watch = DriftWatch::create(two_fiducials(), 2);
  ASSERT_TRUE(watch);
  EXPECT_EQ(feed(*watch, {}, 10), 0);
  EXPECT_EQ(watch->drift().compared, 0U);
  EXPECT_EQ(feed(*watch, {seen(1, 0, 0), seen(1, 50, 50, 0.8)}, 10), 0);
  EXPECT_EQ(watch->drift().found, 1);
  EXPECT_EQ(watch->drift().worst_mm, 0);
}

TEST(DriftWatch, RefusesListsThatDoNotFit) {
  const auto message = [](const FiducialParams& params) {
    return DriftWatch::create(params, 2).error().message;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message({{}, {}, 1, 1}), HasSubstr("at least one"));
  EXPECT_THAT(message({{0, 1}, {{0, 0}}, 1, 1}), HasSubstr("2 patterns and 1 places"));
  EXPECT_THAT(message({{0, 0}, {{0, 0}, {1, 1}}, 1, 1}), HasSubstr("once"));
  EXPECT_THAT(message({{2}, {{0, 0}}, 1, 1}), HasSubstr("one of the configured patterns"));
  EXPECT_THAT(message({{1}, {{0, 0}}, std::nan(""), 1}), HasSubstr("above 0"));
  EXPECT_THAT(message({{1}, {{0, 0}}, 1, 0}), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace patternd
