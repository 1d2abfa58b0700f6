// The device's sums of a component as the CPU keeps them, so that both become blobs by the same
// formulas.
#pragma once

#include "cuda/kernels/components_parameters.h"
#include "pipeline/components_statistics.h"

namespace patternd::cuda {

// Whether a picture of this size can have it. What a faulty GPU or driver leaves (an area of zero,
// a box without it) must not reach the formulas, which divide.
[[nodiscard]] inline bool is_possible(const DeviceComponent& c, int width, int height) {
  const std::uint64_t left = 65535 - std::uint64_t{c.left_from_end};
  const std::uint64_t top = 65535 - std::uint64_t{c.top_from_end};
  // Each side of the box is some pixel's.
  const auto within = [&c](std::uint64_t sum, std::uint64_t least, std::uint64_t most) {
    return sum >= (c.area - 1) * least + most && sum <= (c.area - 1) * most + least;
  };
  if (left > c.right || c.right >= static_cast<unsigned>(width)) return false;
  if (top > c.bottom || c.bottom >= static_cast<unsigned>(height)) return false;
  if (c.area == 0 || c.area > (c.right - left + 1) * (c.bottom - top + 1)) return false;
  return within(c.sum_x, left, c.right) && within(c.sum_y, top, c.bottom) &&
         within(c.sum_xx, left * left, std::uint64_t{c.right} * c.right) &&
         within(c.sum_yy, top * top, std::uint64_t{c.bottom} * c.bottom) &&
         c.sum_xy >= c.area * left * top && c.sum_xy <= c.area * c.right * c.bottom &&
         c.sum_grey <= c.area * 65535;
}

inline components::Geometry geometry_of(const DeviceComponent& c) {
  return {2 * c.sum_x,
          c.sum_y,
          c.area,
          static_cast<std::uint16_t>(c.left_from_end),
          static_cast<std::uint16_t>(c.right),
          static_cast<std::uint16_t>(c.top_from_end),
          static_cast<std::uint16_t>(c.bottom)};
}

inline components::Intensity intensity_of(const DeviceComponent& c) {
  const auto place = ~static_cast<std::uint32_t>(c.peak);
  return {c.sum_grey, static_cast<std::uint16_t>(c.peak >> 32),
          static_cast<std::uint16_t>(place & 0xFFFF), static_cast<std::uint16_t>(place >> 16)};
}

inline components::Moments moments_of(const DeviceComponent& c) {
  return {c.sum_xx, c.sum_yy, c.sum_xy};
}

}  // namespace patternd::cuda
