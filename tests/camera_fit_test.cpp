// Cameras from boards: made cameras come back, and their stated uncertainties hold.
#include "calibration/camera_fit.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "calibration/lens.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

constexpr int kWidth = 1280;
constexpr int kHeight = 720;
constexpr int kColumns = 9;
constexpr int kRows = 6;
constexpr double kSquare = 30;

struct MadeCamera {
  Lens lens;
  std::vector<BoardPose> poses;
  std::vector<BoardView> views;
};

double uniform(std::mt19937& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

Matrix3 turned(double ax, double ay, double az) {
  const Matrix3 x = {1, 0, 0, 0, std::cos(ax), -std::sin(ax), 0, std::sin(ax), std::cos(ax)};
  const Matrix3 y = {std::cos(ay), 0, std::sin(ay), 0, 1, 0, -std::sin(ay), 0, std::cos(ay)};
  const Matrix3 z = {std::cos(az), -std::sin(az), 0, std::sin(az), std::cos(az), 0, 0, 0, 1};
  return product(z, product(y, x));
}

// A pose whose whole board is in the picture.
BoardPose random_pose(const Lens& lens, std::mt19937& random, double most_tilt) {
  for (;;) {
    BoardPose pose;
    pose.rotation = turned(uniform(random, -most_tilt, most_tilt),
                           uniform(random, -most_tilt, most_tilt), uniform(random, -0.5, 0.5));
    const double distance =
        lens.camera_matrix[0] * kSquare * kColumns / kWidth * uniform(random, 1.3, 2.4);
    pose.translation_mm = {uniform(random, -0.6, 0.4) * distance * 0.8,
                           uniform(random, -0.5, 0.3) * distance * 0.6, distance};
    bool inside = true;
    for (const double x : {-kSquare, kSquare * kColumns}) {
      for (const double y : {-kSquare, kSquare * kRows}) {
        const auto p = project(lens, pose, {x, y});
        inside = inside && p && p->x > 0 && p->y > 0 && p->x < kWidth - 1 && p->y < kHeight - 1;
      }
    }
    if (inside) return pose;
  }
}

BoardView view_of(const Lens& lens, const BoardPose& pose, double noise, std::mt19937& random) {
  std::normal_distribution<double> error(0, noise);
  BoardView view{"made", {}, {}};
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      const Point2 board{column * kSquare, row * kSquare};
      const Point2 p = project(lens, pose, board).value();
      view.board_mm.push_back(board);
      view.image_px.push_back(noise > 0 ? Point2{p.x + error(random), p.y + error(random)} : p);
    }
  }
  return view;
}

MadeCamera make_camera(LensModel model, int pictures, double noise, std::mt19937& random) {
  MadeCamera made;
  made.lens.model = model;
  const double f =
      model == LensModel::kFisheye ? uniform(random, 380, 500) : uniform(random, 700, 1500);
  made.lens.camera_matrix = {f,
                             0,
                             kWidth / 2.0 + uniform(random, -25, 25),
                             0,
                             f * uniform(random, 0.99, 1.01),
                             kHeight / 2.0 + uniform(random, -25, 25),
                             0,
                             0,
                             1};
  if (model == LensModel::kFisheye) {
    made.lens.distortion = {uniform(random, -0.03, 0.03), uniform(random, -0.01, 0.01),
                            uniform(random, -0.005, 0.005), uniform(random, -0.002, 0.002)};
  } else {
    made.lens.distortion = {uniform(random, -0.2, 0.05), uniform(random, -0.05, 0.1),
                            uniform(random, -0.002, 0.002), uniform(random, -0.002, 0.002),
                            uniform(random, -0.02, 0.02)};
  }
  for (int i = 0; i < pictures; ++i) {
    made.poses.push_back(random_pose(made.lens, random, 0.7));
    made.views.push_back(view_of(made.lens, made.poses.back(), noise, random));
  }
  return made;
}

std::vector<double> true_values(const Lens& lens, int coefficients) {
  std::vector<double> values = {lens.camera_matrix[0], lens.camera_matrix[4], lens.camera_matrix[2],
                                lens.camera_matrix[5]};
  for (int i = 0; i < coefficients; ++i) {
    values.push_back(lens.distortion[static_cast<std::size_t>(i)]);
  }
  return values;
}

