// Sine and cosine of an angle in degrees, for host and device alike: the universal image has no
// mathematics library to call. Exact at multiples of 90°, within 2e-16 elsewhere.
#pragma once

#if defined(__CUDA__) || defined(__CUDACC__)
#define PATTERND_SHARED static __device__ inline
#else
#define PATTERND_SHARED inline
#endif

namespace patternd::cuda {

struct Turn {
  double cosine;
  double sine;
};

//   turn_of(90)  ->  {0, 1}
PATTERND_SHARED Turn turn_of(double angle_deg) {
  // To the nearest quarter turn; what is left lies in [−45, 45].
  const double quarters = angle_deg / 90.0;
  const long long nearest = static_cast<long long>(quarters + (quarters < 0 ? -0.5 : 0.5));
  const double rest =
      (angle_deg - 90.0 * static_cast<double>(nearest)) * (3.14159265358979323846 / 180.0);
  // Taylor's series; at π/4 the first term left out is below 1e-17.
  const double q = rest * rest;
  double s = -1.0 / 1307674368000.0;
  s = s * q + 1.0 / 6227020800.0;
  s = s * q - 1.0 / 39916800.0;
  s = s * q + 1.0 / 362880.0;
  s = s * q - 1.0 / 5040.0;
  s = s * q + 1.0 / 120.0;
  s = s * q - 1.0 / 6.0;
  s = rest + rest * q * s;
  double c = 1.0 / 20922789888000.0;
  c = c * q - 1.0 / 87178291200.0;
  c = c * q + 1.0 / 479001600.0;
  c = c * q - 1.0 / 3628800.0;
  c = c * q + 1.0 / 40320.0;
  c = c * q - 1.0 / 720.0;
  c = c * q + 1.0 / 24.0;
  c = c * q - 0.5;
  c = 1.0 + q * c;
  switch (nearest & 3) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

}  // namespace patternd::cuda
