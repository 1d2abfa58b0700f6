#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "cuda/rectify_plan.h"
#include "pipeline/row_major.h"
#include "tests/support/reference_rectify.h"

namespace patternd::cuda {
namespace {

// Every planned position against the model.
void expect_follows(const CameraModel& model, int step) {
  const auto plan = plan_rectification(model);
  ASSERT_TRUE(plan) << plan.error().message;
  double worst = 0;
  for (int y = 0; y < plan->height; y += step) {
    for (int x = 0; x < plan->width; x += step) {
      const auto truth = model.to_input({static_cast<double>(x), static_cast<double>(y)});
      const bool valid = truth && truth->x >= 0 && truth->y >= 0 &&
                         truth->x <= model.image_width - 1 && truth->y <= model.image_height - 1;
      const PlannedPosition planned = planned_position(*plan, x, y);
      ASSERT_EQ(planned.valid, valid) << x << ' ' << y;
      if (valid) {
        worst = std::max(worst, std::abs(planned.x - truth->x));
        worst = std::max(worst, std::abs(planned.y - truth->y));
      }
    }
  }
  EXPECT_LE(worst, 1.2 * kMaxPlanErrorPx);
}

TEST(RectifyPlan, FollowsTheTiltedPlaneOfTheBenchmark) {
  expect_follows(test::tilted_plane(1024, false), 1);
}

TEST(RectifyPlan, FollowsItAt8192Pixels) { expect_follows(test::tilted_plane(8192, false), 7); }

TEST(RectifyPlan, FollowsAPlaneTurnedBy90Degrees) {
  expect_follows(test::tilted_plane(1000, true), 1);
}

TEST(RectifyPlan, FollowsAFisheyeToItsRim) {
  CameraModel model;
  model.image_width = 640;
  model.image_height = 480;
  model.lens.model = LensModel::kFisheye;
  model.lens.camera_matrix = {200, 0, 320, 0, 200, 240, 0, 0, 1};
  model.lens.distortion = {0.05, -0.01, 0.002, 0, 0, 0, 0, 0};
  expect_follows(model, 1);
}

TEST(RectifyPlan, WritesPositionsOutWhereTheLensBendsTooMuch) {
  CameraModel model;
  model.image_width = 64;
  model.image_height = 48;
  model.lens.model = LensModel::kBrownConrady;
  model.lens.camera_matrix = {30, 0, 31.5, 0, 30, 23.5, 0, 0, 1};
  model.lens.distortion = {0.3, 0.2, 0.01, -0.02, 0.1, 0, 0, 0};
  const auto plan = plan_rectification(model);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->tables.empty());
  expect_follows(model, 1);
}

TEST(RectifyPlan, TakesPicturesOfOnePixelAndOfOddSizes) {
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 5}, {33, 31}, {641, 479}}) {
    SCOPED_TRACE(std::to_string(width) + "x" + std::to_string(height));
    CameraModel model;
    model.image_width = width;
    model.image_height = height;
    expect_follows(model, 1);
  }
}

// Plain loads have no bounds: all four neighbours of such a square's pixels must be pixels.
TEST(RectifyPlan, CallsSquaresNearOnlyWhereAllNeighboursArePixels) {
  for (const bool turned : {false, true}) {
    SCOPED_TRACE(turned);
    const CameraModel model = test::tilted_plane(1000, turned);
    const auto plan = plan_rectification(model);
    ASSERT_TRUE(plan);
    const int side = plan->side();
    int near = 0;
    for (int y = 0; y < plan->height; ++y) {
      for (int x = 0; x < plan->width; ++x) {
        const auto patch = row_major(y / side, x / side, plan->patches_across);
        if (plan->patches[patch].near == 0) continue;
        ++near;
        const PlannedPosition at = planned_position(*plan, x, y);
        ASSERT_TRUE(at.valid && at.x >= 0 && at.y >= 0 && at.x < model.image_width - 1 &&
                    at.y < model.image_height - 1)
            << x << ' ' << y;
      }
    }
    // Upright a row of pixels stays in a few rows of the source; turned it crosses as many as it
    // has pixels.
    if (turned)
      EXPECT_EQ(near, 0);
    else
      EXPECT_GT(near, 9 * plan->width * plan->height / 10);
  }
}

TEST(RectifyPlan, FollowsRandomLensesAndPlanes) {
  const unsigned seed = 20140520;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> unit(-1, 1);
  for (int i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    CameraModel model;
    model.image_width = 200 + static_cast<int>(100 * unit(random));
    model.image_height = 150 + static_cast<int>(80 * unit(random));
    model.lens.model = LensModel::kUnitPolynomial;
    model.lens.distortion = {0.1 * unit(random),
                             0.05 * unit(random),
                             0.01 * unit(random),
                             0.01 * unit(random),
                             0.01 * unit(random),
                             0,
                             0,
                             0};
    Plane plane;
    plane.width = 230 + static_cast<int>(90 * unit(random));
    plane.height = 130 + static_cast<int>(90 * unit(random));
    plane.homography = {1 + 0.2 * unit(random), 0.3 * unit(random),     0.2 * unit(random),
                        0.3 * unit(random),     1 + 0.2 * unit(random), 0.2 * unit(random),
                        0.15 * unit(random),    0.15 * unit(random),    1};
    model.plane = plane;
    expect_follows(model, 1);
  }
}

TEST(RectifyPlan, GivesTheMaskOfValidPixels) {
  CameraModel model;
  model.image_width = 50;
  model.image_height = 40;
  Plane plane;
  plane.width = 60;
  plane.height = 40;
  plane.homography = {1, 0, -5, 0, 1, 0, 0, 0, 1};  // five columns on either side are missing
  model.plane = plane;
  const auto plan = plan_rectification(model);
  ASSERT_TRUE(plan);
  const auto mask = valid_mask(*plan);
  for (int x = 0; x < 60; ++x)
    EXPECT_EQ(mask[static_cast<std::size_t>(60 * 20 + x)], x >= 5 && x < 55 ? 255 : 0) << x;
}

}  // namespace
}  // namespace patternd::cuda
