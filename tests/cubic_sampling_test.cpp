#include "pipeline/cubic_sampling.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace patternd {
namespace {

constexpr float kUntouched = -5;

template <class Pixel>
Image random_picture(int width, int height, PixelFormat format, unsigned seed) {
  std::mt19937 random(seed);
  Image image = std::move(*Image::create(width, height, format));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) image.row<Pixel>(y)[x] = static_cast<Pixel>(random());
  return image;
}

// Lagrange's polynomial through four pixels, straight from its definition.
double lagrange(double t, int node) {
  double product = 1;
  for (int other = -1; other <= 2; ++other)
    if (other != node) product *= (t - other) / (node - other);
  return product;
}

template <class Pixel>
double reference(const ImageView& image, double x, double y, double unit) {
  const int x0 = static_cast<int>(std::floor(x));
  const int y0 = static_cast<int>(std::floor(y));
  double sum = 0;
  for (int j = -1; j <= 2; ++j)
    for (int i = -1; i <= 2; ++i)
      sum += lagrange(x - x0, i) * lagrange(y - y0, j) *
             static_cast<double>(image.row<Pixel>(y0 + j)[x0 + i]);
  return sum * unit;
}

template <class Pixel>
void expect_as_reference(PixelFormat format, double unit, double angle_deg, int width, int height) {
  SCOPED_TRACE(testing::Message() << name_of(format) << " at " << angle_deg << " deg, " << width
                                  << "x" << height << ", seed 11");
  const Image image = random_picture<Pixel>(37, 29, format, 11);
  const double c = std::cos(angle_deg * 0.0174532925);
  const double s = std::sin(angle_deg * 0.0174532925);
  // Sticks out of the picture on all sides.
  const SamplingGrid grid{18 - c * width / 2 + s * height / 2 + 0.3,
                          14 - s * width / 2 - c * height / 2 + 0.1,
                          c,
                          s,
                          -s,
                          c};
  const std::ptrdiff_t stride = patch_stride(width);
  std::vector<float> values(static_cast<std::size_t>(stride * height) + 2 * kPatchLanes,
                            kUntouched);
  sample_cubic(image.view(), grid, {values.data(), nullptr, stride, width, height});
  int sampled = 0;
  for (int j = 0; j < height; ++j) {
    for (int i = 0; i < stride; ++i) {
      const float value = values[static_cast<std::size_t>(j * stride + i)];
      const double x = grid.x + i * grid.ux + j * grid.vx;
      const double y = grid.y + i * grid.uy + j * grid.vy;
      const bool exists = i < width && x >= 1.01 && y >= 1.01 && x <= 37 - 2.01 && y <= 29 - 2.01;
      if (exists) {
        EXPECT_NEAR(static_cast<double>(value), reference<Pixel>(image.view(), x, y, unit), 0.02)
            << i << ", " << j;
        ++sampled;
      } else {
        EXPECT_EQ(value, kUntouched) << i << ", " << j;
      }
    }
  }
  EXPECT_GT(sampled, 5);
}

TEST(CubicSampling, IsLagrangesPolynomialWhereItsPixelsExistAndLeavesTheRest) {
  for (const double angle_deg : {0.0, 1e-9, 30.0, 90.0, -133.0}) {
    for (const int width : {1, 15, 16, 33, 60}) {
      expect_as_reference<std::uint8_t>(PixelFormat::kGray8, 1, angle_deg, width, 41);
      expect_as_reference<std::uint16_t>(PixelFormat::kGray16, 1 / 257.0, angle_deg, width, 41);
    }
  }
}

TEST(CubicSampling, LeavesPicturesAloneThatHoldNoSixteenPixels) {
  const Image image = random_picture<std::uint8_t>(3, 3, PixelFormat::kGray8, 4);
  std::vector<float> values(16 + 2 * kPatchLanes, kUntouched);
  sample_cubic(image.view(), {0, 0, 1, 0, 0, 1}, {values.data(), nullptr, 16, 3, 1});
  for (const float value : values) EXPECT_EQ(value, kUntouched);
}

TEST(CubicSampling, WeighsSoThatCubicsComeOutExactly) {
  for (double t = 0; t < 1; t += 0.125) {
    const auto weights = cubic_weights(t);
    for (int power = 0; power <= 3; ++power) {
      double sum = 0;
      double node = -1;
      for (const double weight : weights) sum += weight * std::pow(node++, power);
      EXPECT_NEAR(sum, std::pow(t, power), 1e-12);
    }
  }
}

}  // namespace
}  // namespace patternd
