// The coarsest level, searched whole for all patterns, angles and scales (T10–T12, T15): the GPU's
// version of pipeline/coarse_search.cpp, with the same integers and so the same scores.
//
//   prepare   row sums of the level's pixels and their squares
//   bound     the least numerator worth a look, shared by groups of neighbouring angles
//   screen    Σ T·S at every position of every plane, in single precision: a thread takes eight
//   rows
//             by two columns, so a pixel from shared memory serves eight products and a weight two.
//             Positions within a hundredth of the bound go on a list, the others score nothing
//   score     exact integer sums for those on the list, a warp each
// Suppression follows in suppress.cu.

#include "cuda/kernels/device.h"

namespace patternd::cuda {

// A pixel less the middle of its range; 16 bits are taken to 10, so that the sums fit 32 bits.
PATTERND_DEVICE int sample_at(const CoarseImage& image, int x, int y) {
  const u8* row = global<const u8>(image.pixels) + static_cast<i64>(y) * image.stride_bytes;
  if (image.is_16_bit == 0) return row[x] - 128;
  return (reinterpret_cast<const u16*>(row)[x] >> 6) - 512;
}

struct alignas(8) Prefix {
  u32 sum;
  u32 square;
};

PATTERND_DEVICE Prefix prefix_at(const CoarseImage& image, int x, int y) {
  const int column = minimum(maximum(x, 0), image.width);
  return global<const Prefix>(image.prefix)[static_cast<i64>(y) * (image.width + 1) + column];
}

// One warp a row: each lane adds up its stretch, the stretches are chained, then written.
PATTERND_KERNEL __launch_bounds__(128) patternd_coarse_prepare(const CoarseParameters p) {
  const CoarseImage image = global<const CoarseImage>(p.images)[block_y()];
  const int lane = thread_x();
  const int y = block_x() * threads_y() + thread_y();
  if (y >= image.height) return;
  Prefix* row = global<Prefix>(image.prefix) + static_cast<i64>(y) * (image.width + 1);
  u32 sum = 0;
  u32 square = 0;
  for (int first = 0; first < image.width; first += kWarpSize) {
    const int x = first + lane;
    const int value = x < image.width ? sample_at(image, x, y) : 0;
    u32 s = static_cast<u32>(value);
    u32 q = static_cast<u32>(value * value);
#pragma unroll
    for (int step = 1; step < kWarpSize; step *= 2) {
      const u32 s_before = static_cast<u32>(shuffle_up(static_cast<int>(s), step));
      const u32 q_before = static_cast<u32>(shuffle_up(static_cast<int>(q), step));
      if (lane >= step) s += s_before, q += q_before;
    }
    if (x < image.width) row[x + 1] = {sum + s, square + q};
    sum += static_cast<u32>(shuffle_from(static_cast<int>(s), kWarpSize - 1));
    square += static_cast<u32>(shuffle_from(static_cast<int>(q), kWarpSize - 1));
  }
  if (lane == 0) row[0] = {0, 0};
}

// ΣS and ΣS² over a run at a position; nothing outside the picture.
PATTERND_DEVICE void add_run(const CoarseImage& image, const CoarseRun& run, int x, int y, u32& sum,
                             u32& square) {
  const int row = y + run.row;
  if (row < 0 || row >= image.height) return;
  const Prefix begin = prefix_at(image, x + run.begin, row);
  const Prefix end = prefix_at(image, x + run.end, row);
  sum += end.sum - begin.sum;
  square += end.square - begin.square;
}

PATTERND_KERNEL __launch_bounds__(256) patternd_coarse_bound(const CoarseParameters p) {
  const CoarseGroup group = global<const CoarseGroup>(p.groups)[block_x()];
  const int width = group.blocks * kCoarseBlock;
  const CoarseImage image = global<const CoarseImage>(p.images)[group.image];
  const CoarseRun* runs = global<const CoarseRun>(group.runs);
  for (int i = block_y() * threads_x() + thread_x(); i < width * group.rows;
       i += blocks_y() * threads_x()) {
    const int x = group.first_x + i % width;
    const int y = group.first_y + i / width;
    u32 sum = 0;
    u32 square = 0;
    for (int r = 0; r < group.run_count; ++r) add_run(image, runs[r], x, y, sum, square);
    const float mean_part = static_cast<float>(static_cast<int>(sum));
    const float energy =
        static_cast<float>(static_cast<int>(square)) - mean_part * mean_part * group.per_pixel;
    // A window that is not flat has an energy of one half at least, which keeps rounding errors in
    // flat ones under the bound.
    global<float>(group.bounds)[i] = root(maximum(energy, 0.5F)) * group.factor;
  }
}

PATTERND_DEVICE void append_position(const CoarseParameters& p, const CoarsePosition& position) {
  const u32 slot = atomic_add(&global<CoarseCounters>(p.counters)->positions, 1U);
  if (slot < p.position_capacity)
    global<CoarsePosition>(p.positions)[slot] = position;
  else
    global<CoarseCounters>(p.counters)->overflow = 1;
}

// What becomes of a position, its numerator being known approximately.
PATTERND_DEVICE void screen(const CoarseParameters& p, const CoarsePlane& plane,
                            const CoarseGroup& group, int plane_index, int x, int row,
                            float numerator) {
  const int width = plane.blocks * kCoarseBlock;
  if (x >= width || row >= plane.rows) return;
  const int index = row * width + x;
  global<float>(plane.scores)[index] = 0.0F;
  const int kind = global<const int>(plane.block_class)[row * plane.blocks + x / kCoarseBlock];
  if (kind == kCoarseSkip) return;
  if (kind == kCoarseAllVisible) {
    float size = numerator * plane.inverse_length;
    if (plane.any_polarity != 0 && size < 0.0F) size = -size;
    if (!(size > global<const float>(group.bounds)[index])) return;
  } else if (global<const CoarseBorder>(plane.border)[kind].pixels[x % kCoarseBlock] == 0) {
    return;
  }
  append_position(p, {plane_index, plane.first_x + x, plane.first_y + row});
}

PATTERND_KERNEL __launch_bounds__(128) patternd_coarse_screen(const CoarseParameters p) {
  const CoarsePlane plane = global<const CoarsePlane>(p.planes)[block_x()];
  const int threads = threads_x();
  const int tile_width = threads * kCoarseColumns;
  const int tiles_across = (plane.blocks * kCoarseBlock + tile_width - 1) / tile_width;
  const int row_first = block_y() / tiles_across * kCoarseBand;
  const int x_first = block_y() % tiles_across * tile_width;
  if (row_first >= plane.rows) return;

  const CoarseImage image = global<const CoarseImage>(p.images)[plane.image];
  const int pixel_columns = tile_width + plane.width;
  float* weights = dynamic_shared<float>();
  float* pixels = weights + p.chunk_rows * plane.width * kCoarseBand;
  const int image_x = plane.first_x + x_first + plane.left;
  const int image_y = plane.first_y + row_first + plane.top;
  const int image_rows = plane.height + kCoarseBand - 1;
  const Float4* bands = global<const Float4>(plane.bands);

  float sum[kCoarseColumns][kCoarseBand] = {};
  for (int chunk = 0; chunk < image_rows; chunk += p.chunk_rows) {
    const int rows = minimum(p.chunk_rows, image_rows - chunk);
    block_barrier();
    for (int i = thread_x(); i < rows * plane.width * 2; i += threads)
      reinterpret_cast<Float4*>(weights)[i] = load_float4(bands + chunk * plane.width * 2 + i);
    for (int r = 0; r < rows; ++r) {
      const int y = image_y + chunk + r;
      for (int i = thread_x(); i < pixel_columns; i += threads) {
        const int x = image_x + i;
        const bool inside = x >= 0 && y >= 0 && x < image.width && y < image.height;
        pixels[r * pixel_columns + i] = inside ? static_cast<float>(sample_at(image, x, y)) : 0.0F;
      }
    }
    block_barrier();
    for (int r = 0; r < rows; ++r) {
      const float* from = pixels + r * pixel_columns + thread_x();
      const Float4* weight = reinterpret_cast<const Float4*>(weights) + r * plane.width * 2;
      for (int t = 0; t < plane.width; ++t) {
        const Float4 a = weight[2 * t];
        const Float4 b = weight[2 * t + 1];
#pragma unroll
        for (int c = 0; c < kCoarseColumns; ++c) {
          const float s = from[t + c * threads];
          sum[c][0] = fused(a.x, s, sum[c][0]);
          sum[c][1] = fused(a.y, s, sum[c][1]);
          sum[c][2] = fused(a.z, s, sum[c][2]);
          sum[c][3] = fused(a.w, s, sum[c][3]);
          sum[c][4] = fused(b.x, s, sum[c][4]);
          sum[c][5] = fused(b.y, s, sum[c][5]);
          sum[c][6] = fused(b.z, s, sum[c][6]);
          sum[c][7] = fused(b.w, s, sum[c][7]);
        }
      }
    }
  }

  const CoarseGroup group = global<const CoarseGroup>(p.groups)[plane.group];
#pragma unroll
  for (int c = 0; c < kCoarseColumns; ++c) {
#pragma unroll
    for (int k = 0; k < kCoarseBand; ++k)
      screen(p, plane, group, block_x(), x_first + c * threads + thread_x(), row_first + k,
             sum[c][k]);
  }
}

// The exact score of a position; the warp works on it together.
PATTERND_DEVICE void score_position(const CoarseParameters& p, const CoarsePosition& position,
                                    int lane) {
  const CoarsePlane plane = global<const CoarsePlane>(p.planes)[position.plane];
  const CoarseImage image = global<const CoarseImage>(p.images)[plane.image];
  const short* taps = global<const short>(plane.taps);
  int numerator_part = 0;
  for (int i = lane; i < plane.width * plane.height; i += kWarpSize) {
    const int x = position.x + plane.left + i % plane.width;
    const int y = position.y + plane.top + i / plane.width;
    if (x >= 0 && y >= 0 && x < image.width && y < image.height)
      numerator_part += taps[i] * sample_at(image, x, y);
  }
  u32 sum_part = 0;
  u32 square_part = 0;
  for (int r = lane; r < plane.run_count; r += kWarpSize)
    add_run(image, global<const CoarseRun>(plane.runs)[r], position.x, position.y, sum_part,
            square_part);
  const int dot = warp_sum(numerator_part);
  const i64 sum = warp_sum(static_cast<int>(sum_part));
  const i64 square = static_cast<u32>(warp_sum(static_cast<int>(square_part)));
  if (lane != 0) return;

  const int x = position.x - plane.first_x;
  const int y = position.y - plane.first_y;
  i64 n = plane.pixels;
  i64 pattern_sum = 0;
  double inverse_norm = plane.inverse_norm;
  const int kind = global<const int>(plane.block_class)[y * plane.blocks + x / kCoarseBlock];
  if (kind >= 0) {
    const CoarseBorder* border = global<const CoarseBorder>(plane.border) + kind;
    n = border->pixels[x % kCoarseBlock];
    pattern_sum = border->sum[x % kCoarseBlock];
    inverse_norm = border->inverse_norm[x % kCoarseBlock];
  }
  const i64 energy = n * square - sum * sum;
  if (energy <= 0) return;
  const i64 numerator = n * dot - pattern_sum * sum;
  const double score =
      static_cast<double>(numerator) * inverse_norm / root(static_cast<double>(energy));
  const double size = score < 0 ? -score : score;
  if (size <= plane.threshold || (score < 0 && plane.any_polarity == 0)) return;
  const float kept = static_cast<float>(size < 1.0 ? size : 1.0);
  global<float>(plane.scores)[y * plane.blocks * kCoarseBlock + x] = score < 0 ? -kept : kept;
}

PATTERND_KERNEL __launch_bounds__(256) patternd_coarse_score(const CoarseParameters p) {
  const u32 count = global<const CoarseCounters>(p.counters)->positions;
  const u32 stored = count < p.position_capacity ? count : p.position_capacity;
  const u32 warps = static_cast<u32>(blocks_x() * threads_y());
  for (u32 i = static_cast<u32>(block_x() * threads_y() + thread_y()); i < stored; i += warps)
    score_position(p, global<const CoarsePosition>(p.positions)[i], thread_x());
}

}  // namespace patternd::cuda
