// The accuracy scenes can be trusted: an estimator that uses every pixel reaches their Cramér–Rao
// bound and shows no bias by sub-pixel phase, so what a matcher misses is the matcher's.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/pose_fit.h"
#include "tools/synth/accuracy.h"
#include "tools/synth/sample_photos.h"

namespace patternd::synth {
namespace {

std::vector<Photo> photographs() {
  const auto paths = sample_photo_paths();
  return paths.size() < 2 ? std::vector<Photo>() : *load_photos(paths);
}

// Sums of squared errors over their squared bounds.
struct ErrorRatio {
  double sum = 0;
  int count = 0;
  void add(double error, double bound) {
    sum += error * error / (bound * bound);
    ++count;
  }
  [[nodiscard]] double root_mean_square() const { return std::sqrt(sum / std::max(count, 1)); }
};

TEST(AccuracyScenes, LetAnEstimatorThatUsesEveryPixelReachTheBound) {
  const std::vector<Photo> photos = photographs();
  if (photos.empty()) GTEST_SKIP() << "opencv-doc's photographs are not installed";
  constexpr std::uint64_t kFirstSeed = 5000;
  constexpr std::uint64_t kScenes = 40;
  SCOPED_TRACE("seeds 5000 to 5039");
  // Rounding to grey levels adds 1/12.
  const double noise_sigma = std::sqrt(25 + 1 / 12.0);
  AccuracyTally tally(0);
  ErrorRatio position;
  ErrorRatio angle;
  for (std::uint64_t seed = kFirstSeed; seed < kFirstSeed + kScenes; ++seed) {
    const auto scene = accuracy_scene(photos, seed);
    ASSERT_TRUE(scene) << scene.error().message;
    std::vector<Find> finds;
    for (const InstanceTruth& truth : scene->truths) {
      const Pose start{truth.x_px + 0.2, truth.y_px - 0.2, truth.angle_deg + 0.1, 1};
      const test::PoseFit fit =
          test::fit_pose(scene->picture.view(), scene->pattern.view(), start, noise_sigma);
      position.add(fit.pose.x_px - truth.x_px, fit.x_bound_px);
      position.add(fit.pose.y_px - truth.y_px, fit.y_bound_px);
      angle.add(fit.pose.angle_deg - truth.angle_deg, fit.angle_bound_deg);
      // The scene's bound is for more pixels and fewer unknowns: below the fit's, but for what the
      // spline sees otherwise than the scene's own derivatives.
      EXPECT_LT(truth.bound->x_std_px, 1.05 * fit.x_bound_px);
      EXPECT_LT(truth.bound->y_std_px, 1.05 * fit.y_bound_px);
      EXPECT_LT(truth.bound->angle_std_deg, 1.05 * fit.angle_bound_deg);
      Find find;
      find.x_px = fit.pose.x_px;
      find.y_px = fit.pose.y_px;
      find.angle_deg = fit.pose.angle_deg;
      find.score = 1;
      finds.push_back(find);
    }
    tally.add(judge(*scene, finds, 0.7));
  }
  const auto all = tally.total(0);
  EXPECT_EQ(all.missed, 0);
  EXPECT_EQ(tally.false_finds(), 0);
  EXPECT_GT(all.found, 80);
  // Errors are those of the bound for the pixels and unknowns of the fit: not above it, and not
  // below it either, or the truth would not be independent of the noise.
  EXPECT_LT(position.root_mean_square(), 1.1);
  EXPECT_GT(position.root_mean_square(), 0.9);
  EXPECT_LT(angle.root_mean_square(), 1.1);
  EXPECT_GT(angle.root_mean_square(), 0.9);
  RecordProperty("position_over_fit_bound", std::to_string(position.root_mean_square()));
  RecordProperty("angle_over_fit_bound", std::to_string(angle.root_mean_square()));
  RecordProperty("position_over_scene_bound",
                 std::to_string(all.position_px / all.position_bound_px));
  for (const auto axis : {AccuracyTally::Axis::kX, AccuracyTally::Axis::kY}) {
    for (const auto& phase : tally.phases(axis, 0)) EXPECT_NEAR(phase.mean_px, 0, 0.01);
  }
}

AccuracyScene scene_with_truths(const std::vector<Pose>& poses) {
  AccuracyScene scene;
  scene.pattern = *Image::create(100, 60, PixelFormat::kGray8);
  for (const Pose& pose : poses) {
    InstanceTruth truth;
    truth.x_px = pose.x_px;
    truth.y_px = pose.y_px;
    truth.angle_deg = pose.angle_deg;
    truth.bound = PoseBound{0.003, 0.004, 0.01};
    scene.truths.push_back(truth);
    scene.scores.push_back(0.9);
  }
  return scene;
}

TEST(AccuracyTally, CountsFoundAndMissedAndFalse) {
  AccuracyScene scene =
      scene_with_truths({{100, 100, 179.9, 1}, {300, 100, 0, 1}, {200, 300, 5, 1}});
  scene.scores[2] = 0.6;
  const SceneVerdict verdict = judge(scene,
                                     {{100.03, 99.96, -179.9, 0.95},  // across ±180
                                      {500, 500, 0, 0.8},             // nothing there
                                      {300, 100, 9, 0.8}},            // turned wrongly
                                     0.7);
  AccuracyTally tally(0.7);
  tally.add(verdict);
  const auto row = tally.total(0);
  EXPECT_EQ(row.found, 1);
  EXPECT_EQ(row.missed, 1);
  EXPECT_EQ(row.under_score, 1);
  EXPECT_EQ(tally.false_finds(), 2);
  EXPECT_NEAR(row.position_px, 0.05, 1e-9);
  EXPECT_NEAR(row.angle_deg, 0.2, 1e-9);
  EXPECT_NEAR(row.position_bound_px, 0.005, 1e-12);
  EXPECT_EQ(tally.rows()[0].found, 1);
  EXPECT_EQ(tally.rows()[0].missed, 1);  // 60 pixels: the class from 48 to 64
  EXPECT_EQ(tally.rows()[1].found, 0);
  EXPECT_EQ(tally.total(64).found, 0);
  EXPECT_EQ(tally.score_quantile(0.5), 0.95);
  const auto phases = tally.phases(AccuracyTally::Axis::kX, 0);
  EXPECT_NEAR(phases[0].mean_px, 0.03, 1e-9);
  EXPECT_EQ(phases[1].count, 0);
}

TEST(AccuracyTally, TakesASecondFindOfOneInstanceForFalse) {
  const AccuracyScene scene = scene_with_truths({{100, 100, 0, 1}});
  const SceneVerdict verdict = judge(scene, {{100, 100, 0, 0.9}, {101, 100, 0, 0.8}}, 0.7);
  EXPECT_EQ(verdict.false_finds.size(), 1U);
}

TEST(AccuracyTally, CountsPlacesThatReallyLookAlikeApart) {
  AccuracyScene scene = scene_with_truths({{60, 60, 0, 1}});
  const Photo photo = made_textures(1)->front();
  scene.pattern = *picture_of(*cut_pattern("p", photo, 40, 30, 64, 50));
  scene.picture = *Image::create(300, 300, PixelFormat::kGray8);
  scene.picture.fill_bytes(90);
  const ImageView part = std::as_const(scene.pattern).view();
  for (int y = 0; y < part.height; ++y)
    std::copy_n(part.row<std::uint8_t>(y), part.width,
                scene.picture.row<std::uint8_t>(200 + y) + 150);
  const Find there{150 + 31.5, 200 + 24.5, 0, 1};
  const Find elsewhere{80, 220, 0, 0.9};
  AccuracyTally tally(0.7);
  tally.add(judge(scene, {there, elsewhere}, 0.7));
  EXPECT_EQ(tally.look_alikes(), 1);
  EXPECT_EQ(tally.false_finds(), 1);
  // The same place on an instance is a second find of it.
  scene.truths[0].x_px = 170;
  scene.truths[0].y_px = 220;
  EXPECT_EQ(judge(scene, {there}, 0.7).false_finds.size(), 1U);
}

TEST(AccuracyTally, ComparesErrorsWithTheStandardDeviationsThatCameWithThem) {
  const AccuracyScene scene = scene_with_truths({{100, 100, 0, 1}, {300, 100, 0, 1}});
  const Find exact{100.019, 100, 0, 0.9, 0.01, 0.02, 0.1};    // 1.9, none and none
  const Find unsure{300, 100.03, 0.3, 0.9, 0.01, 0.01, 0.1};  // none, three and three
  AccuracyTally tally(0.7);
  tally.add(judge(scene, {exact, unsure}, 0.7));
  const auto row = tally.total(0);
  EXPECT_NEAR(row.position_over_std, std::sqrt((1.9 * 1.9 + 9) / 4), 1e-6);
  EXPECT_NEAR(row.angle_over_std, std::sqrt(9 / 2.0), 1e-6);
  EXPECT_NEAR(row.within_two_std, 4 / 6.0, 1e-9);
}

TEST(ScoreAt, IsOneForThePatternItselfAndNothingOutside) {
  const Photo photo = made_textures(1)->front();
  const Image pattern = *picture_of(*cut_pattern("p", photo, 40, 30, 64, 50));
  EXPECT_NEAR(score_at(pattern.view(), pattern.view(), {31.5, 24.5, 0, 1}), 1, 1e-9);
  EXPECT_EQ(score_at(pattern.view(), pattern.view(), {32.5, 24.5, 0, 1}), 0);
}

}  // namespace
}  // namespace patternd::synth
