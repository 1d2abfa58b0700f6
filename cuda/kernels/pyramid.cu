// The pyramid (T12): each level the exact 2×2 mean, (a + b + c + d + 2) / 4, of the one below it.
// A block reads 64 × 64 pixels of level 0 and writes what they become in up to six levels, so level
// 0 is read once and the other levels never: one launch for six levels.

#include "cuda/kernels/device.h"

namespace patternd::cuda {

template <class Pixel>
PATTERND_DEVICE Pixel mean_of(u32 a, u32 b, u32 c, u32 d) {
  return static_cast<Pixel>((a + b + c + d + 2U) >> 2);
}

template <class Pixel>
PATTERND_DEVICE void put(const PyramidParameters& p, int level, int x, int y, Pixel value) {
  const PyramidLevel& out = p.levels[level];
  if (x < out.width && y < out.height)
    reinterpret_cast<Pixel*>(global<u8>(out.address) + static_cast<i64>(y) * out.stride_bytes)[x] =
        value;
}

template <class Pixel>
PATTERND_DEVICE void halve_all(const PyramidParameters& p) {
  constexpr int kHalf = kPyramidTile / 2;
  __shared__ Pixel tile[kHalf][kHalf + 2];
  const int threads = threads_x();
  const PyramidLevel& in = p.levels[0];
  const PyramidLevel& first = p.levels[1];
  for (int i = thread_x(); i < kHalf * kHalf; i += threads) {
    const int tx = i % kHalf;
    const int ty = i / kHalf;
    const int x = block_x() * kHalf + tx;
    const int y = block_y() * kHalf + ty;
    if (x < first.width && y < first.height) {
      const Pixel* top = reinterpret_cast<const Pixel*>(global<const u8>(in.address) +
                                                        static_cast<i64>(2 * y) * in.stride_bytes) +
                         2 * x;
      const Pixel* bottom =
          reinterpret_cast<const Pixel*>(reinterpret_cast<const u8*>(top) + in.stride_bytes);
      const Pixel value = mean_of<Pixel>(top[0], top[1], bottom[0], bottom[1]);
      tile[ty][tx] = value;
      put(p, 1, x, y, value);
    } else {
      // Read by pixels that no level has.
      tile[ty][tx] = 0;
    }
  }
  int side = kHalf / 2;
  for (int level = 2; level < p.level_count; ++level, side /= 2) {
    block_barrier();
    // In place: what a thread of this pass reads, another may overwrite, hence the two steps.
    Pixel mine[kHalf * kHalf / 4 / kPyramidThreads];
#pragma unroll
    for (int k = 0; k < kHalf * kHalf / 4 / kPyramidThreads; ++k) {
      const int i = thread_x() + k * kPyramidThreads;
      const int tx = i % side;
      const int ty = i / side;
      mine[k] = 0;
      if (ty < side) {
        mine[k] = mean_of<Pixel>(tile[2 * ty][2 * tx], tile[2 * ty][2 * tx + 1],
                                 tile[2 * ty + 1][2 * tx], tile[2 * ty + 1][2 * tx + 1]);
        put(p, level, block_x() * side + tx, block_y() * side + ty, mine[k]);
      }
    }
    block_barrier();
#pragma unroll
    for (int k = 0; k < kHalf * kHalf / 4 / kPyramidThreads; ++k) {
      const int i = thread_x() + k * kPyramidThreads;
      if (i / side < side) tile[i / side][i % side] = mine[k];
    }
  }
}

PATTERND_KERNEL __launch_bounds__(256) patternd_pyramid_halve_gray8(const PyramidParameters p) {
  halve_all<u8>(p);
}
PATTERND_KERNEL __launch_bounds__(256) patternd_pyramid_halve_gray16(const PyramidParameters p) {
  halve_all<u16>(p);
}

}  // namespace patternd::cuda
