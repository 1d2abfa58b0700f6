#include "pipeline/match_angles.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

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

TEST(MatchAngles, WhetherTheOverlapIsMoreIsToldAsItIsWorkedOut) {
  std::mt19937 random(3);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  int more = 0;
  for (int i = 0; i < 20000; ++i) {
    const TurnedRectangle a{0, 0, between(1, 100), between(1, 100), between(-180, 180)};
    const double reach = between(0, 120);
    const double way = between(-4, 4);
    const double grown = between(0.8, 1.25);
    const TurnedRectangle b{reach * std::cos(way), reach * std::sin(way), grown * a.width,
                            grown * a.height, between(-180, 180)};
    const double share = i % 10 == 0 ? 0 : between(0, 1);
    ASSERT_EQ(overlap_by_more(a, b, share), overlap_of(a, b) > share)
        << a.width << "x" << a.height << " at " << a.angle_deg << " and " << reach << " away at "
        << b.angle_deg << ", share " << share;
    more += overlap_by_more(a, b, share) ? 1 : 0;
  }
  EXPECT_GT(more, 2000);
  EXPECT_LT(more, 18000);
}

TEST(MatchAngles, OverlapIsTheSameFarFromTheOrigin) {
  for (const double far : {1e3, 1e6, 1e9, 1e11}) {
    SCOPED_TRACE(far);
    const TurnedRectangle a{far, -far, 128, 64, 0};
    EXPECT_NEAR(overlap_of(a, {far + 32, -far, 128, 64, 0}), 0.75, 1e-4);
    EXPECT_TRUE(overlap_by_more(a, {far + 32, -far, 128, 64, 0}, 0.74));
    EXPECT_FALSE(overlap_by_more(a, {far + 32, -far, 128, 64, 0}, 0.76));
  }
}

TEST(MatchAngles, WhatHasNoAreaOverlapsNothing) {
  for (const TurnedRectangle& none :
       {TurnedRectangle{10, 10, 0, 4, 30}, TurnedRectangle{10, 10, -4, 4, 0},
        TurnedRectangle{10, 10, -4, -4, 0}, TurnedRectangle{10, 10, 4, -1e-3, 77}}) {
    EXPECT_EQ(overlap_by_more(none, none, 0.5), overlap_of(none, none) > 0.5);
    EXPECT_EQ(overlap_by_more({10, 10, 4, 4, 0}, none, 0), overlap_of({10, 10, 4, 4, 0}, none) > 0);
  }
}

TEST(MatchAngles, NothingOverlapsByMoreThanAll) {
  const TurnedRectangle a{10, 10, 4, 4, 30};
  EXPECT_FALSE(overlap_by_more(a, a, 1));
  EXPECT_TRUE(overlap_by_more(a, a, 0.99));
  EXPECT_FALSE(overlap_by_more(a, {10, 10, 0, 4, 30}, 0));
}

}  // namespace
}  // namespace patternd
