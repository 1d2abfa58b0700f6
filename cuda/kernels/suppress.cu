// Suppression and compaction of the coarse search's scores on the device (T13): the GPU's version
// of pipeline/suppress.cpp, with its order (`better`), so that the same finds stay.
//
//   peaks    positions that none of their eight neighbours beats, onto their plane's list
//   trim     lists longer than the limit lose their worst
//   across   peaks that no neighbouring plane (angle, scale) beats within 1.5 px, onto the
//   pattern's
//            list
//   select   the best of a pattern, in order

#include "cuda/kernels/device.h"

namespace patternd::cuda {

// Higher score, else further up, else further left.
PATTERND_DEVICE bool better_peak(float score_a, int x_a, int y_a, float score_b, int x_b, int y_b) {
  if (score_a != score_b) return score_a > score_b;
  return y_a != y_b ? y_a < y_b : x_a < x_b;
}

PATTERND_DEVICE float magnitude(float value) { return value < 0.0F ? -value : value; }

PATTERND_KERNEL __launch_bounds__(256) patternd_suppress_peaks(const CoarseParameters p) {
  const u32 count = global<const CoarseCounters>(p.counters)->positions;
  const u32 stored = count < p.position_capacity ? count : p.position_capacity;
  for (u32 i = static_cast<u32>(block_x() * threads_x() + thread_x()); i < stored;
       i += static_cast<u32>(blocks_x() * threads_x())) {
    const CoarsePosition at = global<const CoarsePosition>(p.positions)[i];
    const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[at.plane];
    const int width = plane.blocks * kCoarseBlock;
    const int x = at.x - plane.first_x;
    const int y = at.y - plane.first_y;
    const float* scores = global<const float>(plane.scores);
    const float signed_score = scores[y * width + x];
    if (signed_score == 0.0F) continue;
    const float score = magnitude(signed_score);
    bool beaten = false;
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx) {
        const int nx = x + dx;
        const int ny = y + dy;
        if ((dx == 0 && dy == 0) || nx < 0 || ny < 0 || nx >= width || ny >= plane.rows) continue;
        const float other = magnitude(scores[ny * width + nx]);
        beaten = beaten || (other != 0.0F && better_peak(other, nx, ny, score, x, y));
      }
    }
    if (beaten) continue;
    const u32 slot = atomic_add(global<u32>(p.peak_counts) + at.plane, 1U);
    if (slot < kPeakCapacity) {
      global<CoarsePeak>(p.peaks)[static_cast<i64>(at.plane) * kPeakCapacity + slot] = {
          score, signed_score < 0.0F ? 1 : 0, at.x, at.y};
    } else {
      global<CoarseCounters>(p.counters)->overflow = 1;
    }
  }
}

// One block a plane.
PATTERND_KERNEL __launch_bounds__(256) patternd_suppress_trim(const CoarseParameters p) {
  __shared__ CoarsePeak kept[kPeakCapacity];
  u32* counter = global<u32>(p.peak_counts) + block_x();
  const int count = minimum(static_cast<int>(*counter), kPeakCapacity);
  const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[block_x()];
  const int limit = global<const CoarseLimits>(p.limits)[plane.search].peaks_per_plane;
  if (count <= limit) return;
  CoarsePeak* peaks = global<CoarsePeak>(p.peaks) + static_cast<i64>(block_x()) * kPeakCapacity;
  for (int i = thread_x(); i < count; i += threads_x()) {
    const CoarsePeak own = peaks[i];
    int rank = 0;
    for (int j = 0; j < count; ++j) {
      const CoarsePeak& other = peaks[j];
      if (better_peak(other.score, other.x, other.y, own.score, own.x, own.y)) ++rank;
    }
    if (rank < limit) kept[rank] = own;
  }
  block_barrier();
  for (int i = thread_x(); i < limit; i += threads_x()) peaks[i] = kept[i];
  if (thread_x() == 0) *counter = static_cast<u32>(limit);
}

// Whether a peak of the other plane beats this one, which lies at (x, y) in that plane's positions.
PATTERND_DEVICE bool beaten_by(const CoarseParameters& p, int other_plane, const CoarsePeak& peak,
                               float x, float y, bool other_wins_ties) {
  constexpr float kSamePlace = 1.5F;
  const int count =
      minimum(static_cast<int>(global<const u32>(p.peak_counts)[other_plane]), kPeakCapacity);
  const CoarsePeak* others =
      global<const CoarsePeak>(p.peaks) + static_cast<i64>(other_plane) * kPeakCapacity;
  for (int i = 0; i < count; ++i) {
    const CoarsePeak& other = others[i];
    const float dx = static_cast<float>(other.x) - x;
    const float dy = static_cast<float>(other.y) - y;
    if (magnitude(dx) > kSamePlace || magnitude(dy) > kSamePlace) continue;
    if (other.score > peak.score || (other.score == peak.score && other_wins_ties)) return true;
  }
  return false;
}

// One warp a plane; its lanes share the peaks.
PATTERND_KERNEL __launch_bounds__(256) patternd_suppress_across(const CoarseParameters p) {
  const int index = block_x() * threads_y() + thread_y();
  if (index >= p.plane_count) return;
  const CoarsePlane& plane = global<const CoarsePlane>(p.planes)[index];
  const int count =
      minimum(static_cast<int>(global<const u32>(p.peak_counts)[index]), kPeakCapacity);
  const CoarsePeak* peaks =
      global<const CoarsePeak>(p.peaks) + static_cast<i64>(index) * kPeakCapacity;
  for (int i = thread_x(); i < count; i += kWarpSize) {
    const CoarsePeak peak = peaks[i];
    bool beaten = false;
    for (int n = plane.neighbour_begin; n < plane.neighbour_end && !beaten; ++n) {
      const int other = global<const int>(p.neighbours)[n];
      const CoarsePlane& next = global<const CoarsePlane>(p.planes)[other];
      beaten = beaten_by(p, other, peak, static_cast<float>(peak.x) + plane.phase_x - next.phase_x,
                         static_cast<float>(peak.y) + plane.phase_y - next.phase_y, other < index);
    }
    if (beaten) continue;
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

// One block a pattern.
PATTERND_KERNEL __launch_bounds__(256) patternd_suppress_select(const CoarseParameters p) {
  const int search = block_x();
  const int count =
      minimum(static_cast<int>(global<const u32>(p.found_counts)[search]), kFoundCapacity);
  const int limit = global<const CoarseLimits>(p.limits)[search].selected;
  const CoarseFound* found =
      global<const CoarseFound>(p.found) + static_cast<i64>(search) * kFoundCapacity;
  TracedCandidate* selected =
      global<TracedCandidate>(p.selected) + static_cast<i64>(search) * p.select_limit;
  for (int i = thread_x(); i < count; i += threads_x()) {
    const CoarseFound own = found[i];
    int rank = 0;
    for (int j = 0; j < count; ++j) rank += better_found(found[j], own) ? 1 : 0;
    if (rank < limit)
      selected[rank] = candidate_of(global<const CoarsePlane>(p.planes)[own.plane], own);
  }
  if (thread_x() == 0) global<int>(p.selected_counts)[search] = minimum(count, limit);
}

}  // namespace patternd::cuda
