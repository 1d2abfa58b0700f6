// The finest level: every candidate that is left is refined to its sub-pixel pose and scored there,
// a team of blocks a candidate, and handed to the host in memory that it reads in place.

#include "cuda/kernels/pose_refine.h"
#include "cuda/kernels/pose_trace.h"
#include "cuda/kernels/rivals.h"

namespace patternd::cuda {

// Copies word by word, neighbouring threads neighbouring words: what goes to the host's memory
// travels in few large pieces.
PATTERND_DEVICE void copy_words(void* to, const void* from, int words) {
  for (int i = thread_x(); i < words; i += threads_x())
    static_cast<u32*>(to)[i] = static_cast<const u32*>(from)[i];
}

// Beside more candidates than these all losers are handed on.
inline constexpr int kMostToBeNear = 64;
// Pixels of the pattern that a candidate may still move or grow. One that does not settle may go
// farther; its runner-up may be missed.
inline constexpr float kMostToMove = 8;

// Whether a loser may be the runner-up of one of the candidates.
PATTERND_DEVICE bool may_be_rival(const RefineParameters& p, int search, int candidates,
                                  const TracedPose& loser) {
  if (candidates > kMostToBeNear) return true;
  const TracePattern& pattern = global<const TracePattern>(p.trace.patterns)[search];
  const TracedCandidate* all = global<const TracedCandidate>(p.trace.candidates) +
                               static_cast<i64>(search) * p.trace.select_limit;
  const float least = global<const AllowedPoses>(p.allowed)[search].max_overlap;
  const float spacing = static_cast<float>(pattern.spacing);
  const MovingRectangles of = {spacing * static_cast<float>(pattern.width),
                               spacing * static_cast<float>(pattern.height), spacing * kMostToMove};
  for (int i = 0; i < candidates; ++i) {
    if (may_overlap(of, least, all[i].pose, loser)) return true;
  }
  return false;
}

// Hands the host the losers that may be a candidate's runner-up, in their order; returns how many.
PATTERND_DEVICE int write_losers(const RefineParameters& p, int search, int candidates) {
  constexpr int kWords = kMostLosers / kWarpSize;
  __shared__ u32 rivals[kWords];
  const i64 first = static_cast<i64>(search) * kMostLosers;
  const TracedLoser* losers = global<const TracedLoser>(p.trace.losers) + first;
  const int count = global<const int>(p.trace.loser_counts)[search];
  for (int i = thread_x(); i < kMostLosers; i += threads_x()) {
    const u32 bits = warp_ballot(i < count && may_be_rival(p, search, candidates, losers[i].pose));
    if (i % kWarpSize == 0) rivals[i / kWarpSize] = bits;
  }
  block_barrier();
  ResultLoser* out = global<ResultLoser>(p.result_losers) + first;
  for (int i = thread_x(); i < count; i += threads_x()) {
    const u32 bits = rivals[i / kWarpSize];
    if ((bits >> i % kWarpSize & 1U) == 0) continue;
    int place = population(bits & ((1U << i % kWarpSize) - 1U));
    for (int word = 0; word < i / kWarpSize; ++word) place += population(rivals[word]);
    const TracedLoser& loser = losers[i];
    out[place] = {static_cast<float>(loser.pose.x),         static_cast<float>(loser.pose.y),
                  static_cast<float>(loser.pose.angle_deg), static_cast<float>(loser.pose.scale),
                  static_cast<float>(loser.score),          loser.level};
  }
  int all = 0;
  for (int word = 0; word < kWords; ++word) all += population(rivals[word]);
  return all;
}

// Losers and counts for the host; a block of its own, which no candidate waits for.
PATTERND_DEVICE void write_header(const RefineParameters& p, int search) {
  const int found = global<const int>(p.trace.counts)[search];
  const int candidates = minimum(found, p.result_limit);
  const int losers = write_losers(p, search, candidates);
  if (thread_x() != 0) return;
  ResultHeader& header = global<ResultHeader>(p.trace.headers)[search];
  header.candidates = candidates;
  header.losers = losers;
  header.overflow =
      found > p.result_limit ? 1 : global<const CoarseCounters>(p.trace.counters)->overflow;
}

// What a block works on, copied to shared memory.
struct RefineJob {
  RefinePattern refine;
  TracePattern pattern;
  TraceImage image;
  AllowedPoses allowed;
  TracedCandidate candidate;
};
PATTERND_DEVICE RefineJob& refine_job() {
  __shared__ RefineJob job;
  return job;
}

// Whose turn it is: a candidate and the blocks that work on it.
struct RefineTurn {
  int search;  // −1: nobody's
  int index;   // among the search's candidates
  int number;  // among all
  int blocks;
};

// The candidates of 32 searches, a lane a search.
PATTERND_DEVICE u32 candidates_of(const RefineParameters& p, int search) {
  if (search >= p.trace.search_count) return 0;
  return static_cast<u32>(minimum(global<const int>(p.trace.counts)[search], p.result_limit));
}

// The worker's first turn. Who is left over when all candidates have as many blocks as they can use
// has none; where there are more candidates than workers, they take turns. Every warp by itself.
PATTERND_DEVICE RefineTurn turn_of_worker(const RefineParameters& p, int worker, int workers) {
  const int lane = thread_x() % kWarpSize;
  u32 all = 0;
  for (int search = 0; search < p.trace.search_count; search += kWarpSize)
    all += warp_total(candidates_of(p, search + lane));
  const int each = workers / maximum(static_cast<int>(all), 1);
  RefineTurn turn = {-1, 0, 0, maximum(minimum(each, p.trace.team_blocks), 1)};
  turn.number = worker / turn.blocks;
  u32 before = 0;
  for (int search = 0; search < p.trace.search_count; search += kWarpSize) {
    const u32 up_to = before + warp_sum_up_to(candidates_of(p, search + lane));
    const u32 behind = warp_ballot(up_to > static_cast<u32>(turn.number));
    if (behind != 0) {
      const int first = lowest_bit(behind);
      turn.search = search + first;
      const u32 start = first == 0 ? before : lane_value(up_to, static_cast<u32>(first - 1));
      turn.index = turn.number - static_cast<int>(start);
      return turn;
    }
    before = lane_value(up_to, kWarpSize - 1);
  }
  return turn;
}

// From where word `i` of a job comes.
PATTERND_DEVICE const u64* source_of(const RefineParameters& p, const RefineTurn& turn, int i) {
  constexpr int kRefine = sizeof(RefinePattern) / sizeof(u64);
  constexpr int kPattern = kRefine + sizeof(TracePattern) / sizeof(u64);
  constexpr int kImage = kPattern + sizeof(TraceImage) / sizeof(u64);
  constexpr int kAllowed = kImage + sizeof(AllowedPoses) / sizeof(u64);
  constexpr int kAll = kAllowed + sizeof(TracedCandidate) / sizeof(u64);
  static_assert(kAll == sizeof(RefineJob) / sizeof(u64));
  const auto words = [](Address array, i64 number, int bytes) {
    return global<const u64>(array + static_cast<Address>(number) * static_cast<Address>(bytes));
  };
  if (i < kRefine) return words(p.trace.regressions, turn.search, sizeof(RefinePattern)) + i;
  if (i < kPattern)
    return words(p.trace.patterns, turn.search, sizeof(TracePattern)) + (i - kRefine);
  if (i < kImage) return words(p.trace.images, 0, 0) + (i - kPattern);
  if (i < kAllowed) return words(p.allowed, turn.search, sizeof(AllowedPoses)) + (i - kImage);
  return words(p.trace.candidates,
               static_cast<i64>(turn.search) * p.trace.select_limit + turn.index,
               sizeof(TracedCandidate)) +
         (i - kAllowed);
}

// The turn's candidate and its tables into shared memory, all of it on its way at once, and this
// block into its team. False where it is not needed.
PATTERND_DEVICE bool take_job(const RefineParameters& p, const RefineTurn& turn) {
  RefineJob& job = refine_job();
  block_barrier();
  if (thread_x() == 0) {
    take_place(global<PoseTeam>(p.trace.teams) + turn.number, turn.blocks,
               &global<ResultHeader>(p.trace.headers)[turn.search].broken);
  }
  // The first warp waits for its place.
  for (int i = thread_x() - kWarpSize; i < static_cast<int>(sizeof(RefineJob) / sizeof(u64));
       i += threads_x() - kWarpSize) {
    if (i >= 0) reinterpret_cast<u64*>(&job)[i] = *source_of(p, turn, i);
  }
  block_barrier();
  if (team_memory().member < 0) return false;
  if (job.pattern.image_level == 0) return true;
  block_barrier();
  if (thread_x() == 0)
    job.image = global<const TraceImage>(p.trace.images)[job.pattern.image_level];
  block_barrier();
  return true;
}

// What is done with a candidate, in this order; steps that are not needed are left out.
enum RefineStage { kFirst, kAfterSearch, kAtBound, kScoring, kRefined };

// After a stage: what comes next, and the candidate made ready for it.
PATTERND_DEVICE int stage_after(const RefineParameters& p, int search, int stage, bool converged) {
  __shared__ int moved;
  RefineJob& job = refine_job();
  if (stage == kFirst && !converged) {
    // Too far off for its basin: one more step of search at this level.
    const TracePattern& loose = global<const TracePattern>(p.loose)[search];
    trace_step(loose, job.image, job.candidate);
    if (job.candidate.score >= loose.hopeless_score) return kAfterSearch;
  }
  if (stage == kScoring) return kRefined;
  block_barrier();
  if (thread_x() == 0) moved = bring_inside(job.allowed, job.candidate.pose) ? 1 : 0;
  block_barrier();
  if (stage == kAtBound) return kScoring;
  if (moved == 0) return converged ? kRefined : kScoring;
  const RefinePattern& at_bound = global<const RefinePattern>(p.at_bound)[search];
  return at_bound.used != 0 ? kAtBound : kScoring;
}

// The job's candidate to its final pose and score.
PATTERND_DEVICE void refine_candidate(const RefineParameters& p, int search) {
  RefineJob& job = refine_job();
  const RefinePattern& at_bound = global<const RefinePattern>(p.at_bound)[search];
  bool converged = false;
  int stage = kFirst;
  do {
    const RefineLimits limits = {stage == kScoring ? 0 : 12, 0.01F, 0.01F, 3};
    const bool done = refine_pose<true>(stage == kAtBound ? at_bound : job.refine, job.pattern,
                                        job.image, job.candidate, limits);
    if (stage != kScoring) converged = done;
    stage = stage_after(p, search, stage, done);
  } while (stage != kRefined);
  if (thread_x() == 0) job.candidate.converged = converged ? 1 : 0;
}

// grid: a block a search for its header, then the workers.
PATTERND_KERNEL __launch_bounds__(kMostRefineThreads, 1)
    patternd_refine_pose(const RefineParameters p) {
  await_launch_before();
  note_moment(p.trace.moment);
  const int headers = p.trace.search_count;
  if (block_x() < headers) {
    write_header(p, block_x());
    return;
  }
  const int workers = blocks_x() - headers;
  for (int worker = block_x() - headers;; worker += workers) {
    const RefineTurn turn = turn_of_worker(p, worker, workers);
    if (turn.search < 0) return;
    if (take_job(p, turn)) {
      refine_candidate(p, turn.search);
      block_barrier();
      const i64 place = static_cast<i64>(turn.search) * p.result_limit + turn.index;
      if (team_memory().member == 0) {
        copy_words(global<TracedCandidate>(p.results) + place, &refine_job().candidate,
                   static_cast<int>(sizeof(TracedCandidate) / sizeof(u32)));
        if (thread_x() == 0) global<u64>(p.ends)[place] = gpu_clock_ns();
      }
    }
    leave_team();
  }
}

}  // namespace patternd::cuda
