// The coarsest level, searched whole by matrix units (sm_80 and newer): the same scores as
// coarse_search.cu, from the same integers, in one kernel.
//
// A warp takes 8×8 positions and eight planes (angles, scales) of a pattern at a time. The
// picture's samples S are bytes; a weight is split into two (T = 256·high + low), S² likewise; so
// five products of bytes give exactly ΣTS, ΣS and ΣS² over each plane's mask, and with these the
// score. There is nothing to bound and to look at again.
//
// A product's 32 columns are pixels of the window: two rows of four strips, each four pixels wide.
// Strips begin where the planes' masks do, so that little of a window's box is multiplied that no
// mask has. The word that a lane needs, four pixels from a column on, serves all rows of positions
// as the strip moves down: of each row of a strip it is loaded once. So that a lane can begin at
// any column, the block's tile of the picture has a word for each column.

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/coarse_places.h"
#include "cuda/kernels/device.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

// ---- The tile -----------------------------------------------------------------------------------

// At (row, column): bytes of the four pixels from there on. `high` and `low` are of S².
struct ScoreTile {
  u32* samples;
  u32* high;
  u32* low;
};
PATTERND_DEVICE ScoreTile score_tile(const CoarseParameters& p) {
  u32* words = dynamic_shared<u32>();
  return {words, words + p.tile_words, words + 2 * p.tile_words};
}

// 0xFF for each byte that is not 0.
PATTERND_DEVICE u32 where_not_zero(u32 four) {
  const u32 high_bits = (((four & 0x7F7F7F7FU) + 0x7F7F7F7FU) | four) & 0x80808080U;
  return (high_bits >> 7) * 0xFFU;
}

// Four pixels less 128 from (x, y) on, x a multiple of four; 0 where there is none. (Rows of device
// pictures begin at multiples of four bytes and are as long.)
PATTERND_DEVICE u32 four_samples(const CoarseImage& image, int x, int y) {
  if (x < 0 || y < 0 || x >= image.width || y >= image.height) return 0;
  const u8* row = global<const u8>(image.pixels) + static_cast<i64>(y) * image.stride_bytes;
  u32 four = *reinterpret_cast<const u32*>(row + x) ^ 0x80808080U;
  if (x + 4 > image.width) four &= 0xFFFFFFFFU >> 8 * (x + 4 - image.width);
  if (image.valid == 0) return four;
  const u8* valid = global<const u8>(image.valid) + static_cast<i64>(y) * image.valid_stride;
  return four & where_not_zero(*reinterpret_cast<const u32*>(valid + x));
}

struct FourSquares {
  u32 high;
  u32 low;
};
PATTERND_DEVICE FourSquares squares_of(u32 four) {
  u32 squares[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int sample = static_cast<int>(four << (24 - 8 * i)) >> 24;
    squares[i] = static_cast<u32>(sample * sample);
  }
  const u32 first = squares[0] | squares[1] << 16;
  const u32 last = squares[2] | squares[3] << 16;
  return {pick_bytes(first, last, 0x7531), pick_bytes(first, last, 0x6420)};
}

// The words of four columns, of which eight bytes are known.
PATTERND_DEVICE Word4 words_of(u32 near, u32 far) {
  return {near, pick_bytes(near, far, 0x4321), pick_bytes(near, far, 0x5432),
          pick_bytes(near, far, 0x6543)};
}
PATTERND_DEVICE u32 of_next_lane(u32 word) {
  return static_cast<u32>(shuffle_down(static_cast<int>(word), 1));
}

