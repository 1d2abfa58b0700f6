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

// What a pixel of level 1 is made of: level 0 in memory, or a tile of it in shared memory.
template <class Pixel>
struct HalvedMemory {
  const PyramidLevel& in;
  __device__ Pixel operator()(int x, int y) const {
    const Pixel* top = reinterpret_cast<const Pixel*>(global<const u8>(in.address) +
                                                      static_cast<i64>(2 * y) * in.stride_bytes) +
                       2 * x;
    const Pixel* bottom =
        reinterpret_cast<const Pixel*>(reinterpret_cast<const u8*>(top) + in.stride_bytes);
    return mean_of<Pixel>(top[0], top[1], bottom[0], bottom[1]);
  }
};
// A tile of level 0 in shared memory, in pieces of 16 bytes.
template <class Pixel>
struct TakenTile {
  static constexpr int kPieces = kPyramidTile * static_cast<int>(sizeof(Pixel)) / 16;  // of a row
  Float4 rows[kPyramidTile][kPieces + 1];
  __device__ Pixel at(int x, int y) const { return reinterpret_cast<const Pixel*>(rows[y])[x]; }
};
template <class Pixel>
struct HalvedTile {
  const TakenTile<Pixel>& tile;
  __device__ Pixel operator()(int x, int y) const {
    x = 2 * x % kPyramidTile;
    y = 2 * y % kPyramidTile;
    return mean_of<Pixel>(tile.at(x, y), tile.at(x + 1, y), tile.at(x, y + 1),
                          tile.at(x + 1, y + 1));
  }
};

// Reads a tile of the frame where the host has it, and writes it to level 0.
template <class Pixel>
PATTERND_DEVICE void take_tile(const PyramidParameters& p, TakenTile<Pixel>& tile) {
  constexpr int kOfAPiece = 16 / static_cast<int>(sizeof(Pixel));
  const PyramidLevel& in = p.levels[0];
  for (int i = thread_x(); i < kPyramidTile * TakenTile<Pixel>::kPieces; i += threads_x()) {
    const int row = i / TakenTile<Pixel>::kPieces;
    const int piece = i % TakenTile<Pixel>::kPieces;
    const int x = block_x() * kPyramidTile + piece * kOfAPiece;
    const int y = block_y() * kPyramidTile + row;
    if (x >= in.width || y >= in.height) continue;
    const Pixel* from = reinterpret_cast<const Pixel*>(global<const u8>(in.address) +
                                                       static_cast<i64>(y) * in.stride_bytes) +
                        x;
    Float4& place = tile.rows[row][piece];
    if (x + kOfAPiece <= in.width) {
      place = *reinterpret_cast<const Float4*>(from);
    } else {  // Behind the last row's end the frame's memory may end.
      for (int k = 0; x + k < in.width; ++k) reinterpret_cast<Pixel*>(&place)[k] = from[k];
    }
    *reinterpret_cast<Float4*>(global<u8>(p.copy.address) +
                               static_cast<i64>(y) * p.copy.stride_bytes +
                               static_cast<i64>(x) * static_cast<i64>(sizeof(Pixel))) = place;
  }
  block_barrier();
}

template <class Pixel, class FirstLevel>
PATTERND_DEVICE void halve_all(const PyramidParameters& p, const FirstLevel& pixel_of_first) {
  constexpr int kHalf = kPyramidTile / 2;
  __shared__ Pixel tile[kHalf][kHalf + 2];
  const int threads = threads_x();
  const PyramidLevel& first = p.levels[1];
  for (int i = thread_x(); i < kHalf * kHalf; i += threads) {
    const int tx = i % kHalf;
    const int ty = i / kHalf;
    const int x = block_x() * kHalf + tx;
    const int y = block_y() * kHalf + ty;
    if (x < first.width && y < first.height) {
      const Pixel value = pixel_of_first(x, y);
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
  halve_all<u8>(p, HalvedMemory<u8>{p.levels[0]});
}
PATTERND_KERNEL __launch_bounds__(256) patternd_pyramid_halve_gray16(const PyramidParameters p) {
  halve_all<u16>(p, HalvedMemory<u16>{p.levels[0]});
}

// The same from a frame that lies in the host's memory, which becomes level 0 on the way.
PATTERND_KERNEL __launch_bounds__(256) patternd_pyramid_take_gray8(const PyramidParameters p) {
  __shared__ TakenTile<u8> tile;
  take_tile(p, tile);
  halve_all<u8>(p, HalvedTile<u8>{tile});
}
PATTERND_KERNEL __launch_bounds__(256) patternd_pyramid_take_gray16(const PyramidParameters p) {
  __shared__ TakenTile<u16> tile;
  take_tile(p, tile);
  halve_all<u16>(p, HalvedTile<u16>{tile});
}

}  // namespace patternd::cuda
