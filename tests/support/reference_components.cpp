#include "tests/support/reference_components.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>

namespace patternd::test {
namespace {

std::size_t root_of(std::vector<std::size_t>& parent, std::size_t i) {
  while (parent[i] != i) i = parent[i];
  return i;
}

struct Sums {
  long double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0, grey = 0;
};

void add_pixel(Blob& blob, Sums& sums, int x, int y, double grey) {
  if (sums.n == 0) {
    blob.left = x;
    blob.top = y;
    blob.peak = -1;
  }
  const int right = std::max(blob.left + blob.width - 1, x);
  blob.left = std::min(blob.left, x);
  blob.width = right - blob.left + 1;
  blob.height = y - blob.top + 1;
  if (grey > blob.peak) {
    blob.peak = grey;
    blob.peak_x = x;
    blob.peak_y = y;
  }
  const long double lx = x;
  const long double ly = y;
  sums.n += 1;
  sums.x += lx;
  sums.y += ly;
  sums.xx += lx * lx;
  sums.yy += ly * ly;
  sums.xy += lx * ly;
  sums.grey += static_cast<long double>(grey);
}

void finish(Blob& blob, const Sums& s, int width, int height) {
  blob.area_px = static_cast<std::int64_t>(s.n);
  blob.x_px = static_cast<double>(s.x / s.n);
  blob.y_px = static_cast<double>(s.y / s.n);
  blob.mean = static_cast<double>(s.grey / s.n);
  blob.touches_border = blob.left == 0 || blob.top == 0 || blob.left + blob.width == width ||
                        blob.top + blob.height == height;
  const long double xx = s.xx / s.n - s.x / s.n * (s.x / s.n) + 1.0L / 12;
  const long double yy = s.yy / s.n - s.y / s.n * (s.y / s.n) + 1.0L / 12;
  const long double xy = s.xy / s.n - s.x / s.n * (s.y / s.n);
  const long double radius = std::sqrt((xx - yy) * (xx - yy) / 4 + xy * xy);
  blob.major_px = static_cast<double>(4 * std::sqrt((xx + yy) / 2 + radius));
  blob.minor_px = static_cast<double>(4 * std::sqrt((xx + yy) / 2 - radius));
  blob.angle_deg = static_cast<double>(std::atan2(2 * xy, xx - yy) / 2 * 57.295779513082320877L);
}

}  // namespace

ReferenceLabels label_plainly(int width, int height, int connectivity,
                              const std::function<bool(int, int)>& foreground,
                              const std::function<bool(int, int, int, int)>& connected,
                              const std::function<double(int, int)>& grey) {
  const auto w = static_cast<std::size_t>(width);
  std::vector<std::size_t> parent(w * static_cast<std::size_t>(height));
  const auto at = [w](int x, int y) {
    return static_cast<std::size_t>(y) * w + static_cast<std::size_t>(x);
  };
  for (std::size_t i = 0; i < parent.size(); ++i) parent[i] = i;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (!foreground(x, y)) continue;
      for (const auto& [dx, dy] : {std::pair{-1, 0}, {0, -1}, {-1, -1}, {1, -1}}) {
        if (connectivity == 4 && dx != 0 && dy != 0) continue;
        const int nx = x + dx;
        const int ny = y + dy;
        if (nx < 0 || ny < 0 || nx >= width || !foreground(nx, ny)) continue;
        if (!connected(x, y, nx, ny)) continue;
        const std::size_t a = root_of(parent, at(x, y));
        const std::size_t b = root_of(parent, at(nx, ny));
        parent[std::max(a, b)] = std::min(a, b);
      }
    }
  }
  ReferenceLabels result{width, height, std::vector<std::int32_t>(parent.size(), 0), {}};
  std::vector<Sums> sums;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      if (!foreground(x, y)) continue;
      const std::size_t root = root_of(parent, at(x, y));
      if (root == at(x, y)) {
        result.blobs.emplace_back();
        sums.emplace_back();
        result.labels[root] = static_cast<std::int32_t>(result.blobs.size());
      }
      const std::int32_t label = result.labels[root];
      result.labels[at(x, y)] = label;
      const auto index = static_cast<std::size_t>(label - 1);
      add_pixel(result.blobs[index], sums[index], x, y, grey(x, y));
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) finish(result.blobs[i], sums[i], width, height);
  return result;
}

