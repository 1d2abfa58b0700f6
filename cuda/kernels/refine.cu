// The finest level: every candidate that is left is refined to its sub-pixel pose and scored there,
// a team of blocks a candidate, and handed to the host in memory that it reads in place.

#include "cuda/kernels/pose_refine.h"
#include "cuda/kernels/pose_trace.h"

namespace patternd::cuda {

// Copies word by word, neighbouring threads neighbouring words: what goes to the host's memory
// travels in few large pieces.
PATTERND_DEVICE void copy_words(void* to, const void* from, int words) {
  for (int i = thread_x(); i < words; i += threads_x())
    static_cast<u32*>(to)[i] = static_cast<const u32*>(from)[i];
}

// Losers and counts for the host; a block of its own, which no candidate waits for.
PATTERND_DEVICE void write_header(const RefineParameters& p, int search) {
  const int losers = global<const int>(p.trace.loser_counts)[search];
  const i64 first = static_cast<i64>(search) * kMostLosers;
  copy_words(global<TracedLoser>(p.result_losers) + first,
             global<const TracedLoser>(p.trace.losers) + first,
             losers * static_cast<int>(sizeof(TracedLoser) / sizeof(u32)));
  if (thread_x() == 0) {
    const int count = global<const int>(p.trace.counts)[search];
    ResultHeader& header = global<ResultHeader>(p.headers)[search];
    header.candidates = minimum(count, p.result_limit);
    header.losers = losers;
    header.overflow =
        count > p.result_limit ? 1 : global<const CoarseCounters>(p.trace.counters)->overflow;
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
  const RefineLimits limits = {12, 0.01F, 0.01F, 3};
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

// grid: (header, then the blocks of each candidate's team; search).
PATTERND_KERNEL __launch_bounds__(kMostPoseThreads) patternd_refine_pose(const RefineParameters p) {
  __shared__ TracedCandidate candidate;
  const int search = block_y();
  if (block_x() == 0) {
    write_header(p, search);
    return;
  }
  const int index = (block_x() - 1) / p.trace.team_blocks;
  if (index >= minimum(global<const int>(p.trace.counts)[search], p.result_limit)) return;
  if (thread_x() == 0) {
    candidate = global<const TracedCandidate>(
        p.trace.candidates)[static_cast<i64>(search) * p.trace.select_limit + index];
  }
  if (join_team(p.trace, search, index, &global<ResultHeader>(p.headers)[search].broken)) {
    refine_candidate(p, search, candidate);
    block_barrier();
    if (team_memory().member == 0)
      copy_words(
          global<TracedCandidate>(p.results) + static_cast<i64>(search) * p.result_limit + index,
          &candidate, static_cast<int>(sizeof(TracedCandidate) / sizeof(u32)));
  }
  leave_team(p.trace);
}

}  // namespace patternd::cuda
