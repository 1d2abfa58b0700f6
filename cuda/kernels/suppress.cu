// Suppression and compaction of the coarse search's scores on the device (T13): the GPU's version
// of pipeline/suppress.cpp, with its order (`better`), so that the same finds stay.
//
//   peaks    positions that none of their eight neighbours beats, onto their plane's list
//   across   of each plane's best, those that no neighbouring plane (angle, scale) beats within
//            1.5 px, onto the pattern's list; the planes' maps are cleared for the next frame where
//            this one wrote
//   select   the best of a pattern, in order

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/device.h"

namespace patternd::cuda {

// Higher score, else further up, else further left.
PATTERND_DEVICE bool better_peak(float score_a, int x_a, int y_a, float score_b, int x_b, int y_b) {
  if (score_a != score_b) return score_a > score_b;
  return y_a != y_b ? y_a < y_b : x_a < x_b;
}

PATTERND_DEVICE float magnitude(float value) { return value < 0.0F ? -value : value; }

// Positions on the frame's list.
PATTERND_DEVICE u32 stored_positions(const CoarseParameters& p) {
  const u32 positions = global<const CoarseCounters>(p.counters)->positions;
  return positions < p.position_capacity ? positions : p.position_capacity;
}

// Whether one of the eight neighbours beats the position; all are read before any is compared.
PATTERND_DEVICE bool beaten_by_neighbour(const CoarsePlane& plane, const CoarsePosition& at) {
  const int width = plane.blocks * kCoarseBlock;
  const float* scores = global<const float>(plane.scores);
  float around[9];
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    const int x = at.x + i % 3 - 1;
    const int y = at.y + i / 3 - 1;
    const bool inside = x >= 0 && y >= 0 && x < width && y < plane.rows;
    around[i] = inside && i != 4 ? scores[y * width + x] : 0.0F;
  }
  bool beaten = false;
#pragma unroll
  for (int i = 0; i < 9; ++i) {
    const float other = magnitude(around[i]);
    beaten = beaten || (other != 0.0F && better_peak(other, at.x + i % 3 - 1, at.y + i / 3 - 1,
                                                     magnitude(at.score), at.x, at.y));
  }
  return beaten;
}

PATTERND_KERNEL __launch_bounds__(128) patternd_suppress_peaks(const CoarseParameters p) {
  await_launch_before();
  note_moment(p.suppression_moment);
  let_next_launch_start();
  const u32 stored = stored_positions(p);
  for (u32 i = static_cast<u32>(block_x() * threads_x() + thread_x()); i < stored;
       i += static_cast<u32>(blocks_x() * threads_x())) {
    const CoarsePosition at = global<const CoarsePosition>(p.positions)[i];
    const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[at.plane];
    if (beaten_by_neighbour(plane, at)) continue;
    const u32 slot = atomic_add(global<u32>(p.peak_counts) + at.plane, 1U);
    if (slot < kPeakCapacity) {
      global<CoarsePeak>(p.peaks)[static_cast<i64>(at.plane) * kPeakCapacity + slot] = {
          magnitude(at.score), at.score < 0.0F ? 1 : 0, plane.first_x + at.x, plane.first_y + at.y};
    } else {
      global<CoarseCounters>(p.counters)->overflow = 1;
    }
  }
}

PATTERND_DEVICE void clear_scores(const CoarseParameters& p, int block) {
  const u32 stored = stored_positions(p);
  for (u32 i = static_cast<u32>(block * threads_x() + thread_x()); i < stored;
       i += static_cast<u32>(kClearBlocks * threads_x())) {
    const CoarsePosition at = global<const CoarsePosition>(p.positions)[i];
    const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[at.plane];
    global<float>(plane.scores)[at.y * plane.blocks * kCoarseBlock + at.x] = 0.0F;
  }
}

// A plane's peaks, and which of them are its best, as many as may be.
struct PlanePeaks {
  const CoarsePeak* peaks;
  int count;
  bool all;  // may be
};
PATTERND_DEVICE PlanePeaks peaks_of(const CoarseParameters& p, int plane, int limit) {
  const int count =
      minimum(static_cast<int>(global<const u32>(p.peak_counts)[plane]), kPeakCapacity);
  return {global<const CoarsePeak>(p.peaks) + static_cast<i64>(plane) * kPeakCapacity, count,
          count <= limit};
}

using PeakBits = u32[kPeakCapacity / 32];
PATTERND_DEVICE bool has_bit(const PeakBits& bits, int i) {
  return (bits[i / 32] >> i % 32 & 1U) != 0;
}

