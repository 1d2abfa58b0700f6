// The coarsest level, searched whole for all patterns, angles and scales (T10–T12, T15): the GPU's
// version of pipeline/coarse_search.cpp, with the same integers and so the same scores.
//
//   prepare   the level in floats, and row sums of its pixels and their squares
//   bound     what bounds the scores of a position, shared by groups of neighbouring angles
//   search    Σ T·S at every position of every plane, in single precision, from pixels and weights
//             in shared memory. A lane takes a row of positions, sixteen side by side for two
//             planes, so the window slides along the row in registers: a tap costs one pixel's load
//             and half a weights' for 32 products, and taps outside the turned pattern are left
//             out. Positions that the bound does not rule out go on a list
//   judge     for each of these the window's own energy, a thread each; what still promises more
//             than the threshold is scored exactly, in integers, by the whole warp
// Suppression follows in suppress.cu.

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/coarse_places.h"
#include "cuda/kernels/device.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

// ---- Preparing ----------------------------------------------------------------------------------

// A pixel less the middle of its range; 16 bits are taken to 10, so that the sums fit 32 bits.
PATTERND_DEVICE int sample_at(const CoarseImage& image, int x, int y) {
  if (x >= image.width) return 0;
  if (image.valid != 0 &&
      global<const u8>(image.valid)[static_cast<i64>(y) * image.valid_stride + x] == 0)
    return 0;
  const u8* row = global<const u8>(image.pixels) + static_cast<i64>(y) * image.stride_bytes;
  if (image.is_16_bit == 0) return row[x] - 128;
  return (reinterpret_cast<const u16*>(row)[x] >> 6) - 512;
}

struct alignas(8) Prefix {
  u32 sum;
  u32 square;
};

// The sum over the lanes before this one.
PATTERND_DEVICE u32 sum_before(u32 own) {
  const int lane = thread_x() % kWarpSize;
  u32 sum = own;
#pragma unroll
  for (int step = 1; step < kWarpSize; step *= 2) {
    const u32 before = static_cast<u32>(shuffle_up(static_cast<int>(sum), step));
    if (lane >= step) sum += before;
  }
  return sum - own;
}

PATTERND_DEVICE u32 of_last_lane(u32 value) {
  return static_cast<u32>(shuffle_from(static_cast<int>(value), kWarpSize - 1));
}

// One warp a row, 128 pixels at a time, four a lane.
PATTERND_KERNEL __launch_bounds__(128) patternd_coarse_prepare(const CoarseParameters p) {
  note_moment(p.search_moment);
  constexpr int kPixels = 4;
  if (block_x() == 0 && block_y() == 0)
    for (int i = thread_x(); i < p.counter_words; i += threads_x()) global<u32>(p.counters)[i] = 0;
  const CoarseImage& image = global<const CoarseImage>(p.images)[block_y()];
  const int lane = thread_x() % kWarpSize;
  const int y = (block_x() * threads_x() + thread_x()) / kWarpSize;
  if (y >= image.height) return;
  const i64 row = static_cast<i64>(y) * image.made_stride;
  Prefix* prefix = global<Prefix>(image.prefix) + row;
  float* samples = global<float>(image.samples) + row;
  Prefix before = {0, 0};
  for (int first = 0; first < image.made_right; first += kPixels * kWarpSize) {
    const int x = first + kPixels * lane;
    int values[kPixels];
#pragma unroll
    for (int i = 0; i < kPixels; ++i) values[i] = sample_at(image, x + i, y);
    Prefix own = {0, 0};
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      own.sum += static_cast<u32>(values[i]);
      own.square += static_cast<u32>(values[i] * values[i]);
    }
    Prefix at = {before.sum + sum_before(own.sum), before.square + sum_before(own.square)};
    before = {of_last_lane(at.sum + own.sum), of_last_lane(at.square + own.square)};
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      if (x + i < image.made_right) prefix[x + i] = at;
      if (x + i < image.width) samples[x + i] = static_cast<float>(values[i]);
      at.sum += static_cast<u32>(values[i]);
      at.square += static_cast<u32>(values[i] * values[i]);
    }
  }
}

// ---- Window sums --------------------------------------------------------------------------------

