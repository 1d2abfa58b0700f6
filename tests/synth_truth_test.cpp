// What the scene maker says is there: truth, Cramér–Rao bounds, scenes by chance.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/synth/random_scene.h"
#include "tools/synth/structure.h"
#include "tools/synth/truth.h"

namespace patternd::synth {
namespace {

using ::testing::HasSubstr;

constexpr double kPi = 3.141592653589793;

Photo noise_photo(int side, std::uint64_t seed) {
  return *make_photo(value_noise(side, side, 16, seed)->view());
}

Scene scene_of(const Photo& photo, int pattern_width, int pattern_height) {
  Scene scene;
  scene.width = 200;
  scene.height = 180;
  scene.background.photo = noise_photo(64, 9);
  scene.patterns.push_back(*cut_pattern("p", photo, 0, 0, pattern_width, pattern_height));
  scene.instances.resize(1);
  scene.instances[0].pose = {100, 90, 0, 1};
  scene.noise_sigma = 5;
  return scene;
}

CameraModel tilted_camera() {
  CameraModel camera;
  camera.image_width = 260;
  camera.image_height = 220;
  camera.lens.model = LensModel::kBrownConrady;
  camera.lens.camera_matrix = {300, 0, 131, 0, 302, 108, 0, 0, 1};
  camera.lens.distortion = {-0.2, 0.05, 0.001, -0.0008, 0, 0, 0, 0};
  Plane plane;
  plane.width = 200;
  plane.height = 180;
  plane.homography = {1.0, 0.2, 15, -0.03, 0.8, 16, -0.0001, 0.0009, 1};
  camera.plane = plane;
  return camera;
}

// The share of a wave of the given period that the mean over a pixel leaves.
double pixel_response(double period) { return std::sin(kPi / period) / (kPi / period); }

TEST(CramerRaoBound, IsTheFormulasForAProductOfCosines) {
  // P = 128 + A cos(wx + 1) cos(wy + 2) over whole periods: the derivatives by x and y have the
  // energy N A² w² / 4 and are orthogonal to each other, to the wave and to a constant.
  constexpr double kPeriod = 12;
  constexpr double kAmplitude = 60;
  constexpr int kSide = 96;
  constexpr double kFrequency = 2 * kPi / kPeriod;
  Image picture = *Image::create(120, 120, PixelFormat::kGrayF32);
  for (int y = 0; y < 120; ++y) {
    for (int x = 0; x < 120; ++x)
      picture.row<float>(y)[x] = static_cast<float>(
          128 + kAmplitude * std::cos(kFrequency * x + 1) * std::cos(kFrequency * y + 2));
  }
  Scene scene = scene_of(*make_photo(picture.view()), kSide, kSide);
  scene.instances[0].pose = {20 + 47.5, 30 + 47.5, 0, 1};  // whole pixels: every one counts
  const auto renderer = SceneRenderer::create(scene, nullptr);
  ASSERT_TRUE(renderer) << renderer.error().message;
  const auto bound = cramer_rao_bound(*renderer, 0, 0);
  ASSERT_TRUE(bound && *bound);
  const double response = pixel_response(kPeriod) * pixel_response(kPeriod);
  const double slope_energy = kSide * kSide * std::pow(kAmplitude * kFrequency * response, 2) / 4;
  const double sigma = std::sqrt(25 + 1 / 12.0);
  EXPECT_NEAR((*bound)->x_std_px / (sigma / std::sqrt(slope_energy)), 1, 0.01);
  EXPECT_NEAR((*bound)->y_std_px / (sigma / std::sqrt(slope_energy)), 1, 0.01);
  // By the angle: slope times lever, whose mean square is side²/12 along each axis.
  const double angle_energy = slope_energy * 2 * kSide * kSide / 12;
  const double angle_std_deg = sigma / std::sqrt(angle_energy) * 180 / kPi;
  EXPECT_NEAR((*bound)->angle_std_deg / angle_std_deg, 1, 0.03);
}

TEST(CramerRaoBound, FallsWithTheContrastAndRisesWithTheNoise) {
  Scene scene = scene_of(noise_photo(120, 3), 80, 80);
  const auto bound_of = [&] {
    const auto renderer = SceneRenderer::create(scene, nullptr);
    return **cramer_rao_bound(*renderer, 0, 0);
  };
  const PoseBound plain = bound_of();
  scene.instances[0].gain = 0.5;
  EXPECT_NEAR(bound_of().x_std_px / plain.x_std_px, 2, 1e-3);
  scene.instances[0].gain = 1;
  scene.noise_sigma = 10;
  EXPECT_NEAR(bound_of().angle_std_deg / plain.angle_std_deg, 2, 0.01);
}

TEST(CramerRaoBound, IsAbsentWhereNothingTellsThePlace) {
  Image stripes = *Image::create(64, 64, PixelFormat::kGrayF32);
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) stripes.row<float>(y)[x] = x / 4 % 2 == 0 ? 50.0F : 200.0F;
  }
  const auto renderer =
      SceneRenderer::create(scene_of(*make_photo(stripes.view()), 64, 64), nullptr);
  ASSERT_TRUE(renderer);
  const auto bound = cramer_rao_bound(*renderer, 0, 0);
  ASSERT_TRUE(bound);
  EXPECT_FALSE(bound->has_value());
}

