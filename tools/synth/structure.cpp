#include "tools/synth/structure.h"

#include <algorithm>
#include <cmath>

namespace patternd::synth {

Structure measure_structure(const SplinePicture& photo, double left, double top, double width,
                            double height) {
  constexpr int kPlaces = 32;
  constexpr double kCount = kPlaces * kPlaces;
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
      sum_squares += sample.value * sample.value;
      xx += sample.dx * sample.dx;
      xy += sample.dx * sample.dy;
      yy += sample.dy * sample.dy;
    }
  }
  Structure structure;
  const double mean = sum / kCount;
  structure.contrast = std::sqrt(std::max(0.0, sum_squares / kCount - mean * mean));
  const double half_trace = (xx + yy) / 2;
  const double spread = std::sqrt((xx - yy) * (xx - yy) / 4 + xy * xy);
  structure.weakest_slope = std::sqrt(std::max(0.0, (half_trace - spread) / kCount));
  return structure;
}

}  // namespace patternd::synth