// ΣS and ΣS² over the runs at a position, every `step`-th from `first` on.
PATTERND_DEVICE Prefix window_sums(const CoarseImage& image, const CoarseRun* runs, int count,
                                   int x, int y, int first, int step) {
  const Prefix* prefix =
      global<const Prefix>(image.prefix) + static_cast<i64>(y) * image.made_stride + x;
  const int stride = image.made_stride;
  Prefix out = {0, 0};
#pragma unroll 6
  for (int r = first; r < count; r += step) {
    const CoarseRun run = runs[r];
    const Prefix begin = prefix[run.row * stride + run.begin];
    const Prefix end = prefix[run.row * stride + run.end];
    out.sum += end.sum - begin.sum;
    out.square += end.square - begin.square;
  }
  return out;
}

PATTERND_KERNEL __launch_bounds__(256) patternd_coarse_bound(const CoarseParameters p) {
  const CoarseGroup& group = global<const CoarseGroup>(p.groups)[block_x()];
  const int width = group.blocks * kCoarseBlock;
  const CoarseImage& image = global<const CoarseImage>(p.images)[group.image];
  const CoarseRun* runs = global<const CoarseRun>(group.runs);
  const int* block_class = global<const int>(group.block_class);
  for (int i = block_y() * threads_x() + thread_x(); i < width * group.rows;
       i += blocks_y() * threads_x()) {
    const Prefix sums = window_sums(image, runs, group.run_count, group.first_x + i % width,
                                    group.first_y + i / width, 0, 1);
    const int kind = block_class[i / kCoarseBlock];
    const float per_pixel =
        kind < 0 ? group.per_pixel
                 : global<const float>(group.border)[kind * kCoarseBlock + i % kCoarseBlock];
    const float s = static_cast<float>(static_cast<int>(sums.sum));
    const float mean = s * per_pixel;
    const float energy = static_cast<float>(sums.square) - s * mean;
    // Half a unit more than nothing, so that a flat window's numerator of zero is not over the
    // bound.
    global<CoarseBound>(group.bounds)[i] = {mean, root(maximum(energy, 0.5F))};
  }
}

// ---- Correlating --------------------------------------------------------------------------------

// What the search keeps in shared memory for a chunk of template rows.
struct CoarseTile {
  Float4* weights;  // of two taps each
  CoarseSpan* spans;
  float* pixels;
};

// Where a block works: its tile's first position, counted from the pair's first.
struct CoarseCorner {
  int x;
  int y;
};

using CoarseSums = float[kCoarsePlanes][kCoarseColumns];

PATTERND_DEVICE void load_chunk(const CoarseParameters& p, const CoarsePair& pair,
                                const CoarseImage& image, const CoarseCorner& corner, int chunk,
                                int rows, const CoarseTile& tile) {
  const int lane = thread_x() % kWarpSize;
  const int warp = thread_x() / kWarpSize;
  const int warps = threads_x() / kWarpSize;
  const CoarseSpan* spans = global<const CoarseSpan>(pair.spans) + chunk;
  const int first_tap = spans[0].first;
  const int two_taps = (spans[rows].first - first_tap) / 2;
  for (int i = thread_x(); i < rows; i += threads_x()) {
    const CoarseSpan span = spans[i];
    tile.spans[i] = {span.begin, span.count, span.first - first_tap, 0};
  }
  const Float4* weights = global<const Float4>(pair.weights) + first_tap / 2;
  for (int i = thread_x(); i < two_taps; i += threads_x())
    tile.weights[i] = load_float4(weights + i);

  const int stride = image.made_stride;
  const float* samples = global<const float>(image.samples) +
                         static_cast<i64>(pair.first_y + corner.y + pair.top + chunk) * stride +
                         pair.first_x + corner.x + pair.left;
  // One more for spans that are rounded up to an even number.
  const int width = warps * kCoarseColumns + pair.width + 1;
  const int all_rows = rows + kCoarseTileRows - 1;
  // Several rows at a time, so that their loads overlap.
  constexpr int kAtOnce = 6;
  for (int first = warp; first < all_rows; first += kAtOnce * warps) {
#pragma unroll 2
    for (int i = lane; i < width; i += kWarpSize) {
      float values[kAtOnce];
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int r = first + k * warps;
        values[k] = r < all_rows ? samples[r * stride + i] : 0.0F;
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const int r = first + k * warps;
        if (r < all_rows) tile.pixels[r * p.tile_pitch + i] = values[k];
      }
    }
  }
}

