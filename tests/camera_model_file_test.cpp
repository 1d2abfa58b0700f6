// The calibration file: what it says, what it may leave out, and its messages.
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/camera_model.h"
#include "tests/support/test_files.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSound =
    "image_size: [1280, 720]\n"
    "lens:\n"
    "  model: brown_conrady\n"
    "  camera_matrix: [900, 0, 640, 0, 901, 360, 0, 0, 1]\n"
    "  distortion: {k1: 0.04, k2: 0.01, p1: 0.001, p2: 0.002, k3: 0.003}\n"
    "plane:\n"
    "  homography: [1, 0, 100, 0, 1, -20, 0, 0.0001, 1]\n"
    "  width: 1024\n"
    "  height: 512\n"
    "  mm_per_px: 0.2\n"
    "  origin_px: [3, 4]\n"
    "  border: 7\n";

class CameraModelFile : public ::testing::Test {
 protected:
  Result<CameraModel> load(const std::string& text) {
    const std::string path = folder_.file("camera.yaml");
    std::ofstream(path) << text;
    return load_camera_model(path);
  }
  // The message for kSound with one line's text replaced, without the folder.
  std::string fault(const std::string& from, const std::string& to) {
    std::string text = kSound;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto model = load(text);
    return model ? std::string() : model.error().message.substr(folder_.path().size() + 1);
  }
  test::TemporaryFolder folder_;
};

TEST_F(CameraModelFile, ReadsEveryKey) {
  const auto model = load(kSound);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->image_width, 1280);
  EXPECT_EQ(model->image_height, 720);
  EXPECT_EQ(model->lens.model, LensModel::kBrownConrady);
  EXPECT_EQ(model->lens.camera_matrix[4], 901);
  EXPECT_THAT(model->lens.distortion,
              ::testing::ElementsAre(0.04, 0.01, 0.001, 0.002, 0.003, 0, 0, 0));
  ASSERT_TRUE(model->plane);
  EXPECT_EQ(model->plane->homography[7], 0.0001);
  EXPECT_EQ(model->output_width(), 1024);
  EXPECT_EQ(model->output_height(), 512);
  EXPECT_EQ(model->plane->mm_per_px, 0.2);
  EXPECT_EQ(model->plane->origin_px.y, 4);
  EXPECT_EQ(model->border, 7);
}

TEST_F(CameraModelFile, TakesTheLensAloneOutWherePlaneIsLeftOut) {
  const std::string text = kSound;
  const auto model = load(text.substr(0, text.find("plane:")));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_FALSE(model->plane);
  EXPECT_EQ(model->output_width(), 1280);
}

TEST_F(CameraModelFile, ReadsDistortionAsAListInOpenCvsOrder) {
  std::string text = kSound;
  const std::string map = "{k1: 0.04, k2: 0.01, p1: 0.001, p2: 0.002, k3: 0.003}";
  text.replace(text.find(map), map.size(), "[0.04, 0.01, 0.001, 0.002]");
  const auto model = load(text);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->lens.distortion[3], 0.002);
}

TEST_F(CameraModelFile, WritesWhatItReadsBackToTheSameModel) {
  CameraModel model = load(kSound).value();
  model.lens.distortion = {1.0 / 3, -1e-17, 2.5e-5, 0, 0.1, 0.2, 0.3, 0.4};
  model.lens.distortion[0] = 0.1 + 0.2;
  model.plane->homography[0] = 1.0 / 7;
  const auto again = load(to_yaml(model));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->lens.distortion, model.lens.distortion);
  EXPECT_EQ(again->plane->homography, model.plane->homography);
  EXPECT_EQ(to_yaml(*again), to_yaml(model));
  model.plane.reset();
  model.border = 0;
  model.lens.model = LensModel::kFisheye;
  model.lens.distortion = {0.01, 0.02, 0.003, 0.0004};
  EXPECT_EQ(to_yaml(load(to_yaml(model)).value()), to_yaml(model));
}

TEST_F(CameraModelFile, SaysWhereAndWhatIsWrong) {
  EXPECT_THAT(fault("1280, 720", "1280, 0"), HasSubstr("camera.yaml:1:"));
  EXPECT_THAT(fault("brown_conrady", "brown"), HasSubstr("camera.yaml:3:10: lens.model: "));
  EXPECT_THAT(fault("mm_per_px: 0.2", "mm_per_px: 0"),
              HasSubstr("camera.yaml:10:14: plane.mm_per_px"));
  EXPECT_THAT(fault("mm_per_px", "mm_per_pixel"), HasSubstr("mm_per_px"));
  EXPECT_THAT(fault("0.0001, 1]", "0.0001]"), HasSubstr("camera.yaml:7:15: plane.homography"));
  EXPECT_THAT(fault("0.0001, 1]", "-0.01, 1]"),
              HasSubstr("camera.yaml:7:15: plane.homography: passes through infinity"));
  EXPECT_THAT(fault("k1: 0.04", "k1: -2"),
              HasSubstr("camera.yaml:5:15: lens.distortion: the lens polynomial folds back"));
  EXPECT_THAT(
      fault("k3: 0.003", "k7: 0.003"),
      HasSubstr("lens.distortion.k7: no coefficient of model brown_conrady; k1, k2, p1, p2, k3"));
  EXPECT_THAT(fault("  width: 1024\n", ""), HasSubstr("plane.width: missing"));
  EXPECT_THAT(fault("[900, 0", "[1e-308, 0"),
              HasSubstr("lens.camera_matrix: focal lengths are 1e-308 and 901"));
  EXPECT_THAT(fault("[900, 0", "[1e300, 0"), HasSubstr("lens.camera_matrix[0]: is 1e300; must be"));
  EXPECT_THAT(fault("k1: 0.04", "k1: 1e300"), HasSubstr("lens.distortion.k1: is 1e300; must be"));
  EXPECT_THAT(fault("[1, 0, 100", "[1e300, 0, 100"), HasSubstr("plane.homography[0]: is 1e300"));
}

TEST_F(CameraModelFile, RefusesTheWrongCountOfCoefficients) {
  const std::string map = "{k1: 0.04, k2: 0.01, p1: 0.001, p2: 0.002, k3: 0.003}";
  EXPECT_THAT(fault(map, "[0.1, 0.2, 0.3]"),
              HasSubstr("lens.distortion: 3 coefficients; brown_conrady takes k1, k2, p1, p2, k3, "
                        "k4, k5, k6 (the first 4, 5 or all 8)"));
  EXPECT_THAT(fault("brown_conrady", "fisheye"),
              HasSubstr("lens.distortion.p1: no coefficient of model fisheye; k1, k2, k3, k4"));
  EXPECT_THAT(fault("brown_conrady", "unit_polynomial"),
              HasSubstr("lens.camera_matrix: unit_polynomial has no camera matrix"));
  EXPECT_THAT(fault("brown_conrady", "none"),
              HasSubstr("lens.distortion: model none has no distortion"));
}

TEST_F(CameraModelFile, NamesAFileThatIsNotThere) {
  const auto model = load_camera_model(folder_.file("missing.yaml"));
  ASSERT_FALSE(model);
  EXPECT_THAT(model.error().message, HasSubstr("missing.yaml"));
}

}  // namespace
}  // namespace patternd