// Has an octet's tables brought near, each line by a thread of so many.
PATTERND_DEVICE void fetch_early(const CoarseOctet& octet, int thread, int threads) {
  constexpr int kLine = 128;
  const int factor_bytes = octet.products * kWarpSize * static_cast<int>(sizeof(CoarseFactors));
  const int mask_bytes = octet.products * kWarpSize * static_cast<int>(sizeof(CoarseMasks));
  for (int at = thread * kLine; at < factor_bytes; at += threads * kLine)
    prefetch(global<const u8>(octet.factors) + at);
  for (int at = thread * kLine; at < mask_bytes; at += threads * kLine)
    prefetch(global<const u8>(octet.masks) + at);
  if (thread == 0) prefetch(global<const u8>(octet.strips));
  if (thread == 1) prefetch(global<const u8>(octet.terms));
}

PATTERND_DEVICE void store_words(const ScoreTile& tile, int at, u32 samples, bool stored) {
  const FourSquares squares = squares_of(samples);
  const Word4 sample_words = words_of(samples, of_next_lane(samples));
  const Word4 high_words = words_of(squares.high, of_next_lane(squares.high));
  const Word4 low_words = words_of(squares.low, of_next_lane(squares.low));
  if (!stored) return;
  *reinterpret_cast<Word4*>(tile.samples + at) = sample_words;
  *reinterpret_cast<Word4*>(tile.high + at) = high_words;
  *reinterpret_cast<Word4*>(tile.low + at) = low_words;
}

// A lane takes four columns, and those behind them from the next lane. So a row has four columns
// more than are stored, and a warp's last lane stores none. While the first pixels are on their
// way, so are the first octet's tables.
PATTERND_DEVICE void load_score_tile(const CoarseParameters& p, const CoarseSlice& slice,
                                     const CoarseOctet& first_octet, int corner_x, int corner_y,
                                     const ScoreTile& tile) {
  const CoarseImage image = global<const CoarseImage>(p.images)[slice.image];
  const int left = slice.first_x + corner_x + slice.left;
  const int top = slice.first_y + corner_y + slice.top;
  const int lane = thread_x() % kWarpSize;
  const int a_row = slice.quads + 1;
  constexpr int kStored = kWarpSize - 1;
  const int first = thread_x() / kWarpSize * kStored + lane;
  const int a_turn = threads_x() / kWarpSize * kStored;
  const int rows_a_turn = a_turn / a_row;
  const int quads_a_turn = a_turn - rows_a_turn * a_row;
  int row = first / a_row;
  int quad = first - row * a_row;
  constexpr int kAtOnce = 4;
  for (int i = first - lane; i < slice.rows * a_row; i += kAtOnce * a_turn) {
    u32 samples[kAtOnce];
    int at[kAtOnce];
    bool stored[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      samples[k] = row < slice.rows ? four_samples(image, left + 4 * quad, top + row) : 0;
      at[k] = row * p.tile_pitch + 4 * quad;
      stored[k] = lane != kStored && quad != slice.quads && row < slice.rows;
      row += rows_a_turn;
      quad += quads_a_turn;
      if (quad >= a_row) {
        quad -= a_row;
        ++row;
      }
    }
    if (i == first - lane) fetch_early(first_octet, thread_x(), threads_x());
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) store_words(tile, at[k], samples[k], stored[k]);
  }
}

// ---- Products -----------------------------------------------------------------------------------

// Of each two of a warp's eight rows of positions, as add_products() has them: a lane has column
// lane / 4 of the positions, and planes 2 · (lane % 4) and the next.
inline constexpr int kRowPairs = kScoreRows / 2;
using PairSums = int[kRowPairs][4];

// A lane's words of two rows of positions and two rows of a strip, as add_products() takes them: of
// the strip's rows n, n + 1, n + 1, n + 2. Each is loaded for itself: the units take the four from
// registers side by side, and to copy one costs as much.
struct StripRows {
  u32 first, second, again, third;
};
PATTERND_DEVICE StripRows load_rows(const u32* at, int pitch) {
  return {load_anew(at), load_anew(at + pitch), load_anew(at + pitch), load_anew(at + 2 * pitch)};
}