// One template row's taps for all sums of this thread. `from` is the first pixel of its first
// position's window. Pixel t + i of the row stands in window[(t + i) % 16].
PATTERND_DEVICE void add_row(const float* from, const Float4* weights, int count,
                             CoarseSums& sums) {
  float window[kCoarseColumns];
#pragma unroll
  for (int i = 0; i < kCoarseColumns - 1; ++i) window[i] = from[i];
  for (int first = 0; first < count; first += kCoarseColumns) {
#pragma unroll
    for (int t = 0; t < kCoarseColumns; t += 2) {
      if (first + t >= count) return;
      const Float4 w = weights[(first + t) / 2];
      window[(t + kCoarseColumns - 1) % kCoarseColumns] = from[first + t + kCoarseColumns - 1];
#pragma unroll
      for (int i = 0; i < kCoarseColumns; ++i) {
        const float s = window[(t + i) % kCoarseColumns];
        sums[0][i] = fused(w.x, s, sums[0][i]);
        sums[1][i] = fused(w.y, s, sums[1][i]);
      }
      window[t] = from[first + t + kCoarseColumns];
#pragma unroll
      for (int i = 0; i < kCoarseColumns; ++i) {
        const float s = window[(t + 1 + i) % kCoarseColumns];
        sums[0][i] = fused(w.z, s, sums[0][i]);
        sums[1][i] = fused(w.w, s, sums[1][i]);
      }
    }
  }
}

PATTERND_DEVICE void correlate(const CoarseParameters& p, const CoarsePair& pair,
                               const CoarseCorner& corner, CoarseSums& sums) {
  auto* weights = dynamic_shared<Float4>();
  auto* spans = reinterpret_cast<CoarseSpan*>(weights + p.chunk_taps / 2);
  const CoarseTile tile = {weights, spans, reinterpret_cast<float*>(spans + p.chunk_rows)};
  const CoarseImage& image = global<const CoarseImage>(p.images)[pair.image];
  const int lane = thread_x() % kWarpSize;
  const int warp = thread_x() / kWarpSize;
  const int all_rows = pair.rows;
  for (int chunk = 0; chunk < all_rows; chunk += p.chunk_rows) {
    const int rows = minimum(p.chunk_rows, all_rows - chunk);
    block_barrier();
    load_chunk(p, pair, image, corner, chunk, rows, tile);
    block_barrier();
    const float* own = tile.pixels + lane * p.tile_pitch + warp * kCoarseColumns;
    for (int r = 0; r < rows; ++r, own += p.tile_pitch) {
      const CoarseSpan span = tile.spans[r];
      add_row(own + span.begin, tile.weights + span.first / 2, span.count, sums);
    }
  }
}

// ---- Choosing what goes on ----------------------------------------------------------------------

// In the same shared memory afterwards: the sums, and the numbers of the places that go on.
struct CoarsePlaces {
  float* numerators;
  u16* listed;
  int width;  // of the tile
  __device__ float& numerator(int plane, int row, int column) const {
    return numerators[(plane * kCoarseTileRows + row) * (width + 1) + column];
  }
  __device__ int number(int plane, int row, int column) const {
    return (plane * kCoarseTileRows + row) * width + column;
  }
};
PATTERND_DEVICE CoarsePlaces coarse_places() {
  const int width = threads_x() / kWarpSize * kCoarseColumns;
  auto* numerators = dynamic_shared<float>();
  return {numerators,
          reinterpret_cast<u16*>(numerators + kCoarsePlanes * kCoarseTileRows * (width + 1)),
          width};
}

// A need that nothing meets.
inline constexpr CoarseNeed kNever = {0.0F, 3e38F};

PATTERND_DEVICE bool worth_a_look(const CoarsePlane& plane, const CoarseNeed& need,
                                  const CoarseBound& bound, float numerator) {
  const float about_mean = numerator - bound.mean * need.sum;
  const float size = plane.any_polarity != 0 && about_mean < 0.0F ? -about_mean : about_mean;
  return size > need.least * bound.root;
}

