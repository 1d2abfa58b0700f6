// Sine and cosine of an angle in degrees for kernels: the universal image has no mathematics
// library to call.
#pragma once

#include "cuda/kernels/device.h"

namespace patternd::cuda {

struct Turn {
  float cosine;
  float sine;
};

// Within 1e-7, exact at multiples of 90°: for what is small, such as the places of a pattern's
// pixels from its centre. In float but for the angle's reduction: doubles are slow on most GPUs.
//   turn_of(90)  ->  {0, 1}
PATTERND_DEVICE Turn turn_of(double angle_deg) {
  // To the nearest quarter turn; what is left lies in [−45, 45].
  const double quarters = angle_deg * (1.0 / 90.0);
  const int nearest = static_cast<int>(quarters + (quarters < 0 ? -0.5 : 0.5));
  const float rest = static_cast<float>(angle_deg - 90.0 * nearest) * 0.017453292519943295F;
  // Taylor's series; at π/4 the first term left out is below 1e-8.
  const float q = rest * rest;
  float s = 2.7557319e-6F;
  s = fused(s, q, -1.9841270e-4F);
  s = fused(s, q, 8.3333333e-3F);
  s = fused(s, q, -1.6666667e-1F);
  s = fused(rest * q, s, rest);
  float c = -2.7557319e-7F;
  c = fused(c, q, 2.4801587e-5F);
  c = fused(c, q, -1.3888889e-3F);
  c = fused(c, q, 4.1666667e-2F);
  c = fused(c, q, -0.5F);
  c = fused(c, q, 1.0F);
  const bool odd = (nearest & 1) != 0;
  const float across = odd ? s : c;
  const float along = odd ? c : s;
  return {((nearest + 1) & 2) != 0 ? -across : across, (nearest & 2) != 0 ? -along : along};
}

// One turn after the other.
PATTERND_DEVICE Turn turned(const Turn& turn, const Turn& by) {
  return {fused(turn.cosine, by.cosine, -(turn.sine * by.sine)),
          fused(turn.sine, by.cosine, turn.cosine * by.sine)};
}

}  // namespace patternd::cuda
