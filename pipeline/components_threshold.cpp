#include "pipeline/components_threshold.h"

#include <algorithm>
#include <cmath>

namespace patternd::components {
namespace {

template <class T>
void count_values(const ImageView& image, std::uint32_t* histogram) {
  for (int y = 0; y < image.height; ++y) {
    const T* row = image.row<T>(y);
    for (int x = 0; x < image.width; ++x) ++histogram[row[x]];
  }
}

}  // namespace

GreyRange foreground_range(double threshold, bool below, int max_value) {
  const double limit = static_cast<double>(max_value);
  if (below) {
    const double high = std::ceil(threshold) - 1;
    return {0, static_cast<int>(std::clamp(high, -1.0, limit))};
  }
  const double low = std::floor(threshold) + 1;
  return {static_cast<int>(std::clamp(low, 0.0, limit + 1)), max_value};
}

double otsu_threshold(const ImageView& image, std::uint32_t* histogram) {
  const int values = image.format == PixelFormat::kGray8 ? 256 : 65536;
  std::fill_n(histogram, values, 0);
  if (image.format == PixelFormat::kGray8)
    count_values<std::uint8_t>(image, histogram);
  else
    count_values<std::uint16_t>(image, histogram);

  std::uint64_t total = 0;
  std::uint64_t total_sum = 0;
  for (int v = 0; v < values; ++v) {
    total += histogram[v];
    total_sum += static_cast<std::uint64_t>(v) * histogram[v];
  }
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  double best = 0;
  const std::uint64_t mean = total_sum / total;
  auto threshold = static_cast<double>(mean);
  for (int v = 0; v < values; ++v) {
    if (histogram[v] == 0) continue;  // the same split as before
    count += histogram[v];
    sum += static_cast<std::uint64_t>(v) * histogram[v];
    if (count == total) break;
    const auto low = static_cast<double>(count);
    const auto high = static_cast<double>(total - count);
    const double difference =
        static_cast<double>(total_sum - sum) / high - static_cast<double>(sum) / low;
    const double between = low * high * difference * difference;
    if (between > best) {
      best = between;
      threshold = v + 0.5;
    }
  }
  return threshold;
}

}  // namespace patternd::components