// The products over one octet come in two passes, for want of registers: over the samples, and over
// their squares. A pass has the words that it needs of a place of the tile, what a lane brings of
// the planes to a product, and its sums.
struct SamplePass {
  ScoreTile tile;
  const Word4* factors;
  const Word2* masks;
  PairSums high;  // Σ high·S
  PairSums low;
  PairSums sum;  // ΣS

  using Words = StripRows;
  __device__ Words load(int at, int pitch) const { return load_rows(tile.samples + at, pitch); }
  struct Factors {
    u32 high[2], low[2], counts[2];
  };
  __device__ Factors factors_of(int product) const {
    const Word4 weights = load_word4(factors + product * kWarpSize);
    const Word2 mask = load_word2(masks + product * kWarpSize);
    return {{weights.x, weights.y}, {weights.z, weights.w}, {mask.x, mask.y}};
  }
  __device__ void add(int k, const Words& w, const Factors& by) {
    add_products(high[k], w.first, w.second, w.again, w.third, by.high);
    add_products(low[k], w.first, w.second, w.again, w.third, by.low);
    add_products(sum[k], w.first, w.second, w.again, w.third, by.counts);
  }
};
struct SquarePass {
  ScoreTile tile;
  const Word2* masks;
  PairSums high;  // S² = 256 · high + low
  PairSums low;

  struct Words {
    StripRows high, low;
  };
  __device__ Words load(int at, int pitch) const {
    return {load_rows(tile.high + at, pitch), load_rows(tile.low + at, pitch)};
  }
  struct Factors {
    u32 counts[2];
  };
  __device__ Factors factors_of(int product) const {
    const Word2 mask = load_word2(masks + product * kWarpSize);
    return {{mask.x, mask.y}};
  }
  __device__ void add(int k, const Words& w, const Factors& by) {
    add_products(high[k], w.high.first, w.high.second, w.high.again, w.high.third, by.counts);
    add_products_unsigned(low[k], w.low.first, w.low.second, w.low.again, w.low.third, by.counts);
  }
};

// The products of four strips, from number `product` on. As the strips move down, what served two
// rows of positions serves the two above them.
template <class Pass>
PATTERND_DEVICE void add_strips(Pass& pass, int at, int pitch, int product, int steps,
                                typename Pass::Factors& factors) {
  typename Pass::Words words[kRowPairs];
#pragma unroll
  for (int k = 0; k < kRowPairs - 1; ++k) {
    words[k] = pass.load(at, pitch);
    at += kStepRows * pitch;
  }
  for (int first = 0; first < steps; first += kRowPairs) {
#pragma unroll
    for (int step = 0; step < kRowPairs; ++step) {
      if (first + step >= steps) return;
      const typename Pass::Factors own = factors;
      factors = pass.factors_of(product + first + step + 1);
      words[(step + kRowPairs - 1) % kRowPairs] = pass.load(at, pitch);
      at += kStepRows * pitch;
#pragma unroll
      for (int k = 0; k < kRowPairs; ++k) pass.add(k, words[(step + k) % kRowPairs], own);
    }
  }
}

// Where a lane's strip begins, and how many products there are.
struct LaneStrip {
  int at;
  int steps;
};
PATTERND_DEVICE LaneStrip load_strip(const CoarseStrips& strips) {
  return {strips.at[thread_x() % kStrips], strips.steps};
}

template <class Pass>
PATTERND_DEVICE void add_octet(const CoarseOctet& octet, int column, int pitch, Pass& pass) {
  const int own = column + thread_x() % kWarpSize / kStrips;
  const CoarseStrips* strips = global<const CoarseStrips>(octet.strips);
  const int count = octet.strip_count;
  typename Pass::Factors factors = pass.factors_of(0);
  LaneStrip next = load_strip(strips[0]);
  int product = 0;
  for (int i = 0; i < count; ++i) {
    const LaneStrip strip = next;
    next = load_strip(strips[i + 1]);
    add_strips(pass, own + strip.at, pitch, product, strip.steps, factors);
    product += strip.steps;
  }
}

