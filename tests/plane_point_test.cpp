// Points, uncertainties and angles between picture and plane.
#include "calibration/plane_point.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "tests/support/reference_rectify.h"

namespace patternd {
namespace {

CameraModel model() {
  CameraModel m = test::tilted_plane(800, false);
  m.plane->mm_per_px = 0.25;
  m.plane->origin_px = {100, 50};
  return m;
}

TEST(PlanePoint, ComesBackThroughBothDirections) {
  const CameraModel m = model();
  for (const Point2 mm : {Point2{0, 0}, Point2{100, 150}, Point2{-20, 60}}) {
    const auto image = mm_to_image(m, {mm, {}});
    ASSERT_TRUE(image);
    const auto back = image_to_mm(m, {image->point, {}});
    ASSERT_TRUE(back);
    EXPECT_NEAR(back->point.x, mm.x, 1e-8);
    EXPECT_NEAR(back->point.y, mm.y, 1e-8);
  }
}

TEST(PlanePoint, CarriesUncertaintyAsScatteredPointsShowIt) {
  const unsigned seed = 31;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0, 1);
  const CameraModel m = model();
  const UncertainPoint at{{420, 300}, {0.04, 0.01, 0.01, 0.09}};
  const auto carried_point = image_to_mm(m, at);
  ASSERT_TRUE(carried_point);
  double xx = 0;
  double xy = 0;
  double yy = 0;
  constexpr int kPoints = 20000;
  for (int i = 0; i < kPoints; ++i) {
    // Cholesky factor of the covariance above.
    const double a = normal(random);
    const double b = normal(random);
    const Point2 p{at.point.x + 0.2 * a, at.point.y + 0.05 * a + std::sqrt(0.0875) * b};
    const Point2 mm = image_to_mm(m, {p, {}})->point;
    xx += std::pow(mm.x - carried_point->point.x, 2) / kPoints;
    yy += std::pow(mm.y - carried_point->point.y, 2) / kPoints;
    xy += (mm.x - carried_point->point.x) * (mm.y - carried_point->point.y) / kPoints;
  }
  EXPECT_NEAR(xx / carried_point->covariance[0], 1, 0.05);
  EXPECT_NEAR(yy / carried_point->covariance[3], 1, 0.05);
  EXPECT_NEAR(xy, carried_point->covariance[1], 0.05 * carried_point->covariance[0]);
}

TEST(PlanePoint, TurnsADirectionAsTwoPointsShowIt) {
  const CameraModel m = model();
  for (const double angle : {-170.0, -45.0, 0.0, 30.0, 90.0, 179.0}) {
    const Point2 p{350, 420};
    const double radians = angle * std::acos(-1.0) / 180;
    const Point2 a = image_to_mm(m, {p, {}})->point;
    const Point2 b =
        image_to_mm(m, {{p.x + 1e-4 * std::cos(radians), p.y + 1e-4 * std::sin(radians)}, {}})
            ->point;
    const double expected = std::atan2(b.y - a.y, b.x - a.x) * 180 / std::acos(-1.0);
    EXPECT_NEAR(angle_on_plane_deg(m, p, angle).value(), expected, 1e-4);
  }
}

}  // namespace
}  // namespace patternd
