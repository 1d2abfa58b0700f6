// The way down the pyramid (T14): one launch follows all candidates of all patterns through a
// level, one block a candidate; another sorts each pattern's and drops what does not go on.

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/pose_refine.h"
#include "cuda/kernels/pose_trace.h"

namespace patternd::cuda {

// A traced candidate that scores at most this share of its level's threshold is not refined there.
inline constexpr double kWorthRefining = 0.75;

// A candidate (in shared memory) one level down. By regression where that converges, else by trying
// the neighbours. Straight from the coarsest level a candidate may be too far off for the
// regression: there the neighbours come first.
PATTERND_DEVICE void follow_candidate(const RefinePattern& regression, const TracePattern& pattern,
                                      const TraceImage& image, TracedCandidate& candidate) {
  const double coarse_score = candidate.score;
  const bool searched = pattern.neighbours_first != 0;
  if (searched) trace_step(pattern, image, candidate);
  const RefineLimits limits = {searched ? 6 : 3, 0.06F, 0.5F, 0};
  const bool worth = !searched || candidate.score > kWorthRefining * pattern.threshold;
  const bool converged = worth && refine_pose<false>(regression, pattern, image, candidate, limits);
  if (!searched && !converged) trace_step(pattern, image, candidate);
  // All have read the score.
  block_barrier();
  // Resampling blurs, and at the coarsest level that can cost a true find more than chance costs a
  // false one.
  if (thread_x() == 0 && pattern.coarsest != 0 && candidate.score < coarse_score)
    candidate.score = coarse_score;
}

// What a block follows and with what, in its shared memory.
struct StepMemory {
  TracePattern pattern;
  TracedCandidate candidate;
};

// The pattern and the candidate, a word a thread, so that both come at once.
PATTERND_DEVICE void fetch(const TracePattern& pattern, const TracedCandidate& candidate,
                           StepMemory& to) {
  constexpr int kPatternWords = sizeof pattern / sizeof(u32);
  constexpr int kWords = kPatternWords + sizeof candidate / sizeof(u32);
  static_assert(kWords <= kPoses * kWarpSize);
  const int word = thread_x();
  if (word >= kWords) return;
  const void* from = word < kPatternWords ? static_cast<const void*>(&pattern) : &candidate;
  void* into = word < kPatternWords ? static_cast<void*>(&to.pattern) : &to.candidate;
  const int at = word < kPatternWords ? word : word - kPatternWords;
  static_cast<u32*>(into)[at] = static_cast<const u32*>(from)[at];
}

// grid: (the blocks of each candidate's team, search).
PATTERND_KERNEL __launch_bounds__(kMostPoseThreads) patternd_trace_step(const TraceParameters p) {
  __shared__ StepMemory memory;
  const int search = block_y();
  const int index = block_x() / p.team_blocks;
  TracedCandidate& own =
      global<TracedCandidate>(p.candidates)[static_cast<i64>(search) * p.select_limit + index];
  const TracePattern& pattern = global<const TracePattern>(p.patterns)[search];
  // Also where there turns out to be no such candidate: its memory is there.
  const int count = global<const int>(p.counts)[search];
  // Not by way of shared memory: that all threads use the same texture would be lost on the
  // compiler.
  const int level = pattern.image_level;
  fetch(pattern, own, memory);
  block_barrier();
  if (memory.pattern.used == 0 || index >= count) return;
  if (join_team(p, search, index, &global<CoarseCounters>(p.counters)->overflow)) {
    follow_candidate(global<const RefinePattern>(p.regressions)[search], memory.pattern,
                     global<const TraceImage>(p.images)[level], memory.candidate);
    if (thread_x() == 0 && team_memory().member == 0) own = memory.candidate;
  }
  leave_team();
}

// How many of a pattern's candidates are followed, all of them or the most that are.
PATTERND_DEVICE bool too_many(const TracePattern& pattern, int count) {
  return pattern.used != 0 && pattern.most_followed > 0 && count > pattern.most_followed;
}

// Where there are too many candidates to be followed: one look at each but the first, whose coarse
// scores speak for themselves. grid: (candidate, search).
PATTERND_KERNEL __launch_bounds__(kMostPoseThreads) patternd_trace_glance(const TraceParameters p) {
  const int search = block_y();
  const TracePattern& pattern = global<const TracePattern>(p.patterns)[search];
  const int count = global<const int>(p.counts)[search];
  const int index = pattern.followed_unseen + block_x();
  if (!too_many(pattern, count) || index >= count) return;
  const TraceImage& image = global<const TraceImage>(p.images)[pattern.image_level];
  TracedCandidate& candidate =
      global<TracedCandidate>(p.candidates)[static_cast<i64>(search) * p.select_limit + index];
  const TraceMemory& memory = trace_memory();
  prepare_look(pattern, image, candidate.pose, 1 << kMiddle);
  block_barrier();
  look_around(pattern, image, memory.wanted, memory.incomplete, candidate.inverted);
  if (thread_x() == 0) candidate.score = static_cast<double>(memory.look[kMiddle].score);
}

PATTERND_DEVICE_CALL bool better_candidate(const TracedCandidate& a, const TracedCandidate& b) {
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
PATTERND_DEVICE_CALL bool same_pose(const TracePattern& pattern, const TracedPose& a,
                                    const TracedPose& b) {
  const double pixel = static_cast<double>(1 << pattern.image_level);
  if (absolute(a.x - b.x) > pixel || absolute(a.y - b.y) > pixel) return false;
  if (pattern.angle_step_deg > 0 &&
      absolute(wrapped(a.angle_deg - b.angle_deg, pattern.period_deg)) > pattern.angle_step_deg)
    return false;
  return !(pattern.scale_step > 0 && absolute(a.scale / b.scale - 1) > pattern.scale_step);
}

// Candidates of a pattern, as many at a time as the block has threads.
inline constexpr int kKeepWords = kKeepThreads / 32;
struct KeepMemory {
  u32 twins[kKeepWords][kKeepThreads];  // bits of the better ones that came to its pose
  double scores[kKeepThreads];
  TracedPose poses[kKeepThreads];
  u32 going[kKeepWords];      // bits of those that go on
  u32 undecided[kKeepWords];  // bits of those that may still
  int under;                  // the first under the threshold
  int full;                   // the first for which there is no room
};

// Each candidate goes to the place that its score gives it.
PATTERND_DEVICE void sort_candidates(const TracedCandidate* all, TracedCandidate* sorted, int count,
                                     double (&scores)[kKeepThreads]) {
  for (int mine = thread_x(); mine < (count + kKeepThreads - 1) / kKeepThreads * kKeepThreads;
       mine += kKeepThreads) {
    const TracedCandidate& own = all[minimum(mine, count - 1)];
    const double score = own.score;
    int rank = 0;
    for (int first = 0; first < count; first += kKeepThreads) {
      const int some = minimum(kKeepThreads, count - first);
      block_barrier();
      if (thread_x() < some) scores[thread_x()] = all[first + thread_x()].score;
      block_barrier();
      int ties = 0;
#pragma unroll 8
      for (int j = 0; j < some; ++j) {
        rank += scores[j] > score ? 1 : 0;
        ties += scores[j] == score ? 1 : 0;
      }
      const bool among_them = mine >= first && mine < first + some;
      if (ties == (among_them ? 1 : 0)) continue;
      for (int j = 0; j < some; ++j) {
        if (scores[j] != score || first + j == mine) continue;
        // Equal in everything that counts: the earlier one first, so that ranks are distinct.
        const TracedCandidate& other = all[first + j];
        const bool equal = first + j < mine && !better_candidate(own, other);
        rank += equal || better_candidate(other, own) ? 1 : 0;
      }
    }
    if (mine < count) sorted[rank] = own;
  }
  block_barrier();
}

// Remembers candidates for the runners-up, best first, as many as there is room for. All threads.
PATTERND_DEVICE void remember(const TraceParameters& p, int search, const TracedCandidate* losers,
                              int count) {
  const int level = global<const TracePattern>(p.patterns)[search].image_level;
  int* lost = global<int>(p.loser_counts) + search;
  const int before = *lost;
  const int fit = minimum(count, kMostLosers - before);
  TracedLoser* out =
      global<TracedLoser>(p.losers) + static_cast<i64>(search) * kMostLosers + before;
  for (int i = thread_x(); i < fit; i += threads_x())
    out[i] = {losers[i].pose, losers[i].score, level, 0};
  block_barrier();
  if (thread_x() == 0) *lost = before + fit;
}

// After the glances: of those looked at the best go on behind the others. One block a pattern.
PATTERND_KERNEL __launch_bounds__(kKeepThreads) patternd_trace_follow(const TraceParameters p) {
  __shared__ double scores[kKeepThreads];
  const int search = block_x();
  const TracePattern& pattern = global<const TracePattern>(p.patterns)[search];
  const int count = global<const int>(p.counts)[search];
  if (!too_many(pattern, count)) return;
  const i64 seen = static_cast<i64>(search) * p.select_limit + pattern.followed_unseen;
  TracedCandidate* all = global<TracedCandidate>(p.candidates) + seen;
  TracedCandidate* sorted = global<TracedCandidate>(p.sorted) + seen;
  const int looked_at = count - pattern.followed_unseen;
  const int places = pattern.most_followed - pattern.followed_unseen;
  sort_candidates(all, sorted, looked_at, scores);
  for (int i = thread_x(); i < places; i += kKeepThreads) all[i] = sorted[i];
  remember(p, search, sorted + places, minimum(looked_at - places, kMostLosers / 2));
  if (thread_x() == 0) global<int>(p.counts)[search] = pattern.most_followed;
}

// Finds for each of the block's candidates the better ones that came to its pose; `twins` is all 0.
// All threads, a pair at a time.
PATTERND_DEVICE void find_twins(const TracePattern& pattern, int some, KeepMemory& memory) {
  for (int pair = thread_x(); pair < some * some; pair += kKeepThreads) {
    const int better = pair / some;
    const int own = pair - better * some;
    if (better < own && same_pose(pattern, memory.poses[better], memory.poses[own]))
      atomic_set_bits(&memory.twins[better / 32][own], 1U << better % 32);
  }
}

// Decides which of the candidates in `undecided` go on: those none of whose better twins do. In
// rounds, since a twin that is dropped drops nobody; all threads.
PATTERND_DEVICE void decide(KeepMemory& memory) {
  const int mine = thread_x();
  const u32 bit = 1U << mine % 32;
  for (;;) {
    u32 hangs = 0;
    u32 beaten = 0;
    u32 left = 0;
    const bool open = (memory.undecided[mine / 32] & bit) != 0;
    for (int word = 0; word < kKeepWords; ++word) {
      const u32 twins = open ? memory.twins[word][mine] : 0;
      beaten |= twins & memory.going[word];
      hangs |= twins & memory.undecided[word];
      left |= memory.undecided[word];
    }
    block_barrier();
    if (left == 0) return;
    if (open && beaten == 0 && hangs == 0) atomic_set_bits(&memory.going[mine / 32], bit);
    if (open && (beaten != 0 || hangs == 0)) atomic_keep_bits(&memory.undecided[mine / 32], ~bit);
    block_barrier();
  }
}

// How many of the candidates before this one go on.
PATTERND_DEVICE int going_before(const KeepMemory& memory, int candidate) {
  int count = 0;
  for (int word = 0; word < candidate / 32; ++word) count += population(memory.going[word]);
  return count + population(memory.going[candidate / 32] & ((1U << candidate % 32) - 1U));
}

// One chunk of candidates, best first: those over the threshold that did not come to the pose of a
// better one, the first of them to be number `kept`. Returns how many go on, as many as there is
// room for.
PATTERND_DEVICE int keep_chunk(const TracePattern& pattern, TracedCandidate* all,
                               const TracedCandidate* sorted, int first, int some, int kept,
                               KeepMemory& memory) {
  const int mine = thread_x();
  sorted += first;
  block_barrier();
  if (mine < kKeepWords) memory.going[mine] = memory.undecided[mine] = 0;
  for (int word = 0; word < kKeepWords; ++word) memory.twins[word][mine] = 0;
  if (mine < some) {
    memory.scores[mine] = sorted[mine].score;
    memory.poses[mine] = sorted[mine].pose;
  }
  block_barrier();
  find_twins(pattern, some, memory);
  if (mine < some && memory.scores[mine] >= pattern.threshold) {
    bool twin = false;
    for (int i = 0; i < kept && !twin; ++i)
      twin = same_pose(pattern, all[i].pose, memory.poses[mine]);
    if (!twin) atomic_set_bits(&memory.undecided[mine / 32], 1U << mine % 32);
  }
  block_barrier();
  decide(memory);
  const int place = kept + going_before(memory, mine);
  if ((memory.going[mine / 32] >> mine % 32 & 1U) != 0 && place < pattern.most_kept) {
    all[place] = sorted[mine];
    if (place + 1 == pattern.most_kept) memory.full = first + mine + 1;
  }
  const int going =
      going_before(memory, kKeepThreads - 1) + static_cast<int>(memory.going[kKeepWords - 1] >> 31);
  block_barrier();
  return minimum(going, pattern.most_kept - kept);
}

// After a level: sorts a pattern's candidates, drops those under the threshold, those that came to
// the same pose as a better one, and those that are too many. One block a pattern.
PATTERND_KERNEL __launch_bounds__(kKeepThreads) patternd_trace_keep(const TraceParameters p) {
  __shared__ KeepMemory memory;
  const int search = block_x();
  const TracePattern& pattern = global<const TracePattern>(p.patterns)[search];
  if (pattern.used == 0) return;
  const i64 start = static_cast<i64>(search) * p.select_limit;
  TracedCandidate* all = global<TracedCandidate>(p.candidates) + start;
  TracedCandidate* sorted = global<TracedCandidate>(p.sorted) + start;
  const int count = global<const int>(p.counts)[search];
  sort_candidates(all, sorted, count, memory.scores);
  if (thread_x() == 0) memory.under = memory.full = count;
  block_barrier();
  for (int i = thread_x(); i < count; i += kKeepThreads)
    if (sorted[i].score < pattern.threshold && (i == 0 || sorted[i - 1].score >= pattern.threshold))
      memory.under = i;
  block_barrier();
  int kept = 0;
  for (int first = 0; first < memory.under && kept < pattern.most_kept; first += kKeepThreads)
    kept +=
        keep_chunk(pattern, all, sorted, first, minimum(kKeepThreads, count - first), kept, memory);
  const int next = minimum(memory.under, memory.full);
  remember(p, search, sorted + next, count - next);
  if (thread_x() == 0) global<int>(p.counts)[search] = kept;
}

}  // namespace patternd::cuda
