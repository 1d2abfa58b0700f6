// What is foreground, where it takes more than a comparison with a number: Otsu's threshold
// (pipeline/components_threshold.cpp) is chosen on the device, the adaptive one
// (pipeline/components_adaptive.cpp) compares with a local mean. Both by the CPU's formulas, on
// whole numbers until the last step, so that the foreground is the same to the bit.

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/components_parameters.h"
#include "cuda/kernels/device.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

constexpr int kForegroundWarps = kForegroundThreads / kWarpSize;

template <class T>
PATTERND_DEVICE const T* picture_row(const ForegroundParameters& p, int y) {
  return reinterpret_cast<const T*>(global<const u8>(p.picture) +
                                    static_cast<i64>(y) * p.picture_stride_bytes);
}
PATTERND_DEVICE u32 grey_at(const ForegroundParameters& p, int x, int y) {
  return p.deep != 0 ? picture_row<u16>(p, y)[x] : picture_row<u8>(p, y)[x];
}

// ---- Otsu

// 8 bit: a warp has a histogram of its own in shared memory, or all threads would fight for the
// counts of a common value. 16 bit: they seldom meet.
PATTERND_KERNEL __launch_bounds__(kForegroundThreads)
    patternd_components_histogram(const ForegroundParameters p) {
  __shared__ u32 counts[kForegroundWarps][256];
  u32* const histogram = global<u32>(p.histogram);
  for (int v = thread_x(); v < 256; v += kForegroundThreads)
    for (int warp = 0; warp < kForegroundWarps; ++warp) counts[warp][v] = 0;
  block_barrier();
  u32* const own = counts[thread_x() / kWarpSize];
  for (int y = block_x(); y < p.height; y += blocks_x()) {
    for (int x = thread_x(); x < p.width; x += kForegroundThreads) {
      const u32 value = grey_at(p, x, y);
      atomic_sum(p.deep != 0 ? histogram + value : own + value, 1U);
    }
  }
  block_barrier();
  for (int v = thread_x(); p.deep == 0 && v < 256; v += kForegroundThreads) {
    u32 count = 0;
    for (int warp = 0; warp < kForegroundWarps; ++warp) count += counts[warp][v];
    if (count != 0) atomic_sum(histogram + v, count);
  }
}

// The sum over the threads before this one; `sums` is scratch.
PATTERND_DEVICE u64 sum_before(u64 value, u64 (&sums)[2][kForegroundThreads]) {
  const int thread = thread_x();
  int now = 0;
  block_barrier();  // what was in `sums` has been read
  sums[0][thread] = value;
  block_barrier();
  for (int step = 1; step < kForegroundThreads; step *= 2) {
    sums[1 - now][thread] = sums[now][thread] + (thread >= step ? sums[now][thread - step] : 0);
    now = 1 - now;
    block_barrier();
  }
  return sums[now][thread] - value;
}
PATTERND_DEVICE u64 sum_of_all(const u64 (&sums)[2][kForegroundThreads]) {
  // An even number of steps leaves the result in the first half.
  static_assert(kForegroundThreads == 256, "eight steps");
  return sums[0][kForegroundThreads - 1];
}

// A split of the histogram: values up to `value` on one side. −1: none.
struct Split {
  double between;
  int value;
};

// The best split of a thread's share of the values, the lowest of equals.
PATTERND_DEVICE Split best_split(const u32* histogram, int first, int last, u64 count, u64 sum,
                                 u64 total, u64 total_sum) {
  Split best{0, -1};
  for (int v = first; v < last; ++v) {
    if (histogram[v] == 0) continue;
    count += histogram[v];
    sum += static_cast<u64>(v) * histogram[v];
    if (count == total) break;
    const double low = static_cast<double>(count);
    const double high = static_cast<double>(total - count);
    const double difference =
        static_cast<double>(total_sum - sum) / high - static_cast<double>(sum) / low;
    const double between = low * high * difference * difference;
    if (between > best.between) best = {between, v};
  }
  return best;
}

