// What is summed up for each component: exact integers, added in any order, turned into a Blob by
// one floating formula at the end.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "pipeline/match.h"

namespace patternd::components {

// Bounds for pictures of 32767×32767: area < 2^30, sum_2x and sum_y < 2^46, the moments < 2^60.
// All zeros is the empty component: the sides of the bounding box are kept so that each is a
// maximum.
struct Geometry {
  std::uint64_t sum_2x;  // twice the sum of x: that of a run, (first + last)·length, is whole
  std::uint64_t sum_y;
  std::uint64_t area;
  std::uint16_t left_from_end;  // 65535 − left
  std::uint16_t right;          // inclusive
  std::uint16_t top_from_end;   // 65535 − top
  std::uint16_t bottom;         // inclusive

  [[nodiscard]] int left() const { return 65535 - left_from_end; }
  [[nodiscard]] int top() const { return 65535 - top_from_end; }
};

struct Intensity {
  std::uint64_t sum;
  std::uint16_t peak, peak_x, peak_y;  // the first in scan order of the largest
};

struct Moments {
  std::uint64_t xx, yy, xy;
};

inline void merge(Geometry& into, const Geometry& from) {
  into.sum_2x += from.sum_2x;
  into.sum_y += from.sum_y;
  into.area += from.area;
  into.left_from_end = std::max(into.left_from_end, from.left_from_end);
  into.right = std::max(into.right, from.right);
  into.top_from_end = std::max(into.top_from_end, from.top_from_end);
  into.bottom = std::max(into.bottom, from.bottom);
}

inline void merge(Intensity& into, const Intensity& from) {
  into.sum += from.sum;
  const bool earlier =
      from.peak_y < into.peak_y || (from.peak_y == into.peak_y && from.peak_x < into.peak_x);
  if (from.peak > into.peak || (from.peak == into.peak && earlier)) {
    into.peak = from.peak;
    into.peak_x = from.peak_x;
    into.peak_y = from.peak_y;
  }
}

inline void merge(Moments& into, const Moments& from) {
  into.xx += from.xx;
  into.yy += from.yy;
  into.xy += from.xy;
}

// Central second moments: the coordinates are shifted to the whole pixel next to the centroid in
// integers (the sums wrap, their result fits), so that nothing cancels in the floating part.
struct Axes {
  double angle_deg;  // of the major axis, [−90, 90)
  double major_px;   // full axes of the ellipse with the same second moments; pixels are unit
  double minor_px;   // squares, so that a single one has 4·sqrt(1/12)
};

inline Axes axes_of(const Geometry& geometry, const Moments& moments) {
  const std::uint64_t n = geometry.area;
  const std::uint64_t sum_x = geometry.sum_2x / 2;
  const std::uint64_t cx = (sum_x + n / 2) / n;
  const std::uint64_t cy = (geometry.sum_y + n / 2) / n;
  const auto dx = static_cast<double>(static_cast<std::int64_t>(sum_x - n * cx));
  const auto dy = static_cast<double>(static_cast<std::int64_t>(geometry.sum_y - n * cy));
  const auto signed_double = [](std::uint64_t v) {
    return static_cast<double>(static_cast<std::int64_t>(v));
  };
  const double sxx = signed_double(moments.xx - 2 * cx * sum_x + n * cx * cx);
  const double syy = signed_double(moments.yy - 2 * cy * geometry.sum_y + n * cy * cy);
  const double sxy = signed_double(moments.xy - cx * geometry.sum_y - cy * sum_x + n * cx * cy);
  const auto area = static_cast<double>(n);
  const double xx = (sxx - dx * dx / area) / area + 1.0 / 12.0;
  const double yy = (syy - dy * dy / area) / area + 1.0 / 12.0;
  const double xy = (sxy - dx * dy / area) / area;

  const double half_difference = (xx - yy) / 2;
  const double mean = (xx + yy) / 2;
  const double radius = std::hypot(half_difference, xy);
  // The product of the eigenvalues is the determinant: the small one without cancellation.
  const double large = mean + radius;
  const double small = std::max((xx * yy - xy * xy) / large, 1.0 / 12.0);
  double angle = 0.5 * std::atan2(2 * xy, xx - yy) * (180.0 / 3.14159265358979323846);
  if (angle >= 90) angle -= 180;
  return {angle, 4 * std::sqrt(large), 4 * std::sqrt(std::min(small, large))};
}

}  // namespace patternd::components