// Eight places of this thread at a time, so that their loads overlap.
PATTERND_DEVICE void list_places(const CoarseParameters& p, const CoarsePair& pair,
                                 const CoarseCorner& corner, const CoarsePlaces& places,
                                 u32* count) {
  constexpr int kAtOnce = 8;
  const CoarseBound* bounds =
      global<const CoarseBound>(global<const CoarseGroup>(p.groups)[pair.group].bounds);
  const int positions = pair.blocks * kCoarseBlock;
  const int column = thread_x() % places.width;
  const int x = corner.x + column;
  if (x >= positions) return;
  const int rows_at_once = threads_x() / places.width;
  for (int q = 0; q < kCoarsePlanes && pair.planes[q] >= 0; ++q) {
    const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[pair.planes[q]];
    const int* block_class = global<const int>(plane.block_class) + x / kCoarseBlock;
    const CoarseNeed* needs = global<const CoarseNeed>(plane.needs) + x % kCoarseBlock;
    for (int first = thread_x() / places.width; first < kCoarseTileRows;
         first += kAtOnce * rows_at_once) {
      int kind[kAtOnce];
      CoarseBound bound[kAtOnce];
      CoarseNeed need[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int row = first + i * rows_at_once;
        const int y = corner.y + row;
        const bool exists = row < kCoarseTileRows && y < pair.position_rows;
        kind[i] = exists ? block_class[y * pair.blocks] : kCoarseSkip;
        bound[i] = exists ? bounds[y * positions + x] : CoarseBound{0.0F, 1.0F};
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        need[i] = kind[i] == kCoarseAllVisible ? CoarseNeed{0.0F, plane.least} : kNever;
        if (kind[i] >= 0) need[i] = needs[kind[i] * kCoarseBlock];
      }
      u32 going = 0;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        const int row = minimum(first + i * rows_at_once, kCoarseTileRows - 1);
        if (worth_a_look(plane, need[i], bound[i], places.numerator(q, row, column)))
          going |= 1U << i;
      }
      for (; going != 0; going &= going - 1) {
        const int row = first + lowest_bit(going) * rows_at_once;
        places.listed[atomic_sum(count, 1U)] = static_cast<u16>(places.number(q, row, column));
      }
    }
  }
}

// grid: pairs of the first tile, then those of the next.
PATTERND_KERNEL __launch_bounds__(128) patternd_coarse_search(const CoarseParameters p) {
  __shared__ u32 count;
  __shared__ u32 first;
  const CoarsePair& pair = global<const CoarsePair>(p.pairs)[block_x() % p.pair_count];
  const int tile_number = block_x() / p.pair_count;
  const int tile_width = threads_x() / kWarpSize * kCoarseColumns;
  const int tiles_across = (pair.blocks * kCoarseBlock + tile_width - 1) / tile_width;
  const CoarseCorner corner = {tile_number % tiles_across * tile_width,
                               tile_number / tiles_across * kCoarseTileRows};
  if (corner.y >= pair.position_rows) return;
  CoarseSums sums = {};
  correlate(p, pair, corner, sums);

  const CoarsePlaces places = coarse_places();
  block_barrier();
  if (thread_x() == 0) count = 0;
#pragma unroll
  for (int i = 0; i < kCoarseColumns; ++i) {
    const int column = thread_x() / kWarpSize * kCoarseColumns + i;
    places.numerator(0, thread_x() % kWarpSize, column) = sums[0][i];
    places.numerator(1, thread_x() % kWarpSize, column) = sums[1][i];
  }
  block_barrier();
  list_places(p, pair, corner, places, &count);
  block_barrier();
  if (thread_x() == 0) {
    first = atomic_add(&global<CoarseCounters>(p.counters)->looks, count);
    if (first + count > p.look_capacity) global<CoarseCounters>(p.counters)->overflow = 1;
  }
  block_barrier();
  for (u32 i = static_cast<u32>(thread_x()); i < count; i += static_cast<u32>(threads_x())) {
    if (first + i >= p.look_capacity) return;
    const int number = places.listed[i];
    const int column = number % places.width;
    const int row = number / places.width % kCoarseTileRows;
    const int q = number / places.width / kCoarseTileRows;
    global<CoarseLook>(p.looks)[first + i] = {pair.planes[q], static_cast<short>(corner.x + column),
                                              static_cast<short>(corner.y + row),
                                              places.numerator(q, row, column)};
  }
}

// ---- Judging ------------------------------------------------------------------------------------

