// Whether time grows linearly: the line through times by size, and how far they are from it.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace patternd::bench {

struct TimedSize {
  double pixels;
  double us;
};

// us = start_us + us_per_pixel · pixels, by least squares of relative deviations, so that small
// sizes count as large ones do.
struct LinearFit {
  double start_us = 0;
  double us_per_pixel = 0;
  double largest_deviation = 0;  // of a time from the line's, as a part of the time
};

// At least two sizes; times above 0.
//   fit_line({{1e5, 20}, {1e6, 110}})  ->  start 10 us, 1e-4 us a pixel, deviation 0
inline LinearFit fit_line(const std::vector<TimedSize>& times) {
  double w = 0, x = 0, xx = 0, y = 0, xy = 0;
  for (const TimedSize& t : times) {
    const double weight = 1 / (t.us * t.us);
    w += weight;
    x += weight * t.pixels;
    xx += weight * t.pixels * t.pixels;
    y += weight * t.us;
    xy += weight * t.pixels * t.us;
  }
  LinearFit fit;
  fit.us_per_pixel = (w * xy - x * y) / (w * xx - x * x);
  fit.start_us = (y - fit.us_per_pixel * x) / w;
  for (const TimedSize& t : times)
    fit.largest_deviation = std::max(
        fit.largest_deviation, std::abs(fit.start_us + fit.us_per_pixel * t.pixels - t.us) / t.us);
  return fit;
}

// The squares that time against size is measured on: 0.1 to 100 megapixels.
inline constexpr int kSizeSides[] = {316, 548, 1000, 1732, 3162, 5477, 10000};

}  // namespace patternd::bench
