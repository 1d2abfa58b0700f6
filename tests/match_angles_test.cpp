#include "pipeline/match_angles.h"

#include <cmath>
#include <gtest/gtest.h>

namespace patternd {
namespace {

TEST(MatchAngles, WrapIntoAHalfOpenCircle) {
  EXPECT_DOUBLE_EQ(wrap_deg(180), -180);
  EXPECT_DOUBLE_EQ(wrap_deg(-180), -180);
  EXPECT_DOUBLE_EQ(wrap_deg(360), 0);
  EXPECT_DOUBLE_EQ(wrap_deg(725), 5);
  EXPECT_DOUBLE_EQ(wrap_deg(-725), -5);
  EXPECT_DOUBLE_EQ(wrap_deg(50, 90), -40);
  EXPECT_DOUBLE_EQ(wrap_deg(45, 90), -45);
  EXPECT_LT(wrap_deg(179.99999999999997), 180);
}

TEST(MatchAngles, EmptyRangesAreTheWholeCircle) {
  EXPECT_TRUE(normalise_angles({}, 1).full());
  EXPECT_TRUE(normalise_angles({{-180, 180}}, 1).full());
  EXPECT_TRUE(normalise_angles({{0, 400}}, 1).full());
  const AngleRanges quarter = normalise_angles({}, 4);
  EXPECT_TRUE(quarter.full());
  EXPECT_DOUBLE_EQ(quarter.period_deg, 90);
}

TEST(MatchAngles, RangesAcrossPlusMinus180StayOneRange) {
  const AngleRanges angles = normalise_angles({{170, 190}}, 1);
  ASSERT_EQ(angles.ranges.size(), 1U);
  EXPECT_TRUE(angles.contains(175));
  EXPECT_TRUE(angles.contains(-175));
  EXPECT_TRUE(angles.contains(180));
  EXPECT_FALSE(angles.contains(165));
  EXPECT_FALSE(angles.contains(-169));
  EXPECT_DOUBLE_EQ(angles.nearest(-160), -170);
}

TEST(MatchAngles, OverlappingRangesAreMergedAlsoAroundTheCircle) {
  EXPECT_EQ(normalise_angles({{0, 20}, {10, 40}, {60, 70}}, 1).ranges.size(), 2U);
  const AngleRanges around = normalise_angles({{150, 200}, {-165, -120}}, 1);
  ASSERT_EQ(around.ranges.size(), 1U);
  EXPECT_TRUE(around.contains(-125));
  EXPECT_TRUE(around.contains(155));
  EXPECT_TRUE(normalise_angles({{-180, 0}, {0, 180}}, 1).full());
}

TEST(MatchAngles, ASingleAngleIsARange) {
  const AngleRanges angles = normalise_angles({{12, 12}}, 1);
  EXPECT_TRUE(angles.contains(12));
  EXPECT_DOUBLE_EQ(angles.nearest(80), 12);
  EXPECT_DOUBLE_EQ(angles.distance(15), 3);
}

TEST(MatchAngles, OverlapIsTheCommonAreaOverTheSmaller) {
  const TurnedRectangle a{10, 10, 4, 2, 0};
  EXPECT_NEAR(overlap_of(a, a), 1, 1e-12);
  EXPECT_NEAR(overlap_of(a, {12, 10, 4, 2, 0}), 0.5, 1e-12);
  EXPECT_NEAR(overlap_of(a, {10, 10, 40, 20, 33}), 1, 1e-12);
  EXPECT_NEAR(overlap_of(a, {10, 10, 4, 2, 90}), 0.5, 1e-12);
  EXPECT_NEAR(overlap_of({0, 0, 2, 2, 0}, {0, 0, 2, 2, 45}), 8 * (std::sqrt(2.0) - 1) / 4, 1e-12);
  EXPECT_EQ(overlap_of(a, {20, 10, 4, 2, 0}), 0);
}

}  // namespace
}  // namespace patternd