// ---- Scores -------------------------------------------------------------------------------------

// Of a lane's sixteen places: number 2 · row + plane.
inline constexpr int kLanePlaces = 4 * kRowPairs;
struct LaneWindows {
  int dot[kLanePlaces];
  int sum[kLanePlaces];
  u32 square[kLanePlaces];
};

PATTERND_DEVICE LaneWindows windows_of(const CoarseOctet& octet, const ScoreTile& tile, int column,
                                       int pitch) {
  const int lane = thread_x() % kWarpSize;
  const Word4* factors = global<const Word4>(octet.factors) + lane;
  const Word2* masks = global<const Word2>(octet.masks) + lane;
  LaneWindows out;
  SamplePass samples = {tile, factors, masks, {}, {}, {}};
  add_octet(octet, column, pitch, samples);
#pragma unroll
  for (int i = 0; i < kLanePlaces; ++i) {
    out.dot[i] = 256 * samples.high[i / 4][i % 4] + samples.low[i / 4][i % 4];
    out.sum[i] = samples.sum[i / 4][i % 4];
  }
  SquarePass squares = {tile, masks, {}, {}};
  add_octet(octet, column, pitch, squares);
#pragma unroll
  for (int i = 0; i < kLanePlaces; ++i)
    out.square[i] = 256 * static_cast<u32>(squares.high[i / 4][i % 4]) +
                    static_cast<u32>(squares.low[i / 4][i % 4]);
  return out;
}

// One of them; by comparisons, so that all stay in registers.
PATTERND_DEVICE WindowSums window_at(const LaneWindows& windows, int place) {
  int dot = 0;
  int sum = 0;
  u32 square = 0;
#pragma unroll
  for (int i = 0; i < kLanePlaces; ++i) {
    dot = i == place ? windows.dot[i] : dot;
    sum = i == place ? windows.sum[i] : sum;
    square = i == place ? windows.square[i] : square;
  }
  return {dot, sum, square};
}

// Whether a window may score over the threshold, by floats: whatever cancels, its energy is right
// to a unit in the last place of ΣS², which is taken off.
PATTERND_DEVICE bool may_score(const CoarseTerms& terms, int dot, int sum, u32 square) {
  constexpr float kUnit = 1.2e-7F;
  const float s = static_cast<float>(sum);
  const float q = static_cast<float>(square);
  const float mean_part = s * s;
  const float rest = fused(s, s, -mean_part);
  const float energy = fused(q, -kUnit * terms.pixels, fused(terms.pixels, q, -mean_part) - rest);
  const float size = fused(-terms.mean, s, static_cast<float>(dot)) * terms.gain;
  const float counted = maximum(size, terms.inverted * size);
  return counted * counted > maximum(energy, 0.0F);
}

// A bit for each of a lane's places that may score. `terms` are those of its two planes.
PATTERND_DEVICE u32 places_of_whole_tile(const CoarseTerms (&terms)[2],
                                         const LaneWindows& windows) {
  u32 going = 0;
#pragma unroll
  for (int i = 0; i < kLanePlaces; ++i) {
    if (may_score(terms[i % 2], windows.dot[i], windows.sum[i], windows.square[i]))
      going |= 1U << i;
  }
  return going;
}

// What a row of a mixed tile is scored with, on its way.
PATTERND_DEVICE CoarseTerms load_terms(const CoarseTerms* parts, int kind) {
  const Float4 own =
      load_float4(reinterpret_cast<const Float4*>(parts + maximum(kind, 0) * kScoreColumns));
  return {own.x, own.y, own.z, own.w};
}
// Number by number: a choice between places would put both into memory.
PATTERND_DEVICE CoarseTerms terms_in_use(int kind, const CoarseTerms& whole,
                                         const CoarseTerms& part) {
  const bool sees_all = kind == kCoarseAllVisible;
  const float pixels = part.pixels;
  const float mean = part.mean;
  const float gain = kind == kCoarseSkip ? 0.0F : part.gain;
  const float inverted = part.inverted;
  return {sees_all ? whole.pixels : pixels, sees_all ? whole.mean : mean,
          sees_all ? whole.gain : gain, sees_all ? whole.inverted : inverted};
}

