// The pyramid (T12): each level the exact 2×2 mean, (a + b + c + d + 2) / 4, of the one below it.
// A block takes 128 bytes by 64 rows of level 0 and writes what they become in up to six levels, so
// level 0 is read once and the other levels never: one launch for six levels. A thread reads 16
// bytes of two rows, so that all of a tile is on its way at once; the next levels' pixels it gets
// from the lanes below it, and the last few from shared memory.

#include "cuda/kernels/device.h"

namespace patternd::cuda {

// Pixels are handled as 32-bit words of four or two.
template <class Pixel>
inline constexpr int kPixelsOfWord = 4 / static_cast<int>(sizeof(Pixel));
inline constexpr int kPieceWords = 4;  // that a thread reads of a row
inline constexpr int kTilePieces = kPyramidTileBytes / 4 / kPieceWords;

// The means of a word and the one below it, half as many: 16 bits each.
PATTERND_DEVICE u32 means_of_words(u32 top, u32 bottom, u8) {
  const u32 even = (top & 0x00FF00FFU) + (bottom & 0x00FF00FFU);
  const u32 odd = (top >> 8 & 0x00FF00FFU) + (bottom >> 8 & 0x00FF00FFU);
  return (even + odd + 0x00020002U) >> 2 & 0x00FF00FFU;
}
PATTERND_DEVICE u32 means_of_words(u32 top, u32 bottom, u16) {
  return ((top & 0xFFFFU) + (top >> 16) + (bottom & 0xFFFFU) + (bottom >> 16) + 2U) >> 2;
}
// Two such halves as a word of pixels, the first of them on its own as the lower 16 bits of one.
PATTERND_DEVICE u32 half_word(u32 means, u8) { return (means | means >> 8) & 0xFFFFU; }
PATTERND_DEVICE u32 half_word(u32 means, u16) { return means; }
template <class Pixel>
PATTERND_DEVICE u32 means_of(u32 top, u32 bottom) {
  return half_word(means_of_words(top, bottom, Pixel()), Pixel());
}

PATTERND_DEVICE u32 from_lane_below(u32 word, int lanes) {
  return static_cast<u32>(shuffle_down(static_cast<int>(word), lanes));
}

template <class Pixel>
PATTERND_DEVICE Pixel* row_of(Address address, int stride_bytes, int y) {
  return reinterpret_cast<Pixel*>(global<u8>(address) + static_cast<i64>(y) * stride_bytes);
}

// Writes `kCount` pixels from (x, y) on, as many as the level has; one word of type Whole, or two.
template <class Pixel, int kCount, class Whole>
PATTERND_DEVICE void put(const PyramidLevel& out, int x, int y, const Whole& pixels) {
  static_assert(sizeof(Whole) == kCount * sizeof(Pixel));
  if (y >= out.height) return;
  Pixel* to = row_of<Pixel>(out.address, out.stride_bytes, y) + x;
  if (x + kCount <= out.width) {
    *reinterpret_cast<Whole*>(to) = pixels;
    return;
  }
  union {
    Whole whole;
    Pixel each[kCount];
  } of{pixels};
#pragma unroll 1
  for (int i = 0; x + i < out.width; ++i) to[i] = of.each[i];
}

struct alignas(16) PixelWords {
  u32 words[kPieceWords];
};
struct alignas(8) HalvedWords {
  u32 words[kPieceWords / 2];
};

// 16 bytes of a row of level 0; what the picture hasn't is 0.
template <class Pixel>
PATTERND_DEVICE PixelWords read_piece(const PyramidParameters& p, int x, int y) {
  constexpr int kPixels = kPieceWords * kPixelsOfWord<Pixel>;
  const PyramidLevel& in = p.levels[0];
  PixelWords piece = {};
  if (y >= in.height) return piece;
  const Pixel* from = row_of<const Pixel>(in.address, in.stride_bytes, y) + x;
  if (x + kPixels <= in.width) return *reinterpret_cast<const PixelWords*>(from);
  constexpr int kBits = 8 * static_cast<int>(sizeof(Pixel));
#pragma unroll
  for (int i = 0; i < kPixels; ++i)
    if (x + i < in.width)
      piece.words[i / kPixelsOfWord<Pixel>] |= static_cast<u32>(from[i])
                                               << i % kPixelsOfWord<Pixel> * kBits;
  return piece;
}

// Levels 4 to 6 from level 3's part of the tile, which begins at level 3's (x, y); one warp.
template <class Pixel>
PATTERND_DEVICE void halve_last(const PyramidParameters& p, Pixel* tile, int x, int y) {
  constexpr int kPitch = kTilePieces * 2 / static_cast<int>(sizeof(Pixel));
  int across = kPitch;
  int down = kPyramidTileRows / 8;
  for (int level = 4; level < p.level_count; ++level) {
    across /= 2;
    down /= 2;
    x /= 2;
    y /= 2;
    const int tx = thread_x() % across;
    const int ty = thread_x() / across;
    const Pixel* from = tile + 2 * ty * kPitch + 2 * tx;
    const bool mine = ty < down;
    u32 mean = 2U;
    if (mine) mean += static_cast<u32>(from[0]) + from[1] + from[kPitch] + from[kPitch + 1];
    const Pixel pixel = static_cast<Pixel>(mean >> 2);
    if (mine) put<Pixel, 1>(p.levels[level], x + tx, y + ty, pixel);
    warp_barrier();
    if (mine) tile[ty * kPitch + tx] = pixel;
    warp_barrier();
  }
}

template <class Pixel>
PATTERND_DEVICE void halve_all(const PyramidParameters& p) {
  constexpr int kPixels = kPieceWords * kPixelsOfWord<Pixel>;
  __shared__ u16 level_3[kPyramidTileRows / 8][kTilePieces];
  const int piece = thread_x() % kTilePieces;
  const int pair = thread_x() / kTilePieces;  // of rows
  const int x = (block_x() * kTilePieces + piece) * kPixels;
  const int y = block_y() * kPyramidTileRows + 2 * pair;
  const PixelWords top = read_piece<Pixel>(p, x, y);
  const PixelWords bottom = read_piece<Pixel>(p, x, y + 1);

  HalvedWords first;
#pragma unroll
  for (int i = 0; i < kPieceWords / 2; ++i)
    first.words[i] = means_of<Pixel>(top.words[2 * i], bottom.words[2 * i]) |
                     means_of<Pixel>(top.words[2 * i + 1], bottom.words[2 * i + 1]) << 16;
  put<Pixel, kPixels / 2>(p.levels[1], x / 2, y / 2, first);
  if (p.level_count == 2) return;

  const u32 second = means_of<Pixel>(first.words[0], from_lane_below(first.words[0], kTilePieces)) |
                     means_of<Pixel>(first.words[1], from_lane_below(first.words[1], kTilePieces))
                         << 16;
  if (pair % 2 == 0) put<Pixel, kPixels / 4>(p.levels[2], x / 4, y / 4, second);
  if (p.level_count == 3) return;

  const u16 third =
      static_cast<u16>(means_of<Pixel>(second, from_lane_below(second, 2 * kTilePieces)));
  if (pair % 4 == 0) {
    put<Pixel, kPixels / 8>(p.levels[3], x / 8, y / 8, third);
    level_3[pair / 4][piece] = third;
  }
  if (p.level_count == 4) return;
  block_barrier();
  if (thread_x() < kWarpSize)
    halve_last(p, reinterpret_cast<Pixel*>(&level_3[0][0]), block_x() * kTilePieces * kPixels / 8,
               block_y() * kPyramidTileRows / 8);
}

PATTERND_KERNEL __launch_bounds__(kPyramidThreads)
    patternd_pyramid_halve_gray8(const PyramidParameters p) {
  note_moment(p.moment);
  halve_all<u8>(p);
}
PATTERND_KERNEL __launch_bounds__(kPyramidThreads)
    patternd_pyramid_halve_gray16(const PyramidParameters p) {
  note_moment(p.moment);
  halve_all<u16>(p);
}

}  // namespace patternd::cuda