PATTERND_DEVICE bool promising(const CoarseParameters& p, const CoarseLook& look) {
  const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[look.plane];
  const Prefix sums = window_sums(global<const CoarseImage>(p.images)[plane.image],
                                  global<const CoarseRun>(plane.runs), plane.run_count,
                                  plane.first_x + look.x, plane.first_y + look.y, 0, 1);
  const PlaceTerms terms = terms_of(plane, look.x, look.y);
  const i64 sum = static_cast<int>(sums.sum);
  const i64 energy = terms.pixels * static_cast<i64>(sums.square) - sum * sum;
  if (energy <= 0) return false;
  const float product = look.numerator * static_cast<float>(terms.pixels) -
                        static_cast<float>(terms.pattern_sum) * static_cast<float>(sum);
  float estimate =
      product * static_cast<float>(terms.inverse_norm) / root(static_cast<float>(energy));
  if (plane.any_polarity != 0 && estimate < 0.0F) estimate = -estimate;
  return estimate * plane.gain > 1.0F;
}

// The exact score of a position, which the warp works out together; 0 where it is not over the
// threshold, negative where inverted.
PATTERND_DEVICE float exact_score(const CoarseParameters& p, const CoarseLook& look) {
  const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[look.plane];
  const CoarseImage& image = global<const CoarseImage>(p.images)[plane.image];
  const int lane = thread_x() % kWarpSize;
  const int x = plane.first_x + look.x;
  const int y = plane.first_y + look.y;
  const int stride = image.made_stride;
  const float* samples = global<const float>(image.samples) +
                         static_cast<i64>(y + plane.top) * stride + x + plane.left;
  const short* taps = global<const short>(plane.taps);
  const int width = plane.width;
  const int height = plane.height;
  int dot_part = 0;
  for (int column = lane; column < width; column += kWarpSize) {
#pragma unroll 8
    for (int row = 0; row < height; ++row)
      dot_part += taps[row * width + column] * static_cast<int>(samples[row * stride + column]);
  }
  const Prefix part = window_sums(image, global<const CoarseRun>(plane.runs), plane.run_count, x, y,
                                  lane, kWarpSize);
  const i64 dot = warp_sum(dot_part);
  const i64 sum = warp_sum(static_cast<int>(part.sum));
  const i64 square = static_cast<u32>(warp_sum(static_cast<int>(part.square)));
  return score_of(plane, terms_of(plane, look.x, look.y), {dot, sum, square});
}

// Puts a scored position on the frame's list.
PATTERND_DEVICE void record_score(const CoarseParameters& p, const CoarseLook& look, float score) {
  const u32 slot = atomic_add(&global<CoarseCounters>(p.counters)->positions, 1U);
  if (slot >= p.position_capacity) global<CoarseCounters>(p.counters)->overflow = 1;
  store_score(p, slot, {look.plane, look.x, look.y, score});
}

// What a lane looks at, for all lanes.
PATTERND_DEVICE CoarseLook look_of_lane(const CoarseLook& look, int lane) {
  const int place = shuffle_from(
      static_cast<int>(static_cast<u16>(look.x)) | static_cast<int>(look.y) << 16, lane);
  return {shuffle_from(look.plane, lane), static_cast<short>(place & 0xFFFF),
          static_cast<short>(place >> 16), 0.0F};
}

// A lane judges a place, the warp scores together what promises enough. Neighbours on the list,
// which promise alike, go to different warps.
PATTERND_KERNEL __launch_bounds__(kCoarseJudgeThreads)
    patternd_coarse_judge(const CoarseParameters p) {
  CoarseCounters* counters = global<CoarseCounters>(p.counters);
  const u32 stored = counters->looks < p.look_capacity ? counters->looks : p.look_capacity;
  const u32 warps = static_cast<u32>(blocks_x() * threads_x()) / kWarpSize;
  const u32 lane = static_cast<u32>(thread_x() % kWarpSize);
  const u32 warp = static_cast<u32>(block_x() * threads_x() + thread_x()) / kWarpSize;
  for (u32 first = 0; first < stored; first += warps * kWarpSize) {
    const u32 mine = first + lane * warps + warp;
    CoarseLook look = {};
    bool good = false;
    if (mine < stored) {
      look = global<const CoarseLook>(p.looks)[mine];
      good = promising(p, look);
    }
    for (u32 left = warp_ballot(good); left != 0; left &= left - 1) {
      const CoarseLook one = look_of_lane(look, lowest_bit(left));
      const float score = exact_score(p, one);
      if (lane == 0 && score != 0.0F) record_score(p, one, score);
    }
  }
}

}  // namespace patternd::cuda