// The same where some positions see a part, or nothing.
PATTERND_DEVICE u32 places_of_mixed_tile(const CoarseOctet& octet, int tile,
                                         const CoarseTerms (&terms)[2],
                                         const LaneWindows& windows) {
  constexpr int kAtOnce = 4;  // so that the loads overlap
  const int lane = thread_x() % kWarpSize;
  constexpr int kWords = sizeof(CoarseTileKinds) / sizeof(int);
  const int* kinds =
      global<const int>(octet.tile_kinds) + tile * kWords + 2 * (lane % kStrips) * kScoreRows;
  const CoarseTerms* parts = global<const CoarseTerms>(octet.parts) + lane / kStrips;
  int kind[kLanePlaces];
#pragma unroll
  for (int i = 0; i < kLanePlaces; i += 4) {
    const Word4 four = load_word4(reinterpret_cast<const Word4*>(kinds + i));
    kind[i] = static_cast<int>(four.x);
    kind[i + 1] = static_cast<int>(four.y);
    kind[i + 2] = static_cast<int>(four.z);
    kind[i + 3] = static_cast<int>(four.w);
  }
  u32 going = 0;
#pragma unroll
  for (int first = 0; first < kLanePlaces; first += kAtOnce) {
    CoarseTerms own[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = first + k;
      own[k] = load_terms(parts, kind[i % 2 * kScoreRows + i / 2]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int i = first + k;
      const CoarseTerms used = terms_in_use(kind[i % 2 * kScoreRows + i / 2], terms[i % 2], own[k]);
      going |= may_score(used, windows.dot[i], windows.sum[i], windows.square[i]) ? 1U << i : 0U;
    }
  }
  return going;
}

// Scores a place exactly.
PATTERND_DEVICE void score_place(const CoarseParameters& p, int number, int x, int y,
                                 const WindowSums& window, u32& recorded) {
  const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[number];
  const float score = score_of(plane, terms_of(plane, x, y), window);
  if (score == 0.0F) return;
  store_through(&recorded, 1U);
  const u32 slot = atomic_add(&global<CoarseCounters>(p.counters)->looks, 1U);
  store_score(p, slot, {number, static_cast<short>(x), static_cast<short>(y), score});
}

PATTERND_DEVICE void score_octet(const CoarseParameters& p, const CoarseOctet& octet, int tile,
                                 int corner_x, int corner_y, const LaneWindows& windows,
                                 u32& recorded) {
  const int lane = thread_x() % kWarpSize;
  const CoarseTerms* terms = global<const CoarseTerms>(octet.terms) + 2 * (lane % kStrips);
  const CoarseTerms of_plane[2] = {terms[0], terms[1]};
  u32 going = tile == kTileAllVisible ? places_of_whole_tile(of_plane, windows)
                                      : places_of_mixed_tile(octet, tile, of_plane, windows);
  for (; going != 0; going &= going - 1) {
    const int place = lowest_bit(going);
    score_place(p, octet.first_plane + 2 * (lane % kStrips) + place % 2, corner_x + lane / kStrips,
                corner_y + place / 2, window_at(windows, place), recorded);
  }
}

// ---- The kernel ---------------------------------------------------------------------------------

// The counters of what follows; those that this launch counts with, its last block leaves at zero.
PATTERND_DEVICE void clear_counters(const CoarseParameters& p) {
  constexpr int kOwn = sizeof(CoarseCounters) / sizeof(u32);
  for (int i = kOwn + thread_x(); i < p.counter_words; i += threads_x())
    global<u32>(p.counters)[i] = 0;
}

// `recorded`: some thread of the block has put a position on the frame's list.
PATTERND_DEVICE void end_block(const CoarseParameters& p, const u32& recorded) {
  block_barrier();
  if (thread_x() != 0) return;
  CoarseCounters* counters = global<CoarseCounters>(p.counters);
  if (recorded != 0) device_fence();
  if (atomic_add(&counters->ended, 1U) + 1U != static_cast<u32>(blocks_x())) return;
  device_fence();
  const u32 positions = load_fresh(&counters->looks);
  counters->positions = positions;
  counters->overflow = positions > p.position_capacity ? 1 : 0;
  counters->looks = 0;
  counters->ended = 0;
}

// What a block of eight rows of positions works on.
struct ScoreBlock {
  int left, top;    // of its first position
  int positions;    // in a row of the picture's
  int octet_count;  // 0: there are no such rows
  const CoarseOctet* octets;
};
PATTERND_DEVICE ScoreBlock score_block(const CoarseParameters& p, const CoarseSlice& slice,
                                       int tile) {
  const int positions = slice.blocks * kCoarseBlock;
  const int width = threads_x() / kWarpSize * kScoreColumns;
  const int across = (positions + width - 1) / width;
  const int top = tile / across * kScoreRows;
  return {tile % across * width, top, positions, top < slice.position_rows ? slice.octet_count : 0,
          global<const CoarseOctet>(p.octets) + slice.first_octet};
}

// The number of the next octet and eight columns that no warp of the block has taken: some take
// longer, at the picture's edges. One warp.
PATTERND_DEVICE int take_task(u32& taken) {
  u32 task = 0;
  if (thread_x() % kWarpSize == 0) task = atomic_sum(&taken, 1U);
  return static_cast<int>(lane_value(task, 0));
}

// A warp's part of the block: octet after octet, so that the tables near serve all.
PATTERND_DEVICE void score_tasks(const CoarseParameters& p, const ScoreBlock& block,
                                 const ScoreTile& tile, u32& taken, u32& recorded) {
  const int warps = threads_x() / kWarpSize;
  const int tasks = block.octet_count * warps;
  for (int task = take_task(taken); task < tasks; task = take_task(taken)) {
    const int number = task / warps;
    const int column = (task - number * warps) * kScoreColumns;
    const CoarseOctet& octet = block.octets[number];
    if (column == 0 && number + 1 < block.octet_count)
      fetch_early(block.octets[number + 1], thread_x() % kWarpSize, kWarpSize);
    const int x = block.left + column;
    if (x >= block.positions) continue;
    const int at = block.top / kScoreRows * (block.positions / kScoreColumns) + x / kScoreColumns;
    const int kind = global<const int>(octet.tiles)[at];
    if (kind == kTileSkipped) continue;
    score_octet(p, octet, kind, x, block.top, windows_of(octet, tile, column, p.tile_pitch),
                recorded);
  }
}

// grid: slices of the first tile, then those of the next.
PATTERND_KERNEL __launch_bounds__(kScoreMostWarps* kWarpSize, 2)
    patternd_coarse_score(const CoarseParameters p) {
  __shared__ u32 taken;
  __shared__ u32 recorded;
  note_moment(p.search_moment);
  if (!kHasMatrixUnits) return;  // never launched there
  if (block_x() == 0) clear_counters(p);
  if (thread_x() == 0) prefetch(global<const u8>(p.images));
  const CoarseSlice slice = global<const CoarseSlice>(p.slices)[block_x() % p.slice_count];
  const ScoreBlock block = score_block(p, slice, block_x() / p.slice_count);
  if (thread_x() == 0) taken = recorded = 0;
  const ScoreTile tile = score_tile(p);
  if (block.octet_count > 0)
    load_score_tile(p, slice, block.octets[0], block.left, block.top, tile);
  block_barrier();
  score_tasks(p, block, tile, taken, recorded);
  end_block(p, recorded);
}

}  // namespace patternd::cuda
