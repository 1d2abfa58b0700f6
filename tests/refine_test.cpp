#include "pipeline/refine.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "pipeline/match_angles.h"

namespace patternd {
namespace {

constexpr int kSide = 160;
constexpr double kMiddle = 79.5;

// Grey level as a function of the place relative to the pattern's centre.
using Field = std::function<double(double x, double y)>;

Image picture_of(int side, const Field& field) {
  Image image = std::move(*Image::create(side, side, PixelFormat::kGray8));
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x)
      image.row<std::uint8_t>(y)[x] =
          static_cast<std::uint8_t>(std::clamp(field(x, y) + 0.5, 0.0, 255.0));
  }
  return image;
}

// Waves of 4 to 12 pixels, and of 60 to 100, in all directions.
Field waves(unsigned seed) {
  struct Wave {
    double kx, ky, phase, height;
  };
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Wave> all;
  for (int i = 0; i < 16; ++i) {
    const bool fine = i < 12;
    const double length = fine ? 4 + 8 * uniform(random) : 60 + 40 * uniform(random);
    const double direction = 6.2831853 * uniform(random);
    const double k = 6.2831853 / length;
    all.push_back({k * std::cos(direction), k * std::sin(direction), 6.2831853 * uniform(random),
                   fine ? 8.0 : 15.0});
  }
  return [all](double x, double y) {
    double sum = 110;
    for (const Wave& wave : all)
      sum += wave.height * std::cos(wave.kx * x + wave.ky * y + wave.phase);
    return sum;
  };
}

// The field turned by `angle_deg` with its origin at (x, y).
Field placed(const Field& field, double x, double y, double angle_deg) {
  const double c = std::cos(angle_deg * kDegToRad);
  const double s = std::sin(angle_deg * kDegToRad);
  return [=](double px, double py) {
    return field(c * (px - x) + s * (py - y), c * (py - y) - s * (px - x));
  };
}

struct Bench {
  RefinePattern pattern;
  TraceScratch scratch;
};

Bench bench_for(const Field& field, int side, bool with_angle = true) {
  const double middle = (side - 1) / 2.0;
  const Image picture = picture_of(side, placed(field, middle, middle, 0));
  auto taught = teach_pattern("part", picture.view(), {}, {});
  EXPECT_TRUE(taught) << (taught ? "" : taught.error().message);
  const auto pyramid = make_pattern_pyramid(*taught, 0);
  return {make_refine_pattern(make_trace_level(pyramid[0], 0), with_angle, false),
          TraceScratch(side, side)};
}

Refinement refine_in(Bench& bench, const Image& image, Candidate& candidate) {
  TraceImage searched;
  searched.image = image.view();
  searched.least_visible = 1;
  return refine(bench.pattern, searched, bench.scratch, candidate);
}

Candidate near(double x, double y, double angle_deg) {
  Candidate out;
  out.x = x + 0.3;
  out.y = y - 0.25;
  out.angle_deg = angle_deg + 0.2;
  return out;
}

TEST(Refine, IsExactAtEverySubPixelPhaseOfFineTextureAlongThePixels) {
  SCOPED_TRACE("seed 3");
  const Field field = waves(3);
  Bench bench = bench_for(field, 64);
  for (const double angle_deg : {0.0, 0.3, 90.0, 37.0}) {
    for (int k = 0; k < 8; ++k) {
      const double x = kMiddle + k / 8.0;
      const double y = kMiddle + ((3 * k) % 8) / 8.0;
      const Image image = picture_of(kSide, placed(field, x, y, angle_deg));
      Candidate found = near(x, y, angle_deg);
      ASSERT_TRUE(refine_in(bench, image, found).converged) << angle_deg << " phase " << k;
      EXPECT_NEAR(found.x, x, 0.008) << angle_deg << " phase " << k;
      EXPECT_NEAR(found.y, y, 0.008) << angle_deg << " phase " << k;
      EXPECT_NEAR(found.angle_deg, angle_deg, 0.012) << angle_deg << " phase " << k;
    }
  }
}

TEST(Refine, IsNotDrawnToTheBrightSideWhereTheLightFallsUnevenly) {
  SCOPED_TRACE("seed 5");
  const Field field = waves(5);
  Bench bench = bench_for(field, 96);
  for (const double fall : {-0.3, 0.3}) {
    const Field lit = [&](double x, double y) {
      return placed(field, 80.3, 79.1, 20)(x, y) * (1 + fall * (x - 80) / 48) *
             (1 - fall / 2 * (y - 80) / 48);
    };
    Candidate found = near(80.3, 79.1, 20);
    ASSERT_TRUE(refine_in(bench, picture_of(kSide, lit), found).converged);
    EXPECT_NEAR(found.x, 80.3, 0.01);
    EXPECT_NEAR(found.y, 79.1, 0.01);
    EXPECT_NEAR(found.angle_deg, 20, 0.01);
  }
}

// Where it looks the same as a shift, a ramp of the gain is left out.
TEST(Refine, KeepsTheCentreOfASmoothBlobInEvenLight) {
  const Field blob = [](double x, double y) {
    return 20 + 200 * std::exp(-(x * x + y * y) / (2 * 8.0 * 8.0));
  };
  Bench bench = bench_for(blob, 48, false);
  Candidate found = near(80.2, 79.6, -0.2);
  const Refinement refinement =
      refine_in(bench, picture_of(kSide, placed(blob, 80.2, 79.6, 0)), found);
  ASSERT_TRUE(refinement.converged);
  EXPECT_NEAR(found.x, 80.2, 0.01);
  EXPECT_NEAR(found.y, 79.6, 0.01);
  EXPECT_TRUE(std::isfinite(refinement.x_std_px));
}

TEST(Refine, LeavesACandidateAloneThatIsTooFarOff) {
  SCOPED_TRACE("seed 3");
  const Field field = waves(3);
  Bench bench = bench_for(field, 64);
  Candidate found = near(80 + 9, 80, 0);
  const Candidate before = found;
  const Refinement refinement =
      refine_in(bench, picture_of(kSide, placed(field, 80, 80, 0)), found);
  if (!refinement.converged) {
    EXPECT_EQ(refinement.x_std_px, 1) << "known to a step of the search, not exactly";
    EXPECT_EQ(refinement.y_std_px, 1);
    EXPECT_NEAR(refinement.angle_std_deg, 180 / M_PI / (64 * std::sqrt(0.5)), 1e-9);
    EXPECT_EQ(found.x, before.x);
    EXPECT_EQ(found.y, before.y);
    EXPECT_EQ(found.score, before.score);
  } else {
    EXPECT_LT(std::hypot(found.x - before.x, found.y - before.y), 3);
  }
}

}  // namespace
}  // namespace patternd
