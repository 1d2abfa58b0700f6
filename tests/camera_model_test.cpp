// Points through lens and plane: against the formulas, in both directions, and what is refused.
#include "calibration/camera_model.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "calibration/lens.h"
#include "tests/support/reference_rectify.h"

namespace patternd {
namespace {

using test::reference_source;
using ::testing::HasSubstr;

CameraModel brown_model() {
  CameraModel model;
  model.image_width = 1280;
  model.image_height = 720;
  model.lens.model = LensModel::kBrownConrady;
  model.lens.camera_matrix = {900, 0, 645.5, 0, 905, 352.25, 0, 0, 1};
  model.lens.distortion = {-0.21, 0.08, 0.0013, -0.0007, 0.01, 0, 0, 0};
  return model;
}

CameraModel with_plane(CameraModel model) {
  Plane plane;
  plane.homography = {0.9, 0.12, 150, -0.05, 0.7, 90, 1e-5, 2.4e-4, 0.95};
  plane.width = 1000;
  plane.height = 800;
  plane.mm_per_px = 0.2;
  plane.origin_px = {10, 20};
  model.plane = plane;
  return model;
}

CameraModel unit_model() {
  CameraModel model;
  model.image_width = 640;
  model.image_height = 480;
  model.lens.model = LensModel::kUnitPolynomial;
  model.lens.distortion = {0.04, 0.01, 0.002, -0.001, 0.003, 0, 0, 0};
  Plane plane;
  plane.homography = {0.7, 0.05, 0.02, -0.03, 0.5, 0.01, 0.02, 0.2, 1};
  plane.width = 500;
  plane.height = 700;
  model.plane = plane;
  return model;
}

struct NamedModel {
  const char* name;
  CameraModel model;
};
std::vector<NamedModel> all_models() {
  CameraModel rational = brown_model();
  rational.lens.distortion = {0.3, -0.2, 0.001, 0.0005, 0.05, 0.45, -0.1, 0.02};
  CameraModel fisheye = brown_model();
  fisheye.lens.model = LensModel::kFisheye;
  fisheye.lens.camera_matrix = {420, 0, 639, 0, 421, 360, 0, 0, 1};
  fisheye.lens.distortion = {0.02, -0.01, 0.003, -0.0006, 0, 0, 0, 0};
  CameraModel none;
  none.image_width = 640;
  none.image_height = 480;
  CameraModel strong = brown_model();
  strong.lens.distortion = {-0.35, 0.15, 0, 0, -0.03, 0, 0, 0};
  return {{"brown_conrady", brown_model()},
          {"brown_conrady with plane", with_plane(brown_model())},
          {"strong barrel", strong},
          {"rational", rational},
          {"rational with plane", with_plane(rational)},
          {"fisheye", fisheye},
          {"fisheye with plane", with_plane(fisheye)},
          {"unit_polynomial", unit_model()},
          {"none with plane", with_plane(none)},
          {"none", none}};
}

TEST(CameraModel, MapsOutputPixelsAsTheFormulasSay) {
  for (const auto& [name, model] : all_models()) {
    SCOPED_TRACE(name);
    for (int y = 0; y < model.output_height(); y += 37) {
      for (int x = 0; x < model.output_width(); x += 41) {
        const auto expected = reference_source(model, x, y);
        const auto actual = model.to_input({static_cast<double>(x), static_cast<double>(y)});
        ASSERT_TRUE(expected && actual) << x << ", " << y;
        ASSERT_NEAR(actual->x, expected->x, 1e-9);
        ASSERT_NEAR(actual->y, expected->y, 1e-9);
      }
    }
  }
}

TEST(CameraModel, ComesBackToTheSamePointWithinABillionthOfAPixel) {
  for (const auto& [name, model] : all_models()) {
    SCOPED_TRACE(name);
    int inside = 0;
    for (int y = 0; y < model.output_height(); y += 23) {
      for (int x = 0; x < model.output_width(); x += 29) {
        const Point2 output{x + 0.25, y - 0.125};
        const auto input = model.to_input(output);
        ASSERT_TRUE(input);
        if (input->x < 0 || input->y < 0 || input->x > model.image_width - 1 ||
            input->y > model.image_height - 1) {
          continue;
        }
        ++inside;
        const auto back = model.to_output(*input);
        ASSERT_TRUE(back) << x << ", " << y;
        ASSERT_NEAR(back->x, output.x, 2e-9);
        ASSERT_NEAR(back->y, output.y, 2e-9);
      }
    }
    EXPECT_GT(inside, 300);
  }
}

TEST(CameraModel, GivesJacobiansThatMatchDifferences) {
  for (const auto& [name, model] : all_models()) {
    SCOPED_TRACE(name);
    for (const Point2 p : {Point2{0, 0}, Point2{320.5, 200}, Point2{450, 479}}) {
      Jacobian2 j{};
      const auto input = model.to_input(p, &j);
      ASSERT_TRUE(input);
      const double step = 1e-4;
      const Point2 right = model.to_input({p.x + step, p.y}).value();
      const Point2 left = model.to_input({p.x - step, p.y}).value();
      const Point2 down = model.to_input({p.x, p.y + step}).value();
      const Point2 up = model.to_input({p.x, p.y - step}).value();
      EXPECT_NEAR(j[0], (right.x - left.x) / (2 * step), 1e-6);
      EXPECT_NEAR(j[2], (right.y - left.y) / (2 * step), 1e-6);
      EXPECT_NEAR(j[1], (down.x - up.x) / (2 * step), 1e-6);
      EXPECT_NEAR(j[3], (down.y - up.y) / (2 * step), 1e-6);
      Jacobian2 back{};
      ASSERT_TRUE(model.to_output(*input, &back));
      EXPECT_NEAR(back[0] * j[0] + back[1] * j[2], 1, 1e-9);
      EXPECT_NEAR(back[0] * j[1] + back[1] * j[3], 0, 1e-9);
    }
  }
}

TEST(CameraModel, HasNoPointForRaysFromBehindTheCamera) {
  CameraModel model = with_plane(brown_model());
  model.plane->homography = {1, 0, 0, 0, 1, 0, 0, -0.002, 1};  // w = 0 at y = 500
  EXPECT_TRUE(model.to_input({600, 300}));
  EXPECT_FALSE(model.to_input({600, 500}));
  EXPECT_FALSE(model.to_input({600, 700}));
}

TEST(CameraModel, HasNoPointWhereTheLensHasFoldedBackOrUnfoldedAgain) {
  CameraModel model = brown_model();
  // r(1 − r² + 0.22 r⁴): falls from r = 0.63 to r = 1.51 and rises again beyond.
  model.lens.distortion = {-1, 0.22, 0, 0, 0, 0, 0, 0};
  model.lens.camera_matrix = {1000, 0, 640, 0, 1000, 360, 0, 0, 1};
  EXPECT_TRUE(model.to_input({640 + 620, 360}));
  EXPECT_FALSE(model.to_input({640 + 650, 360}));
  EXPECT_FALSE(model.to_input({640 + 1500, 360}));
  EXPECT_FALSE(model.to_input({640 + 2500, 360}));
  EXPECT_FALSE(model.to_output({640 + 500, 360}));  // further out than the lens reaches
  const auto output = model.to_output({640 + 300, 360});
  ASSERT_TRUE(output);
  EXPECT_LT(output->x, 640 + 630);
}

TEST(CameraModel, FindsTheFoldRadiusOfRandomPolynomials) {
  const unsigned seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> spread(-0.6, 0.6);
  for (int i = 0; i < 300; ++i) {
    Lens lens;
    lens.model = i % 3 == 0 ? LensModel::kFisheye : LensModel::kBrownConrady;
    lens.distortion = {spread(random), spread(random), 0, 0, spread(random), 0, 0, 0};
    if (i % 3 == 0)
      lens.distortion = {spread(random), spread(random), spread(random), spread(random)};
    if (i % 3 == 1) lens.distortion[5] = spread(random);
    const LensDistortion distortion(lens);
    const double fold = distortion.fold_radius();
    double last = 0;
    for (double r = 0.002; r < std::min(fold, 3.0); r += 0.002) {
      const double now = distortion.distorted_radius(r);
      ASSERT_GT(now, last) << "case " << i << " at " << r;
      last = now;
    }
    if (fold < 3) {
      const double edge = distortion.distorted_radius(fold * (1 - 1e-7));
      const double beyond = distortion.distorted_radius(fold * (1 + 1e-3));
      EXPECT_LT(beyond, edge) << "case " << i;
    }
  }
}

TEST(CameraModel, ConvertsToMillimetresFromItsOrigin) {
  const CameraModel model = with_plane(brown_model());
  const Point2 mm = model.to_mm({110, 70});
  EXPECT_DOUBLE_EQ(mm.x, 20);
  EXPECT_DOUBLE_EQ(mm.y, 10);
}

std::string fault_of(const CameraModel& model) {
  const auto sound = check_camera_model(model, "camera");
  return sound ? std::string() : sound.error().message;
}

TEST(CameraModelCheck, AcceptsSoundModels) {
  for (const auto& [name, model] : all_models()) {
    SCOPED_TRACE(name);
    EXPECT_EQ(fault_of(model), "");
  }
  EXPECT_EQ(fault_of(test::tilted_plane(1024, false)), "");
  EXPECT_EQ(fault_of(test::tilted_plane(1024, true)), "");
}

TEST(CameraModelCheck, RefusesSizesOutOfRange) {
  CameraModel model = brown_model();
  model.image_width = 0;
  EXPECT_THAT(fault_of(model), HasSubstr("camera: image_size: 0x720; two whole numbers"));
  model = with_plane(brown_model());
  model.plane->height = 32768;
  EXPECT_THAT(fault_of(model), HasSubstr("plane.height: 32768; 1 to 32767"));
}

TEST(CameraModelCheck, RefusesAPolynomialThatFoldsBackWithinThePicture) {
  CameraModel model = brown_model();
  model.lens.distortion = {-1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(fault_of(model), HasSubstr("lens.distortion: the lens polynomial folds back"));
  model = unit_model();
  model.lens.distortion = {-0.5, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_THAT(fault_of(model), HasSubstr("folds back within the picture"));
}

TEST(CameraModelCheck, AcceptsAFoldOutsideThePictureEvenWhereTheOutputReachesBeyondIt) {
  CameraModel model = brown_model();
  model.lens.distortion = {-0.1, 0, 0, 0, 0, 0, 0, 0};  // folds at r = 1.83, seen at 1.22: 1095 px
  Plane plane;
  plane.homography = {4, 0, -1500, 0, 4, -1200, 0, 0, 1};  // reaches r = 2.6
  plane.width = 1000;
  plane.height = 800;
  model.plane = plane;
  EXPECT_EQ(fault_of(model), "");
  EXPECT_FALSE(model.to_input({0, 0}));
}

TEST(CameraModelCheck, RefusesAHomographyThroughInfinityOrFromBehind) {
  CameraModel model = with_plane(brown_model());
  model.plane->homography = {1, 0, 0, 0, 1, 0, 0, -0.002, 1};
  EXPECT_THAT(fault_of(model), HasSubstr("plane.homography: passes through infinity inside"));
  model.plane->homography = {-1, 0, 0, 0, -1, 0, 0, 0, -1};
  EXPECT_THAT(fault_of(model), HasSubstr("behind the camera; the same nine numbers with their "
                                         "signs changed"));
}

TEST(CameraModelCheck, RefusesSingularHomographies) {
  CameraModel model = with_plane(brown_model());
  model.plane->homography = {1, 2, 3, 2, 4, 6, 0, 0, 1};
  EXPECT_THAT(fault_of(model), HasSubstr("plane.homography: singular"));
  model.plane->homography = {1, 0, 3, 1, 1e-12, 6, 0, 0, 1};
  EXPECT_THAT(fault_of(model), HasSubstr("plane.homography: singular or nearly so"));
}

TEST(CameraModelCheck, RefusesBadNumbersOfTheLens) {
  CameraModel model = brown_model();
  model.lens.camera_matrix = {900, 0, 0, 0, 905, 0, 645, 352, 1};
  EXPECT_THAT(fault_of(model), HasSubstr("is it transposed?"));
  model = brown_model();
  model.lens.camera_matrix[0] = -900;
  EXPECT_THAT(fault_of(model), HasSubstr("focal lengths are -900 and 905"));
  for (const double focal : {1e-308, 1e300, std::numeric_limits<double>::infinity()}) {
    model.lens.camera_matrix[0] = focal;
    EXPECT_THAT(fault_of(model), HasSubstr("[fx, 0, cx, 0, fy, cy, 0, 0, 1] in pixels, fx and fy "
                                           "from 0.1 to 1e+07, cx and cy from -1e+06 to 1e+06"));
  }
  model = brown_model();
  model.lens.camera_matrix[5] = 1e300;
  EXPECT_THAT(fault_of(model), HasSubstr("the principal point is 645.5, 1e+300"));
  model = brown_model();
  model.lens.distortion[0] = 1e300;
  EXPECT_THAT(fault_of(model), HasSubstr("lens.distortion.k1: 1e+300"));
  model = brown_model();
  model.lens.distortion[4] = std::nan("");
  EXPECT_THAT(fault_of(model),
              HasSubstr("lens.distortion.k3: nan; numbers from -1e+09 to 1e+09 for k1"));
  model.lens.model = LensModel::kFisheye;
  model.lens.distortion = {0, 0, 0, 0, 0.1, 0, 0, 0};
  EXPECT_THAT(fault_of(model), HasSubstr("coefficient 5 does not exist in model fisheye"));
  EXPECT_THAT(fault_of(model), HasSubstr("k1 k2 k3 k4"));
}

TEST(CameraModelCheck, RefusesNumbersOfThePlaneWhoseProductsOverflow) {
  CameraModel model = with_plane(brown_model());
  model.plane->homography[2] = 1e300;
  EXPECT_THAT(fault_of(model), HasSubstr("plane.homography: a number is out of range; nine numbers "
                                         "from -1e+12 to 1e+12"));
  model = with_plane(brown_model());
  model.plane->origin_px.x = -1e300;
  EXPECT_THAT(fault_of(model), HasSubstr("plane.origin_px: -1e+300, "));
  model = with_plane(brown_model());
  model.border = 1e300;
  EXPECT_THAT(fault_of(model),
              HasSubstr("plane.border: 1e+300; a grey level from -1e+09 to 1e+09"));
}

TEST(CameraModelCheck, ReportsAllFaultsAtOnce) {
  CameraModel model = with_plane(brown_model());
  model.lens.camera_matrix[0] = 0;
  model.plane->mm_per_px = -1;
  model.plane->homography[0] = std::nan("");
  const std::string faults = fault_of(model);
  EXPECT_EQ(std::count(faults.begin(), faults.end(), '\n'), 2) << faults;
}

}  // namespace
}  // namespace patternd