// Sets the bits of all but the `limit` best; all threads.
PATTERND_DEVICE void mark_worse(const PlanePeaks& plane, int limit, PeakBits& worse) {
  block_barrier();
  for (int i = thread_x(); i < kPeakCapacity / 32; i += threads_x()) worse[i] = 0;
  block_barrier();
  if (!plane.all) {
    for (int i = thread_x(); i < plane.count; i += threads_x()) {
      const CoarsePeak own = plane.peaks[i];
      int rank = 0;
      for (int j = 0; j < plane.count; ++j) {
        const CoarsePeak& other = plane.peaks[j];
        if (better_peak(other.score, other.x, other.y, own.score, own.x, own.y)) ++rank;
      }
      if (rank >= limit) atomic_set_bits(worse + i / 32, 1U << i % 32);
    }
    block_barrier();
  }
}

// Whether a peak beats another, which lies at (x, y) in its plane's positions.
PATTERND_DEVICE bool beats(const CoarsePeak& peak, float score, float x, float y, bool wins_ties) {
  constexpr float kSamePlace = 1.5F;
  const float dx = static_cast<float>(peak.x) - x;
  const float dy = static_cast<float>(peak.y) - y;
  return magnitude(dx) <= kSamePlace && magnitude(dy) <= kSamePlace &&
         (peak.score > score || (peak.score == score && wins_ties));
}

// A plane beside the block's, in shared memory.
struct Neighbour {
  PlanePeaks peaks;
  float dx;  // from the block's plane's positions to its
  float dy;
  bool wins_ties;
};

// One warp, a neighbour a lane: all are read at once.
PATTERND_DEVICE void load_neighbours(const CoarseParameters& p, const CoarsePlane& plane, int limit,
                                     int first, int count, Neighbour (&neighbours)[kWarpSize]) {
  const int lane = thread_x();
  if (lane >= count) return;
  const int other = global<const int>(p.neighbours)[first + lane];
  const CoarsePlane& next = global<const CoarsePlane>(p.planes)[other];
  neighbours[lane] = {peaks_of(p, other, limit), plane.phase_x - next.phase_x,
                      plane.phase_y - next.phase_y, other < block_x()};
}

// Pair number `pair` of the plane's peaks and a neighbour's: where the neighbour's may be, and
// beats the plane's, that one's bit is set.
PATTERND_DEVICE void compare(const PlanePeaks& own, const Neighbour& neighbour, int pair,
                             const PeakBits& worse, PeakBits& beaten) {
  const int theirs = pair / own.count;
  const int i = pair - theirs * own.count;
  const CoarsePeak& peak = own.peaks[i];
  if ((neighbour.peaks.all || !has_bit(worse, theirs)) &&
      beats(neighbour.peaks.peaks[theirs], peak.score, static_cast<float>(peak.x) + neighbour.dx,
            static_cast<float>(peak.y) + neighbour.dy, neighbour.wins_ties))
    atomic_set_bits(beaten + i / 32, 1U << i % 32);
}

// Pairs with all neighbours of which every peak may be, one a thread at a time.
PATTERND_DEVICE void compare_all(const PlanePeaks& own, const Neighbour (&neighbours)[kWarpSize],
                                 int count, const PeakBits& worse, PeakBits& beaten) {
  int n = 0;
  int before = 0;
  for (int pair = thread_x();; pair += threads_x()) {
    for (; n < count; ++n) {
      const PlanePeaks& peaks = neighbours[n].peaks;
      const int pairs = peaks.all ? own.count * peaks.count : 0;
      if (pair - before < pairs) break;
      before += pairs;
    }
    if (n == count) return;
    compare(own, neighbours[n], pair - before, worse, beaten);
  }
}

// One block a plane, and behind them those that clear.
PATTERND_KERNEL __launch_bounds__(256) patternd_suppress_across(const CoarseParameters p) {
  __shared__ PeakBits beaten;
  __shared__ PeakBits worse;
  __shared__ Neighbour neighbours[kWarpSize];
  await_launch_before();
  let_next_launch_start();
  const int index = block_x();
  if (index >= p.plane_count) {
    clear_scores(p, index - p.plane_count);
    return;
  }
  const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[index];
  const int limit = global<const CoarseLimits>(p.limits)[plane.search].peaks_per_plane;
  const PlanePeaks own = peaks_of(p, index, limit);
  if (own.count == 0) return;
  mark_worse(own, limit, beaten);
  for (int first = plane.neighbour_begin; first < plane.neighbour_end; first += kWarpSize) {
    const int count = minimum(kWarpSize, plane.neighbour_end - first);
    block_barrier();
    if (thread_x() < kWarpSize) load_neighbours(p, plane, limit, first, count, neighbours);
    block_barrier();
    compare_all(own, neighbours, count, worse, beaten);
    for (int n = 0; n < count; ++n) {
      const PlanePeaks& peaks = neighbours[n].peaks;
      if (peaks.all) continue;
      mark_worse(peaks, limit, worse);
      for (int pair = thread_x(); pair < own.count * peaks.count; pair += threads_x())
        compare(own, neighbours[n], pair, worse, beaten);
    }
  }
  block_barrier();
  for (int i = thread_x(); i < own.count; i += threads_x()) {
    if (has_bit(beaten, i)) continue;
    const CoarsePeak peak = own.peaks[i];
    const u32 slot = atomic_add(global<u32>(p.found_counts) + plane.search, 1U);
    if (slot < kFoundCapacity) {
      global<CoarseFound>(p.found)[static_cast<i64>(plane.search) * kFoundCapacity + slot] = {
          peak.score, peak.inverted, peak.x, peak.y, index};
    } else {
      global<CoarseCounters>(p.counters)->overflow = 1;
    }
  }
}