namespace {

int channel(const ImageView& image, int x, int y, int c) {
  if (image.format == PixelFormat::kGray16) return image.row<std::uint16_t>(y)[x];
  if (image.format == PixelFormat::kRgb8) return image.row<std::uint8_t>(y)[3 * x + c];
  return image.row<std::uint8_t>(y)[x];
}

bool above_local_mean(const ImageView& image, const BlobParams& params, int x, int y) {
  const int r = params.adaptive_radius;
  double sum = 0;
  double count = 0;
  for (int v = std::max(y - r, 0); v <= std::min(y + r, image.height - 1); ++v) {
    for (int u = std::max(x - r, 0); u <= std::min(x + r, image.width - 1); ++u) {
      sum += channel(image, u, v, 0);
      count += 1;
    }
  }
  const double above = channel(image, x, y, 0) * count - sum;
  return (params.below ? -above : above) > params.adaptive_offset * count;
}

}  // namespace

ReferenceLabels label_plainly(const ImageView& image, const BlobParams& params) {
  const bool similarity = params.mode == BlobParams::Mode::kSimilarity;
  const int channels = image.format == PixelFormat::kRgb8 ? 3 : 1;
  std::vector<bool> mask;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const double value = channel(image, x, y, 0);
      mask.push_back(similarity ? true
                     : params.mode == BlobParams::Mode::kAdaptive
                         ? above_local_mean(image, params, x, y)
                     : params.below ? value < params.threshold
                                    : value > params.threshold);
    }
  }
  const auto foreground = [&](int x, int y) {
    return static_cast<bool>(
        mask[static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) +
             static_cast<std::size_t>(x)]);
  };
  const auto connected = [&](int x, int y, int nx, int ny) {
    if (!similarity) return true;
    int largest = 0;
    for (int c = 0; c < channels; ++c)
      largest = std::max(largest, std::abs(channel(image, x, y, c) - channel(image, nx, ny, c)));
    return largest <= params.similarity;
  };
  const auto grey = [&](int x, int y) {
    if (channels == 1) return static_cast<double>(channel(image, x, y, 0));
    const int luma = 77 * channel(image, x, y, 0) + 150 * channel(image, x, y, 1) +
                     29 * channel(image, x, y, 2) + 128;
    return static_cast<double>(luma / 256);
  };
  return label_plainly(image.width, image.height, params.connectivity, foreground, connected, grey);
}

void expect_same(const ReferenceLabels& expected, const ComponentLabeller& labeller,
                 const ImageView& labels) {
  ASSERT_EQ(static_cast<std::int64_t>(expected.blobs.size()), labeller.count());
  for (int y = 0; y < expected.height; ++y) {
    const auto* row = labels.row<std::int32_t>(y);
    const auto* wanted = expected.labels.data() +
                         static_cast<std::size_t>(y) * static_cast<std::size_t>(expected.width);
    for (int x = 0; x < expected.width; ++x)
      ASSERT_EQ(wanted[x], row[x]) << "label at " << x << ", " << y;
  }
  for (std::size_t i = 0; i < expected.blobs.size(); ++i) {
    SCOPED_TRACE("label " + std::to_string(i + 1));
    const Blob& want = expected.blobs[i];
    const Blob got = labeller.blob(static_cast<std::int64_t>(i) + 1);
    ASSERT_EQ(want.area_px, got.area_px);
    ASSERT_EQ(want.left, got.left);
    ASSERT_EQ(want.top, got.top);
    ASSERT_EQ(want.width, got.width);
    ASSERT_EQ(want.height, got.height);
    ASSERT_EQ(want.peak, got.peak);
    ASSERT_EQ(want.peak_x, got.peak_x);
    ASSERT_EQ(want.peak_y, got.peak_y);
    ASSERT_EQ(want.touches_border, got.touches_border);
    ASSERT_DOUBLE_EQ(want.x_px, got.x_px);
    ASSERT_DOUBLE_EQ(want.y_px, got.y_px);
    ASSERT_DOUBLE_EQ(want.mean, got.mean);
    ASSERT_NEAR(want.major_px, got.major_px, 1e-9 * want.major_px);
    ASSERT_NEAR(want.minor_px, got.minor_px, 1e-6);
    // A round component has no direction.
    if (want.major_px - want.minor_px > 1e-6) {
      const double turn = std::remainder(want.angle_deg - got.angle_deg, 180.0);
      ASSERT_NEAR(0, turn, 1e-6);
    }
    ASSERT_GE(got.angle_deg, -90);
    ASSERT_LT(got.angle_deg, 90);
  }
}

}  // namespace patternd::test