// The largest difference between a pose gradient and that of two pictures rendered a small step
// apart, over the pixels well inside the pattern.
double worst_difference(const Scene& scene, const Image& derivative,
                        const SceneRenderer::PoseGradient& gradient, double Pose::*what) {
  constexpr double kStep = 0.02;
  const auto moved = [&](double step) {
    Scene other = scene;
    other.instances[0].pose.*what += step;
    return std::move(*SceneRenderer::create(other, nullptr)->render_exact(0));
  };
  const Image after = moved(kStep);
  const Image before = moved(-kStep);
  double worst = 0;
  int counted = 0;
  for (int y = 8; y < derivative.height() - 8; ++y) {
    for (int x = 8; x < derivative.width() - 8; ++x) {
      bool inside = true;
      for (const int step : {-7, 0, 7}) {  // the blur's reach
        inside = inside && gradient.inside.row<float>(y)[x + step] > 0 &&
                 gradient.inside.row<float>(y + step)[x] > 0;
      }
      if (!inside) continue;
      const int px = x + gradient.left;
      const int py = y + gradient.top;
      const auto slope =
          static_cast<double>(after.row<float>(py)[px] - before.row<float>(py)[px]) / (2 * kStep);
      worst = std::max(worst, std::abs(slope - static_cast<double>(derivative.row<float>(y)[x])));
      ++counted;
    }
  }
  EXPECT_GT(counted, 500);
  return worst;
}

TEST(SceneRenderer, GivesTheDerivativesByThePoseOfWhatItRenders) {
  Scene scene = scene_of(noise_photo(120, 5), 90, 80);
  scene.camera = tilted_camera();
  scene.instances[0].pose = {100.3, 90.8, 37, 1.1};
  scene.instances[0].gain = 0.9;
  scene.light = {0.4, 30};
  scene.blur_sigma_px = 0.8;
  const auto renderer = SceneRenderer::create(scene, nullptr);
  ASSERT_TRUE(renderer) << renderer.error().message;
  const auto gradient = renderer->pose_gradient(0, 0);
  ASSERT_TRUE(gradient && *gradient);
  // Slopes reach 20 grey levels a pixel and 15 a degree.
  const auto& g = **gradient;
  EXPECT_LT(worst_difference(scene, g.by_x, g, &Pose::x_px), 0.05);
  EXPECT_LT(worst_difference(scene, g.by_y, g, &Pose::y_px), 0.05);
  EXPECT_LT(worst_difference(scene, g.by_angle, g, &Pose::angle_deg), 0.05);
}