PATTERND_DEVICE bool better_found(const CoarseFound& a, const CoarseFound& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.plane != b.plane) return a.plane < b.plane;
  return a.y != b.y ? a.y < b.y : a.x < b.x;
}

// Where a find lies, in level-0 pixels of the pattern's centre.
PATTERND_DEVICE TracedCandidate candidate_of(const CoarsePlane& plane, const CoarseFound& found) {
  TracedCandidate out = {};
  out.pose.x = (found.x + static_cast<double>(plane.phase_x) + 0.5) * plane.spacing - 0.5;
  out.pose.y = (found.y + static_cast<double>(plane.phase_y) + 0.5) * plane.spacing - 0.5;
  out.pose.angle_deg = plane.angle_deg;
  out.pose.scale = plane.scale;
  out.score = static_cast<double>(found.score);
  out.visible = 1;
  out.search = plane.search;
  out.inverted = found.inverted;
  return out;
}

// How many of a pattern's finds are better than number `mine`; `kSelectLanes` threads side by side
// count together. All threads.
PATTERND_DEVICE int rank_of(const CoarseFound* found, int count, int mine) {
  __shared__ float scores[kSelectScores];
  const int lane = thread_x() % kSelectLanes;
  const CoarseFound own = found[minimum(mine, count - 1)];
  int rank = 0;
#pragma unroll 1
  for (int first = 0; first < count; first += kSelectScores) {
    const int some = minimum(kSelectScores, count - first);
    block_barrier();
#pragma unroll 1
    for (int i = thread_x(); i < some; i += kSelectThreads) scores[i] = found[first + i].score;
    block_barrier();
    int ties = 0;
#pragma unroll 4
    for (int j = lane; j < some; j += kSelectLanes) {
      rank += scores[j] > own.score ? 1 : 0;
      ties += scores[j] == own.score ? 1 : 0;
    }
    if (ties == 0) continue;
      // Itself, as a rule.
#pragma unroll 1
    for (int j = lane; j < some; j += kSelectLanes)
      if (scores[j] == own.score) rank += better_found(found[first + j], own) ? 1 : 0;
  }
  for (int lanes = 1; lanes < kSelectLanes; lanes *= 2) rank += shuffle_xor(rank, lanes);
  return rank;
}

// grid: (some blocks, pattern). A find's place is the number of finds that are better.
PATTERND_KERNEL __launch_bounds__(256) patternd_suppress_select(const CoarseParameters p) {
  await_launch_before();
  let_next_launch_start();
  const int search = block_y();
  const int count =
      minimum(static_cast<int>(global<const u32>(p.found_counts)[search]), kFoundCapacity);
  const int limit = global<const CoarseLimits>(p.limits)[search].selected;
  if (block_x() == 0 && thread_x() == 0)
    global<int>(p.selected_counts)[search] = minimum(count, limit);
  const CoarseFound* all =
      global<const CoarseFound>(p.found) + static_cast<i64>(search) * kFoundCapacity;
  constexpr int kFindsAtOnce = kSelectThreads / kSelectLanes;
#pragma unroll 1
  for (int first = block_x() * kFindsAtOnce; first < count; first += blocks_x() * kFindsAtOnce) {
    const int mine = first + thread_x() / kSelectLanes;
    const int rank = rank_of(all, count, mine);
    if (thread_x() % kSelectLanes != 0 || mine >= count || rank >= limit) continue;
    const CoarseFound& found = all[mine];
    global<TracedCandidate>(p.selected)[static_cast<i64>(search) * p.select_limit + rank] =
        candidate_of(global<const CoarsePlane>(p.planes)[found.plane], found);
  }
}

}  // namespace patternd::cuda
