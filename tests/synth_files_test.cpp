// Scenes on disk, and cameras made from four corners.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "calibration/matrix3.h"
#include "pipeline/image_file.h"
#include "pipeline/sources/recording_index.h"
#include "tests/support/test_files.h"
#include "tools/synth/plane_camera.h"
#include "tools/synth/random_scene.h"
#include "tools/synth/scene_files.h"

namespace patternd::synth {
namespace {

using ::testing::HasSubstr;

Lens real_lens() {
  Lens lens;
  lens.model = LensModel::kBrownConrady;
  lens.camera_matrix = {260, 0, 119, 0, 262, 90, 0, 0, 1};
  lens.distortion = {-0.15, 0.04, 0.0011, -0.0007, 0, 0, 0, 0};
  return lens;
}
const Corners kTilted = {Point2{60, 20}, Point2{190, 26}, Point2{225, 160}, Point2{22, 150}};

TEST(SquareToCorners, TakesEachCornerToItsPlace) {
  for (const Corners& corners :
       {kTilted, Corners{Point2{0, 0}, Point2{1, 0}, Point2{1, 1}, Point2{0, 1}},
        Corners{Point2{5, 5}, Point2{9, 6}, Point2{10, 10}, Point2{6, 9}}}) {
    const auto homography = square_to_corners(corners);
    ASSERT_TRUE(homography) << homography.error().message;
    const Corners square = {Point2{0, 0}, Point2{1, 0}, Point2{1, 1}, Point2{0, 1}};
    for (std::size_t i = 0; i < 4; ++i) {
      const auto point = apply(*homography, square[i]);
      ASSERT_TRUE(point);
      EXPECT_NEAR(point->x, corners[i].x, 1e-9);
      EXPECT_NEAR(point->y, corners[i].y, 1e-9);
    }
  }
}

TEST(SquareToCorners, RefusesCornersThatAreNoConvexFigureInOrder) {
  for (const Corners& corners :
       {Corners{kTilted[0], kTilted[3], kTilted[2], kTilted[1]},      // the other way round
        Corners{kTilted[0], kTilted[2], kTilted[1], kTilted[3]},      // crossing
        Corners{kTilted[0], kTilted[1], Point2{70, 40}, kTilted[3]},  // dented
        Corners{Point2{0, 0}, Point2{1, 0}, Point2{2, 0}, Point2{3, 0}}}) {
    const auto homography = square_to_corners(corners);
    ASSERT_FALSE(homography);
    EXPECT_THAT(homography.error().message, HasSubstr("not a convex four-sided figure"));
  }
}

TEST(CameraFromCorners, SeesThePlanesCornersWhereAskedThroughTheLens) {
  const auto camera = camera_from_corners(240, 180, real_lens(), kTilted, 200, 160);
  ASSERT_TRUE(camera) << camera.error().message;
  const Corners plane = {Point2{0, 0}, Point2{199, 0}, Point2{199, 159}, Point2{0, 159}};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto raw = camera->to_input(plane[i]);
    ASSERT_TRUE(raw);
    EXPECT_NEAR(raw->x, kTilted[i].x, 1e-6);
    EXPECT_NEAR(raw->y, kTilted[i].y, 1e-6);
  }
}

Scene small_scene(bool with_camera) {
  RandomSceneOptions options;
  options.width = 200;
  options.height = 160;
  options.max_pattern_px = 56;
  options.instance_count = 2;
  options.frame_count = 3;
  options.max_speed_px = 1;
  if (with_camera) options.camera = *camera_from_corners(240, 180, real_lens(), kTilted, 200, 160);
  return *random_scene({*make_photo(value_noise(160, 160, 16, 5)->view())}, options, 3);
}

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(WriteScene, LeavesPictureAndPatternAndTruth) {
  const test::TemporaryFolder folder;
  const Scene scene = small_scene(false);
  const auto renderer = SceneRenderer::create(scene, nullptr);
  ASSERT_TRUE(renderer) << renderer.error().message;
  const std::string out = folder.file("scene");
  const auto written = write_scene(*renderer, out, true);
  ASSERT_TRUE(written) << written.error().message;
  const auto picture = read_image(out + "/picture.png");
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_EQ(picture->width(), 200);
  const auto pattern = read_image(out + "/patterns/p1.png");
  ASSERT_TRUE(pattern);
  EXPECT_EQ(pattern->width(), scene.patterns[0].width);
  EXPECT_FALSE(std::filesystem::exists(out + "/camera.yaml"));
  const auto truth = lines_of(out + "/truth.jsonl");
  ASSERT_EQ(truth.size(), 1U);
  const auto json = nlohmann::json::parse(truth[0]);
  ASSERT_EQ(json["instances"].size(), scene.instances.size());
  EXPECT_EQ(json["instances"][0]["x_px"], scene.instances[0].pose.x_px);
}

TEST(WriteRecording, CanBeReadBackWithItsCalibrationAndStamps) {
  const test::TemporaryFolder folder;
  const auto renderer = SceneRenderer::create(small_scene(true), nullptr);
  ASSERT_TRUE(renderer) << renderer.error().message;
  const std::string out = folder.file("recording");
  RecordingOptions options;
  options.frame_count = 3;
  options.fps = 30;
  const auto written = write_recording(*renderer, out, options);
  ASSERT_TRUE(written) << written.error().message;
  const auto camera = load_camera_model(out + "/camera.yaml");
  ASSERT_TRUE(camera) << camera.error().message;
  for (std::size_t i = 0; i < 9; ++i)
    EXPECT_EQ(camera->plane->homography[i], renderer->scene().camera->plane->homography[i]);
  const auto index = read_recording_index(out + "/recording");
  ASSERT_TRUE(index) << index.error().message;
  ASSERT_EQ(index->stamps.size(), 3U);
  EXPECT_EQ(index->stamps[0].seq, 1U);
  EXPECT_EQ(index->stamps[2].captured_mono_ns - index->stamps[0].captured_mono_ns, 66'666'667);
  const auto frame = read_image(out + "/recording/00000002.pgm");
  ASSERT_TRUE(frame) << frame.error().message;
  EXPECT_EQ(frame->width(), 240);
  EXPECT_EQ(lines_of(out + "/truth.jsonl").size(), 3U);
  EXPECT_TRUE(std::filesystem::exists(out + "/patternd.yaml"));
}

TEST(WriteRecording, RefusesAFolderThatHoldsAnything) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.file("notes.txt")) << "mine";
  const auto renderer = SceneRenderer::create(small_scene(false), nullptr);
  const auto written = write_recording(*renderer, folder.path(), {});
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("is not empty; give a new folder"));
}

}  // namespace
}  // namespace patternd::synth