TEST(Truth, SaysWhereEachInstanceLiesInBothPictures) {
  Scene scene = scene_of(noise_photo(120, 3), 40, 30);
  scene.camera = tilted_camera();
  scene.instances[0].motion = {1.5, -2, 100, 1};
  scene.instances[0].cover = 0.25;
  const auto renderer = SceneRenderer::create(scene, nullptr);
  ASSERT_TRUE(renderer) << renderer.error().message;
  const auto truth = truth_of(*renderer, 2, true);
  ASSERT_TRUE(truth) << truth.error().message;
  ASSERT_EQ(truth->size(), 1U);
  const InstanceTruth& one = truth->front();
  EXPECT_DOUBLE_EQ(one.x_px, 103);
  EXPECT_DOUBLE_EQ(one.y_px, 86);
  EXPECT_DOUBLE_EQ(one.angle_deg, -160);
  EXPECT_EQ(one.visible, 1);
  ASSERT_TRUE(one.raw_px);
  const auto back = scene.camera->to_output(*one.raw_px);
  ASSERT_TRUE(back);
  EXPECT_NEAR(back->x, 103, 1e-6);
  EXPECT_NEAR(back->y, 86, 1e-6);
  const auto json = nlohmann::json::parse(truth_line(7, *truth));
  EXPECT_EQ(json["seq"], 7);
  EXPECT_EQ(json["instances"][0]["pattern"], "p");
  EXPECT_EQ(json["instances"][0]["angle_deg"], -160);
  EXPECT_EQ(json["instances"][0]["cover"], 0.25);
  EXPECT_GT(json["instances"][0]["x_std_px"], 0);
}

TEST(Truth, CountsTheShareInsideThePicture) {
  Scene scene = scene_of(noise_photo(120, 3), 40, 30);
  scene.instances[0].pose = {9.5, 90.5, 0, 1};  // pattern columns 0 to 9 lie left of the picture
  const auto renderer = SceneRenderer::create(scene, nullptr);
  ASSERT_TRUE(renderer);
  const auto truth = truth_of(*renderer, 0, false);
  ASSERT_TRUE(truth);
  EXPECT_DOUBLE_EQ(truth->front().visible, 0.75);
  EXPECT_FALSE(truth->front().raw_px);
  EXPECT_FALSE(truth->front().bound);
}

TEST(RandomScene, PlacesAllInstancesApartAndInsideInEveryFrame) {
  RandomSceneOptions options;
  options.pattern_count = 2;
  options.instance_count = 5;
  options.max_pattern_px = 96;
  options.frame_count = 40;
  options.max_speed_px = 3;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const auto scene = random_scene({noise_photo(200, 1), noise_photo(200, 2), noise_photo(200, 3)},
                                    options, seed);
    ASSERT_TRUE(scene) << scene.error().message;
    EXPECT_EQ(scene->patterns.size(), 2U);
    EXPECT_EQ(scene->instances.size(), 5U);
    const auto renderer = SceneRenderer::create(*scene, nullptr);
    for (const int frame : {0, 20, 39}) {
      const auto truths = *truth_of(*renderer, frame, false);
      for (const auto& truth : truths) {
        EXPECT_EQ(truth.visible, 1);
        for (const auto& other : truths) {
          if (&other != &truth) {
            EXPECT_GT(std::hypot(truth.x_px - other.x_px, truth.y_px - other.y_px), 48);
          }
        }
      }
    }
  }
}

TEST(RandomScene, TakesPartsWithStructureOnly) {
  RandomSceneOptions options;
  options.width = 300;
  options.height = 300;
  Image flat = *Image::create(300, 300, PixelFormat::kGray8);
  flat.fill_bytes(90);
  const auto refused = random_scene({*make_photo(flat.view())}, options, 1);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("found 0 of 1 patterns of 48 to 256 px"));
  options.max_pattern_px = 96;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const auto scene = random_scene({noise_photo(200, 1)}, options, seed);
    ASSERT_TRUE(scene);
    const ScenePattern& p = scene->patterns[0];
    const Structure found = measure_structure(*p.photo, p.left, p.top, p.width, p.height);
    EXPECT_GE(found.contrast, 22);
    EXPECT_GE(found.weakest_slope, 2.5);
    EXPECT_LE(found.coarse_share, 0.5);
    EXPECT_GE(std::min(p.width, p.height), 48);
    EXPECT_LE(std::max(p.width, p.height), 96);
  }
}

}  // namespace
}  // namespace patternd::synth
