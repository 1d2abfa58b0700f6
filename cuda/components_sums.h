// The device's sums of a component as the CPU keeps them, so that both become blobs by the same
// formulas.
#pragma once

#include "cuda/kernels/components_parameters.h"
#include "pipeline/components_statistics.h"

namespace patternd::cuda {

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
