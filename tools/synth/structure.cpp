#include "tools/synth/structure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace patternd::synth {

Structure measure_structure(const SplinePicture& photo, double left, double top, double width,
                            double height) {
  constexpr int kPlaces = 32;
  constexpr double kCount = kPlaces * kPlaces;
  constexpr int kBlocks = 8;
  constexpr int kBlockPlaces = kPlaces / kBlocks;
  std::array<double, kBlocks * kBlocks> block_sums{};
  double sum = 0;
  double sum_squares = 0;
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (int j = 0; j < kPlaces; ++j) {
    for (int i = 0; i < kPlaces; ++i) {
      const auto sample = photo.sample(left + (i + 0.5) * width / kPlaces - 0.5,
                                       top + (j + 0.5) * height / kPlaces - 0.5);
      sum += sample.value;
      const int block = j / kBlockPlaces * kBlocks + i / kBlockPlaces;
      block_sums[static_cast<std::size_t>(block)] += sample.value;
      sum_squares += sample.value * sample.value;
      xx += sample.dx * sample.dx;
      xy += sample.dx * sample.dy;
      yy += sample.dy * sample.dy;
    }
  }
  Structure structure;
  const double mean = sum / kCount;
  const double variance = std::max(0.0, sum_squares / kCount - mean * mean);
  structure.contrast = std::sqrt(variance);
  double between_blocks = 0;
  for (const double block_sum : block_sums) {
    const double difference = block_sum / (kBlockPlaces * kBlockPlaces) - mean;
    between_blocks += difference * difference / (kBlocks * kBlocks);
  }
  structure.coarse_share = variance > 0 ? between_blocks / variance : 1;
  const double half_trace = (xx + yy) / 2;
  const double spread = std::sqrt((xx - yy) * (xx - yy) / 4 + xy * xy);
  structure.weakest_slope = std::sqrt(std::max(0.0, (half_trace - spread) / kCount));
  return structure;
}

}  // namespace patternd::synth
