#include "tests/support/match_scene.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "pipeline/match_angles.h"

namespace patternd::test {
namespace {

constexpr int kSamples = 4;

double value_at(const ImageView& image, int x, int y) {
  return image.format == PixelFormat::kGray8
             ? static_cast<double>(image.row<std::uint8_t>(y)[x])
             : static_cast<double>(image.row<std::uint16_t>(y)[x]) / 257.0;
}

double bilinear_at(const ImageView& image, double x, double y) {
  x = std::clamp(x, 0.0, image.width - 1.0);
  y = std::clamp(y, 0.0, image.height - 1.0);
  const int x0 = static_cast<int>(x);
  const int y0 = static_cast<int>(y);
  const int x1 = std::min(x0 + 1, image.width - 1);
  const int y1 = std::min(y0 + 1, image.height - 1);
  const double top = value_at(image, x0, y0) * (x0 + 1 - x) + value_at(image, x1, y0) * (x - x0);
  const double bottom = value_at(image, x0, y1) * (x0 + 1 - x) + value_at(image, x1, y1) * (x - x0);
  return top * (y0 + 1 - y) + bottom * (y - y0);
}

int mirrored(int i, int size) {
  if (size == 1) return 0;
  const int period = 2 * (size - 1);
  i = ((i % period) + period) % period;
  return i < size ? i : period - i;
}

struct InPattern {
  double x = 0;
  double y = 0;
  bool inside = false;
};

InPattern to_pattern(const Placed& at, const ImageView& pattern, double x, double y) {
  const double c = std::cos(at.angle_deg * kDegToRad) / at.scale;
  const double s = std::sin(at.angle_deg * kDegToRad) / at.scale;
  const double dx = x - at.x;
  const double dy = y - at.y;
  InPattern out;
  out.x = c * dx + s * dy + (pattern.width - 1) / 2.0;
  out.y = c * dy - s * dx + (pattern.height - 1) / 2.0;
  out.inside =
      out.x >= -0.5 && out.y >= -0.5 && out.x < pattern.width - 0.5 && out.y < pattern.height - 0.5;
  return out;
}

double sample_scene(const MatchScene& scene, const ImageView& pattern, const ImageView& mask,
                    double background, double x, double y) {
  for (const Placed& at : scene.placed) {
    const InPattern p = to_pattern(at, pattern, x, y);
    if (!p.inside) continue;
    if (mask.data != nullptr &&
        mask.row<std::uint8_t>(static_cast<int>(p.y + 0.5))[static_cast<int>(p.x + 0.5)] == 0)
      continue;
    const double value = bilinear_at(pattern, p.x, p.y);
    return at.inverted ? 255 - value : value;
  }
  return background;
}

void store(MutableImageView image, int x, int y, double value) {
  value = std::clamp(value, 0.0, 255.0);
  if (image.format == PixelFormat::kGray8)
    image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(value));
  else
    image.row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(std::lround(value * 257));
}

}  // namespace

Image render_scene(const MatchScene& scene, const ImageView& pattern, const ImageView& mask,
                   const ImageView& background) {
  auto image = Image::create(scene.width, scene.height, scene.format);
  std::mt19937 random(scene.seed);
  std::normal_distribution<double> noise(0, 1);
  for (int y = 0; y < scene.height; ++y) {
    for (int x = 0; x < scene.width; ++x) {
      const double behind =
          background.data == nullptr
              ? 128
              : value_at(background, mirrored(x, background.width), mirrored(y, background.height));
      double value = behind;
      const bool near = std::any_of(scene.placed.begin(), scene.placed.end(), [&](const Placed& p) {
        const double reach = std::hypot(pattern.width, pattern.height) / 2 * p.scale + 2;
        return std::abs(p.x - x) < reach && std::abs(p.y - y) < reach;
      });
      if (near) {
        value = 0;
        for (int k = 0; k < kSamples * kSamples; ++k) {
          const double dx = (k % kSamples + 0.5) / kSamples - 0.5;
          const double dy = (k / kSamples + 0.5) / kSamples - 0.5;
          value += sample_scene(scene, pattern, mask, behind, x + dx, y + dy);
        }
        value /= kSamples * kSamples;
      }
      const double along = (x + 0.5 * y) / (scene.width + 0.5 * scene.height) - 0.5;
      value *= 1 + 2 * scene.light_gradient * along;
      store(image->view(), x, y, value + scene.noise_sigma * noise(random));
    }
  }
  return std::move(*image);
}

Image made_texture(int width, int height, unsigned seed, PixelFormat format) {
  auto image = Image::create(width, height, format);
  std::vector<double> sum(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), 128);
  double amplitude = 55;
  for (int cell = std::max(8, std::min(width, height) / 3); cell >= 3; cell /= 2) {
    std::mt19937 random(seed + static_cast<unsigned>(cell) * 7919U);
    std::uniform_real_distribution<double> uniform(-1, 1);
    auto knots = Image::create(width / cell + 2, height / cell + 2, PixelFormat::kGray8);
    for (int y = 0; y < knots->height(); ++y)
      for (int x = 0; x < knots->width(); ++x)
        knots->row<std::uint8_t>(y)[x] =
            static_cast<std::uint8_t>(std::lround(127.5 + 127.5 * uniform(random)));
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const double fx = static_cast<double>(x % cell) / cell;
        const double fy = static_cast<double>(y % cell) / cell;
        const double smooth_x = fx * fx * (3 - 2 * fx);
        const double smooth_y = fy * fy * (3 - 2 * fy);
        sum[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
            static_cast<std::size_t>(x)] +=
            amplitude *
            (bilinear_at(knots->view(), x / cell + smooth_x, y / cell + smooth_y) / 127.5 - 1);
      }
    }
    amplitude *= 0.75;
  }
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      store(image->view(), x, y,
            sum[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                static_cast<std::size_t>(x)]);
  return std::move(*image);
}

double reference_score(const ImageView& picture, const ImageView& pattern, const ImageView& mask,
                       const Placed& pose) {
  double n = 0;
  double sum_s = 0;
  double sum_t = 0;
  double sum_ss = 0;
  double sum_tt = 0;
  double sum_st = 0;
  const double c = std::cos(pose.angle_deg * kDegToRad) * pose.scale;
  const double s = std::sin(pose.angle_deg * kDegToRad) * pose.scale;
  for (int y = 0; y < pattern.height; ++y) {
    for (int x = 0; x < pattern.width; ++x) {
      if (mask.data != nullptr && mask.row<std::uint8_t>(y)[x] == 0) continue;
      const double qx = x - (pattern.width - 1) / 2.0;
      const double qy = y - (pattern.height - 1) / 2.0;
      const double px = pose.x + c * qx - s * qy;
      const double py = pose.y + s * qx + c * qy;
      if (px < -0.5 || py < -0.5 || px > picture.width - 0.5 || py > picture.height - 0.5) continue;
      const double value = bilinear_at(picture, px, py);
      const double t = value_at(pattern, x, y);
      n += 1;
      sum_s += value;
      sum_t += t;
      sum_ss += value * value;
      sum_tt += t * t;
      sum_st += value * t;
    }
  }
  const double variances = (sum_ss - sum_s * sum_s / n) * (sum_tt - sum_t * sum_t / n);
  return variances > 0 ? (sum_st - sum_s * sum_t / n) / std::sqrt(variances) : 0;
}

}  // namespace patternd::test
