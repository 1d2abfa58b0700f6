// The measures of the thesis's chapter 3 (T16, T18), as plain arithmetic.
#pragma once

#include <cstdint>

namespace patternd::cuda {

// Eq. 3.1: the share of a block's threads that idle because the last warp is not full; 0 where the
// block is a multiple of the warp (where the thesis's formula does not hold).
//   wasted_share(33, 32)  ->  31/64
[[nodiscard]] inline double wasted_share(int block_threads, int warp) {
  const int rest = block_threads % warp;
  if (rest == 0) return 0;
  const int warps = (block_threads + warp - 1) / warp;
  return static_cast<double>(warp - rest) / (static_cast<double>(warp) * warps);
}

// Eq. 3.2: S = T / T_p.
[[nodiscard]] inline double speed_up(double sequential_us, double parallel_us) {
  return sequential_us / parallel_us;
}
// Eq. 3.3: E = S / p.
[[nodiscard]] inline double efficiency(double sequential_us, double parallel_us, int processors) {
  return speed_up(sequential_us, parallel_us) / processors;
}
// Eq. 3.4: C = p · T_p, here in milliseconds of one processor.
[[nodiscard]] inline double cost_ms(double parallel_us, int processors) {
  return parallel_us * 1e-3 * processors;
}
// Eq. 3.5: v = w · h · s · n / t in GB/s; `accesses` n: how often a pixel is read or written.
[[nodiscard]] inline double access_speed_gb_s(std::int64_t width, std::int64_t height,
                                              int pixel_bytes, int accesses, double time_us) {
  return static_cast<double>(width * height * pixel_bytes * accesses) / time_us * 1e-3;
}

// Single-precision units of a multiprocessor by compute capability: the thesis's processors p.
[[nodiscard]] inline int cores_per_multiprocessor(int major, int minor) {
  if (major == 3) return 192;
  if (major == 6 && minor == 0) return 64;
  if (major == 7 || (major == 8 && minor == 0)) return 64;
  return 128;
}

}  // namespace patternd::cuda
