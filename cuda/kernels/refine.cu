// The finest level: every candidate that is left is refined to its sub-pixel pose and scored there,
// one block a candidate, and handed to the host in memory that it reads in place.

#include "cuda/kernels/pose_refine.h"
#include "cuda/kernels/pose_trace.h"

namespace patternd::cuda {

// Losers and counts for the host; the block of a pattern's first candidate place.
PATTERND_DEVICE void write_header(const RefineParameters& p, int search) {
  const int losers = global<const int>(p.trace.loser_counts)[search];
  const i64 first = static_cast<i64>(search) * kMostLosers;
  const TracedLoser* from = global<const TracedLoser>(p.trace.losers) + first;
  TracedLoser* to = global<TracedLoser>(p.result_losers) + first;
  for (int i = thread_x(); i < losers; i += threads_x()) to[i] = from[i];
  if (thread_x() == 0) {
    const int count = global<const int>(p.trace.counts)[search];
    const int overflow = static_cast<int>(global<const CoarseCounters>(p.counters)->overflow);
    global<ResultHeader>(p.headers)[search] = {minimum(count, p.result_limit), losers,
                                               count > p.result_limit ? 1 : overflow, 0};
  }
}

// A candidate (in shared memory) to its final pose and score.
PATTERND_DEVICE void refine_candidate(const RefineParameters& p, int search,
                                      TracedCandidate& candidate) {
  __shared__ int moved;
  const TracePattern& pattern = global<const TracePattern>(p.trace.patterns)[search];
  const RefinePattern& refine = global<const RefinePattern>(p.trace.regressions)[search];
  const AllowedPoses& allowed = global<const AllowedPoses>(p.allowed)[search];
  const TraceImage& image = global<const TraceImage>(p.trace.images)[pattern.image_level];
  const RefineLimits limits = {12, 0.01, 0.01, 3};
  bool converged = refine_pose<true>(refine, pattern, image, candidate, limits);
  if (!converged) {
    // Too far off for its basin: one more step of search at this level.
    const TracePattern& loose = global<const TracePattern>(p.loose)[search];
    trace_step(loose, image, candidate);
    if (candidate.score >= loose.hopeless_score)
      converged = refine_pose<true>(refine, pattern, image, candidate, limits);
  }
  if (thread_x() == 0) moved = bring_inside(allowed, candidate.pose) ? 1 : 0;
  block_barrier();
  if (moved != 0) {
    const RefinePattern& at_bound = global<const RefinePattern>(p.at_bound)[search];
    if (at_bound.used != 0)
      converged = refine_pose<true>(at_bound, pattern, image, candidate, limits);
    if (thread_x() == 0) bring_inside(allowed, candidate.pose);
  }
  if (moved != 0 || !converged) score_candidate(refine, pattern, image, candidate);
  if (thread_x() == 0) candidate.converged = converged ? 1 : 0;
}

// grid: (candidate, search).
PATTERND_KERNEL __launch_bounds__(kMostPoseThreads) patternd_refine_pose(const RefineParameters p) {
  __shared__ TracedCandidate candidate;
  const int search = block_y();
  if (block_x() == 0) write_header(p, search);
  if (block_x() >= minimum(global<const int>(p.trace.counts)[search], p.result_limit)) return;
  if (thread_x() == 0) {
    candidate = global<const TracedCandidate>(
        p.trace.candidates)[static_cast<i64>(search) * p.trace.select_limit + block_x()];
  }
  block_barrier();
  refine_candidate(p, search, candidate);
  if (thread_x() == 0) {
    global<TracedCandidate>(p.results)[static_cast<i64>(search) * p.result_limit + block_x()] =
        candidate;
  }
}

}  // namespace patternd::cuda
