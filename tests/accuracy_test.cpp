// The accuracy that the README promises, on a fixed tenth of its scenes (`patternctl bench
// accuracy` runs them all and prints the table).
#include "tools/synth/accuracy.h"

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tools/synth/sample_photos.h"
#include "tools/synth/search_scene.h"

namespace patternd::synth {
namespace {

constexpr double kMinScore = 0.7;
constexpr std::uint64_t kFirstSeed = 1;
constexpr std::size_t kScenes = 100;
constexpr int kGradedPx = 96;

std::string place_of(const SceneVerdict& scene, const Verdict& one) {
  return "seed " + std::to_string(scene.seed) + ", " + std::to_string(one.size_px) + " px, truth " +
         std::to_string(one.truth.x_px) + " " + std::to_string(one.truth.y_px) + " " +
         std::to_string(one.truth.angle_deg) + " deg, score there " +
         std::to_string(one.true_score);
}

TEST(Accuracy, FindsEveryInstanceWithinTheFiguresAndNothingElse) {
  const auto paths = sample_photo_paths();
  if (paths.size() < 2) GTEST_SKIP() << "opencv-doc's photographs are not installed";
  const auto photos = load_photos(paths);
  ASSERT_TRUE(photos) << photos.error().message;
  ThreadPool pool(0);
  const auto verdicts = judge_scenes(
      *photos, kFirstSeed, kScenes, kMinScore,
      {[](const AccuracyScene& scene) { return search_scene(scene, kMinScore); }}, pool);
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  AccuracyTally tally(kMinScore);
  for (const auto& of_scene : *verdicts) {
    const SceneVerdict& scene = of_scene.front();
    tally.add(scene);
    for (const Verdict& one : scene.instances)
      EXPECT_TRUE(one.find || one.true_score < kMinScore) << "missed: " << place_of(scene, one);
    for (const Find& find : scene.false_finds) {
      ADD_FAILURE() << "false: seed " << scene.seed << " at " << find.x_px << " " << find.y_px
                    << " " << find.angle_deg << " deg, score " << find.score;
    }
  }
  const AccuracyTally::Row graded = tally.total(kGradedPx);
  EXPECT_GT(graded.found, 100);
  EXPECT_LE(graded.position_px, 0.04);
  EXPECT_LE(graded.angle_deg, 0.04);
  // The standard deviations that come with the finds say how exact they are.
  const AccuracyTally::Row all = tally.total(0);
  EXPECT_GT(all.within_two_std, 0.9);
  EXPECT_LT(all.within_two_std, 0.98);
  for (const auto axis : {AccuracyTally::Axis::kX, AccuracyTally::Axis::kY}) {
    for (const auto& phase : tally.phases(axis, 0)) {
      EXPECT_GT(phase.count, 10);
      EXPECT_NEAR(phase.mean_px, 0, 0.01);
    }
  }
}

}  // namespace
}  // namespace patternd::synth
