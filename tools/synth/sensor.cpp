#include "tools/synth/sensor.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "tools/synth/portable_math.h"
#include "tools/synth/random.h"

namespace patternd::synth {
namespace {

// Half of a Gaussian kernel, its middle first; the whole sums to 1.
std::vector<double> half_kernel(double sigma) {
  const int radius = static_cast<int>(std::ceil(4 * sigma));
  std::vector<double> kernel;
  double sum = 0;
  for (int k = 0; k <= radius; ++k) {
    kernel.push_back(exponential(-0.5 * (k / sigma) * (k / sigma)));
    sum += (k == 0 ? 1 : 2) * kernel.back();
  }
  for (double& weight : kernel) weight /= sum;
  return kernel;
}

int mirrored(int index, int count) {
  while (index < 0 || index >= count) index = index < 0 ? -1 - index : 2 * count - 1 - index;
  return index;
}

void filter(const std::vector<double>& kernel, const std::vector<double>& line,
            std::vector<double>& out) {
  const int count = static_cast<int>(line.size());
  const auto at = [&](int i) { return line[static_cast<std::size_t>(mirrored(i, count))]; };
  for (int i = 0; i < count; ++i) {
    double sum = kernel[0] * at(i);
    for (std::size_t k = 1; k < kernel.size(); ++k) {
      const int offset = static_cast<int>(k);
      sum += kernel[k] * (at(i - offset) + at(i + offset));
    }
    out[static_cast<std::size_t>(i)] = sum;
  }
}

template <class Pixel>
void expose_row(const float* exact, Pixel* out, int width, double sigma, double full_scale,
                Random random) {
  const double levels = full_scale / 255;
  for (int x = 0; x < width; ++x) {
    double value = static_cast<double>(exact[x]);
    if (sigma > 0) value += sigma * random.gaussian();
    out[x] = static_cast<Pixel>(std::clamp(std::floor(value * levels + 0.5), 0.0, full_scale));
  }
}

}  // namespace

double light_factor(const Light& light, double x, double y, int width, int height) {
  if (light.gradient == 0) return 1;
  const SinCos direction = sin_cos_deg(light.direction_deg);
  const double centre_x = (width - 1) / 2.0;
  const double centre_y = (height - 1) / 2.0;
  const double reach = std::abs(direction.cos) * centre_x + std::abs(direction.sin) * centre_y;
  if (reach == 0) return 1;
  const double along = (direction.cos * (x - centre_x) + direction.sin * (y - centre_y)) / reach;
  return (1 + light.gradient * along) / (1 + light.gradient);
}

Result<void> blur(MutableImageView picture, double sigma_px) {
  if (auto ok = check_view(picture, "picture to blur"); !ok) return ok;
  if (sigma_px <= 0) return {};
  const std::vector<double> kernel = half_kernel(sigma_px);
  std::vector<double> line(static_cast<std::size_t>(picture.width));
  std::vector<double> filtered(line.size());
  for (int y = 0; y < picture.height; ++y) {
    float* row = picture.row<float>(y);
    std::copy_n(row, line.size(), line.begin());
    filter(kernel, line, filtered);
    for (std::size_t x = 0; x < line.size(); ++x) row[x] = static_cast<float>(filtered[x]);
  }
  line.resize(static_cast<std::size_t>(picture.height));
  filtered.resize(line.size());
  for (int x = 0; x < picture.width; ++x) {
    for (int y = 0; y < picture.height; ++y)
      line[static_cast<std::size_t>(y)] = static_cast<double>(picture.row<float>(y)[x]);
    filter(kernel, line, filtered);
    for (int y = 0; y < picture.height; ++y)
      picture.row<float>(y)[x] = static_cast<float>(filtered[static_cast<std::size_t>(y)]);
  }
  return {};
}

Result<Image> expose(const ImageView& exact, PixelFormat format, double noise_sigma,
                     std::uint64_t seed, int frame) {
  auto picture = Image::create(exact.width, exact.height, format);
  if (!picture) return picture;
  for (int y = 0; y < exact.height; ++y) {
    const Random random(seed, static_cast<std::uint64_t>(frame) + 1, static_cast<std::uint64_t>(y));
    if (format == PixelFormat::kGray16) {
      expose_row(exact.row<float>(y), picture->row<std::uint16_t>(y), exact.width, noise_sigma,
                 65535, random);
    } else {
      expose_row(exact.row<float>(y), picture->row<std::uint8_t>(y), exact.width, noise_sigma, 255,
                 random);
    }
  }
  return picture;
}

}  // namespace patternd::synth