// One block. Leaves the histogram zero for the next picture.
PATTERND_KERNEL __launch_bounds__(kForegroundThreads)
    patternd_components_otsu(const ForegroundParameters p) {
  __shared__ u64 sums[2][kForegroundThreads];
  __shared__ Split splits[kForegroundThreads];
  u32* const histogram = global<u32>(p.histogram);
  const int share = p.deep != 0 ? 256 : 1;
  const int first = thread_x() * share;
  u64 count = 0;
  u64 sum = 0;
  for (int v = first; v < first + share; ++v) {
    count += histogram[v];
    sum += static_cast<u64>(v) * histogram[v];
  }
  const u64 count_before = sum_before(count, sums);
  const u64 total = sum_of_all(sums);
  const u64 grey_before = sum_before(sum, sums);
  const u64 total_sum = sum_of_all(sums);
  splits[thread_x()] =
      best_split(histogram, first, first + share, count_before, grey_before, total, total_sum);
  for (int v = first; v < first + share; ++v) histogram[v] = 0;
  block_barrier();
  if (thread_x() != 0) return;
  Split best{0, -1};
  for (const Split& split : splits)
    if (split.between > best.between) best = split;
  // Halfway between two values; a picture of one value has no foreground either way.
  const int mean = static_cast<int>(total_sum / total);
  const bool found = best.value >= 0;
  int* const range = global<int>(p.range);
  range[0] = p.below != 0 ? 0 : (found ? best.value : mean) + 1;
  range[1] = p.below != 0 ? (found ? best.value : mean - 1) : p.max_value;
}

// ---- adaptive

// For each pixel the sum of the column's pixels within `radius` rows of it. grid: (columns, strips
// of kColumnRows rows).
PATTERND_KERNEL __launch_bounds__(kForegroundThreads)
    patternd_components_columns(const ForegroundParameters p) {
  const int x = block_x() * kForegroundThreads + thread_x();
  if (x >= p.width) return;
  u32* const columns = global<u32>(p.columns);
  const int begin = block_y() * kColumnRows;
  const int end = minimum(begin + kColumnRows, p.height);
  u32 sum = 0;
  for (int y = maximum(begin - p.radius, 0); y < minimum(begin + p.radius, p.height); ++y)
    sum += grey_at(p, x, y);
  for (int y = begin; y < end; ++y) {
    if (y + p.radius < p.height) sum += grey_at(p, x, y + p.radius);
    columns[static_cast<i64>(y) * p.width + x] = sum;
    if (y >= p.radius) sum -= grey_at(p, x, y - p.radius);
  }
}

// The sums of a row up to each pixel; a block a row, a thread its share of the columns.
PATTERND_DEVICE void sum_row(const ForegroundParameters& p, int y, u64* prefix,
                             u64 (&sums)[2][kForegroundThreads]) {
  const u32* const columns = global<const u32>(p.columns) + static_cast<i64>(y) * p.width;
  const int share = (p.width + kForegroundThreads - 1) / kForegroundThreads;
  const int first = minimum(thread_x() * share, p.width);
  const int last = minimum(first + share, p.width);
  u64 sum = 0;
  for (int x = first; x < last; ++x) sum += columns[x];
  sum = sum_before(sum, sums);
  if (thread_x() == 0) prefix[0] = 0;
  for (int x = first; x < last; ++x) prefix[x + 1] = sum += columns[x];
  block_barrier();
}

PATTERND_KERNEL __launch_bounds__(kForegroundThreads)
    patternd_components_adaptive(const ForegroundParameters p) {
  __shared__ u64 sums[2][kForegroundThreads];
  const int y = block_x();
  u64* const prefix = global<u64>(p.prefix) + static_cast<i64>(y) * (p.width + 1);
  u32* const bits = global<u32>(p.bits) + static_cast<i64>(y) * p.words;
  sum_row(p, y, prefix, sums);
  const int rows = minimum(y + p.radius, p.height - 1) - maximum(y - p.radius, 0) + 1;
  for (int first = 0; first < p.words * kWarpSize; first += kForegroundThreads) {
    const int x = first + thread_x();
    bool on = false;
    if (x < p.width) {
      const int end = minimum(x + p.radius, p.width - 1) + 1;
      const int begin = maximum(x - p.radius, 0);
      const i64 count = static_cast<i64>(end - begin) * rows;
      const i64 limit = floor_to_i64(p.offset * static_cast<double>(count));
      const i64 above = static_cast<i64>(grey_at(p, x, y)) * count -
                        static_cast<i64>(prefix[end] - prefix[begin]);
      on = (p.below != 0 ? -above : above) > limit;
    }
    const u32 word = warp_ballot(on);
    if (x % kWarpSize == 0 && x / kWarpSize < p.words) bits[x / kWarpSize] = word;
  }
}

}  // namespace patternd::cuda
