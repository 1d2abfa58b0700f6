// The way down the pyramid (T14): one launch follows all candidates of all patterns through a
// level, one block a candidate; another sorts each pattern's and drops what does not go on.

#include "cuda/kernels/pose_refine.h"
#include "cuda/kernels/pose_trace.h"

namespace patternd::cuda {

// grid: (candidate, search).
PATTERND_KERNEL __launch_bounds__(512) patternd_trace_step(const TraceParameters p) {
  const int search = block_y();
  const TracePattern& pattern = global<const TracePattern>(p.patterns)[search];
  if (pattern.used == 0 || block_x() >= global<const int>(p.counts)[search]) return;
  TracedCandidate* own =
      global<TracedCandidate>(p.candidates) + static_cast<i64>(search) * p.select_limit + block_x();
  TracedCandidate candidate = *own;
  const double coarse_score = candidate.score;
  const TraceImage image = global<const TraceImage>(p.images)[pattern.image_level];
  const RefineLimits limits = {3, 0.06, 0.5, 0};
  // By regression where that converges, else by trying the neighbours; the next level takes over.
  if (refine_pose(global<const RefinePattern>(p.regressions)[search], pattern, image, candidate,
                  limits)) {
    score_candidate(pattern, image, candidate);
  } else {
    block_barrier();
    trace_step(pattern, image, candidate);
  }
  // Resampling blurs, and at the coarsest level that can cost a true find more than chance costs a
  // false one.
  if (pattern.coarsest != 0 && candidate.score < coarse_score) candidate.score = coarse_score;
  if (thread_x() == 0) *own = candidate;
}

PATTERND_DEVICE bool better_candidate(const TracedCandidate& a, const TracedCandidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.pose.y != b.pose.y) return a.pose.y < b.pose.y;
  if (a.pose.x != b.pose.x) return a.pose.x < b.pose.x;
  return a.pose.angle_deg < b.pose.angle_deg;
}

PATTERND_DEVICE double absolute(double value) { return value < 0 ? -value : value; }

// The representative nearest to zero.
PATTERND_DEVICE double wrapped(double angle_deg, double period_deg) {
  const double turns = angle_deg / period_deg;
  return angle_deg - period_deg * static_cast<double>(floor_to_int(turns + 0.5));
}

// One find: within a pixel of the level, an angle step and a scale step.
PATTERND_DEVICE bool same_pose(const TracePattern& pattern, const TracedPose& a,
                               const TracedPose& b) {
  const double pixel = static_cast<double>(1 << pattern.image_level);
  if (absolute(a.x - b.x) > pixel || absolute(a.y - b.y) > pixel) return false;
  if (pattern.angle_step_deg > 0 &&
      absolute(wrapped(a.angle_deg - b.angle_deg, pattern.period_deg)) > pattern.angle_step_deg)
    return false;
  return !(pattern.scale_step > 0 && absolute(a.scale / b.scale - 1) > pattern.scale_step);
}

// After a level: sorts a pattern's candidates, drops those under the threshold, those that came to
// the same pose as a better one, and those that are too many. One block a pattern.
PATTERND_KERNEL __launch_bounds__(256) patternd_trace_keep(const TraceParameters p) {
  __shared__ int twin;
  const int search = block_x();
  const TracePattern& pattern = global<const TracePattern>(p.patterns)[search];
  if (pattern.used == 0) return;
  const i64 first = static_cast<i64>(search) * p.select_limit;
  TracedCandidate* all = global<TracedCandidate>(p.candidates) + first;
  TracedCandidate* sorted = global<TracedCandidate>(p.sorted) + first;
  const int count = global<const int>(p.counts)[search];
  for (int i = thread_x(); i < count; i += threads_x()) {
    int rank = 0;
    for (int j = 0; j < count; ++j) {
      const bool before = better_candidate(all[j], all[i]);
      // Equal in everything that counts: the earlier one first, so that ranks are distinct.
      const bool equal = j < i && !before && !better_candidate(all[i], all[j]);
      rank += before || equal ? 1 : 0;
    }
    sorted[rank] = all[i];
  }
  block_barrier();
  int kept = 0;
  int next = 0;
  while (next < count && kept < pattern.most_kept && sorted[next].score >= pattern.threshold) {
    if (thread_x() == 0) twin = 0;
    block_barrier();
    for (int i = thread_x(); i < kept; i += threads_x())
      if (same_pose(pattern, all[i].pose, sorted[next].pose)) twin = 1;
    block_barrier();
    if (twin == 0) {
      if (thread_x() == 0) all[kept] = sorted[next];
      ++kept;
    }
    ++next;
    block_barrier();
  }
  const int lost = global<const int>(p.loser_counts)[search];
  const int losers = minimum(count - next, kMostLosers - lost);
  TracedLoser* out = global<TracedLoser>(p.losers) + static_cast<i64>(search) * kMostLosers + lost;
  for (int i = thread_x(); i < losers; i += threads_x())
    out[i] = {sorted[next + i].pose, sorted[next + i].score};
  block_barrier();
  if (thread_x() == 0) {
    global<int>(p.counts)[search] = kept;
    global<int>(p.loser_counts)[search] = lost + losers;
  }
}

}  // namespace patternd::cuda