TEST(CameraFit, RecoversMadeCamerasFromPerfectCorners) {
  const unsigned seed = 21;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const LensModel model : {LensModel::kBrownConrady, LensModel::kFisheye}) {
    for (int i = 0; i < 10; ++i) {
      const MadeCamera made = make_camera(model, 10, 0, random);
      const CameraFitOptions options{model, model == LensModel::kFisheye ? 4 : 5};
      const auto fit = fit_camera(made.views, kWidth, kHeight, options);
      ASSERT_TRUE(fit) << fit.error().message;
      EXPECT_LT(fit->rms_px, 1e-6);
      EXPECT_NEAR(fit->lens.camera_matrix[0], made.lens.camera_matrix[0], 1e-3);
      EXPECT_NEAR(fit->lens.camera_matrix[5], made.lens.camera_matrix[5], 1e-3);
      EXPECT_NEAR(fit->lens.distortion[0], made.lens.distortion[0], 1e-5);
      EXPECT_NEAR(fit->poses[0].translation_mm[2], made.poses[0].translation_mm[2], 1e-3);
    }
  }
}

TEST(CameraFit, StatesUncertaintiesThatHoldOver200MadeCameras) {
  const unsigned seed = 22;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int within = 0;
  int all = 0;
  double plane_squared = 0;
  int plane_points = 0;
  for (int i = 0; i < 200; ++i) {
    const MadeCamera made = make_camera(LensModel::kBrownConrady, 12, 0.1, random);
    const auto fit = fit_camera(made.views, kWidth, kHeight, {});
    ASSERT_TRUE(fit) << fit.error().message;
    const std::vector<double> truth = true_values(made.lens, 5);
    for (std::size_t k = 0; k < truth.size(); ++k) {
      within += std::abs(fit->values[k] - truth[k]) <= 2 * fit->standard_deviations[k] ? 1 : 0;
      ++all;
    }
    // Points of the plane that the first board lies on, as the fitted camera places them.
    for (int y = 0; y < kRows; ++y) {
      for (int x = 0; x < kColumns; ++x) {
        const Point2 board{(x + 0.3) * kSquare * 0.95, (y + 0.2) * kSquare * 0.95};
        const Point2 expected = project(made.lens, made.poses[0], board).value();
        const Point2 actual = project(fit->lens, fit->poses[0], board).value();
        plane_squared += (actual.x - expected.x) * (actual.x - expected.x) +
                         (actual.y - expected.y) * (actual.y - expected.y);
        ++plane_points;
      }
    }
  }
  const double share = static_cast<double>(within) / all;
  RecordProperty("within_two_sigma", std::to_string(share));
  EXPECT_GE(share, 0.92);
  EXPECT_LE(share, 0.98);
  EXPECT_LE(std::sqrt(plane_squared / plane_points), 0.05);
}

TEST(CameraFit, FindsThePoseOfOneBoard) {
  std::mt19937 random(5);
  const MadeCamera made = make_camera(LensModel::kBrownConrady, 3, 0, random);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto pose = fit_pose(made.views[i], made.lens);
    ASSERT_TRUE(pose);
    for (std::size_t k = 0; k < 3; ++k) {
      EXPECT_NEAR(pose->translation_mm[k], made.poses[i].translation_mm[k], 1e-5);
    }
  }
}

TEST(CameraFit, RefusesTooFewPictures) {
  std::mt19937 random(6);
  const MadeCamera made = make_camera(LensModel::kBrownConrady, 1, 0, random);
  const auto fit = fit_camera(made.views, kWidth, kHeight, {});
  ASSERT_FALSE(fit);
  EXPECT_THAT(fit.error().message, HasSubstr("1 picture(s) with a board"));
}

TEST(LensDistortion, GivesDerivativesByCoefficientThatMatchDifferences) {
  for (const LensModel model : {LensModel::kBrownConrady, LensModel::kFisheye}) {
    Lens lens;
    lens.model = model;
    lens.distortion = {-0.2, 0.05, 0.001, 0.002, 0.01, 0.1, 0.02, 0.03};
    if (model == LensModel::kFisheye) lens.distortion = {0.02, -0.01, 0.004, 0.001};
    const Point2 p{0.31, -0.42};
    Jacobian2 by_point{};
    std::array<double, 16> by_coefficient{};
    (void)LensDistortion(lens).evaluate(p, by_point, by_coefficient);
    const std::size_t count = model == LensModel::kFisheye ? 4 : 8;
    for (std::size_t i = 0; i < count; ++i) {
      Lens more = lens;
      Lens less = lens;
      more.distortion[i] += 1e-6;
      less.distortion[i] -= 1e-6;
      const Point2 high = LensDistortion(more).distort(p).value();
      const Point2 low = LensDistortion(less).distort(p).value();
      EXPECT_NEAR(by_coefficient[2 * i], (high.x - low.x) / 2e-6, 1e-8) << i;
      EXPECT_NEAR(by_coefficient[2 * i + 1], (high.y - low.y) / 2e-6, 1e-8) << i;
    }
  }
}

}  // namespace
}  // namespace patternd
