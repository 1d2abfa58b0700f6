// The way down the pyramid (T14): one launch follows all candidates of all patterns through a
// level, one block a candidate; another drops of each pattern's what does not go on. Those two and
// the glances run once on a few dozen candidates, so they are made short: a block loads what it
// needs at once, keeps lists of numbers rather than move candidates about, and compares them by
// warps.

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
  if (thread_x() == 0 && pattern.coarsest != 0 && read_alone(candidate.score) < coarse_score)
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
  await_launch_before();
  let_next_launch_start();  // a block a pattern
  note_moment(p.moment);
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
  if (join_team(p, search, index, &global<ResultHeader>(p.headers)[search].broken)) {
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

// How far two poses of one find may lie apart: a pixel of the level, an angle step, a scale step.
struct Closeness {
  double pixel;
  double angle_step_deg;
  double period_deg;
  double scale_step;
};
PATTERND_DEVICE_CALL bool same_pose(const Closeness& close, const TracedPose& a,
                                    const TracedPose& b) {
  if (absolute(a.x - b.x) > close.pixel || absolute(a.y - b.y) > close.pixel) return false;
  if (close.angle_step_deg > 0 &&
      absolute(wrapped(a.angle_deg - b.angle_deg, close.period_deg)) > close.angle_step_deg)
    return false;
  return !(close.scale_step > 0 && absolute(a.scale / b.scale - 1) > close.scale_step);
}

// A pattern's candidates by score: order[0] is the number of the best.
inline constexpr int kScoresAtOnce = 256;
struct ScoreOrder {
  u16 order[kMostCandidates];
  u16 ranks[kMostCandidates];
  double scores[kScoresAtOnce];
};

// Which of two that score the same goes before: of two that are equal in everything that counts the
// earlier one, so that ranks are distinct.
PATTERND_DEVICE_CALL bool wins_tie(const TracedCandidate* all, int candidate, int other) {
  return better_candidate(all[candidate], all[other]) ||
         (candidate < other && !better_candidate(all[other], all[candidate]));
}

// How many of the scores in shared memory, of candidates from `first` on, go before a candidate's;
// a warp, a lane each.
PATTERND_DEVICE int better_among(const TracedCandidate* all, int own, int first, int some,
                                 const ScoreOrder& memory) {
  const int lane = thread_x() % kWarpSize;
  const double score = all[own].score;
  int better = 0;
#pragma unroll 1
  for (int word = 0; word < some; word += kWarpSize) {
    const int other = word + lane;
    bool before = false;
    if (other < some) {
      before = memory.scores[other] > score;
      if (memory.scores[other] == score && first + other != own)
        before = wins_tie(all, first + other, own);
    }
    better += population(warp_ballot(before));
  }
  return better;
}

// All threads.
PATTERND_DEVICE void order_by_score(const TracedCandidate* all, int count, ScoreOrder& memory) {
  const int threads = threads_x();
#pragma unroll 1
  for (int first = 0; first < count; first += kScoresAtOnce) {
    const int some = minimum(kScoresAtOnce, count - first);
    block_barrier();
#pragma unroll 1
    for (int i = thread_x(); i < some; i += threads) memory.scores[i] = all[first + i].score;
    block_barrier();
#pragma unroll 1
    for (int own = thread_x() / kWarpSize; own < count; own += threads / kWarpSize) {
      const int better = better_among(all, own, first, some, memory);
      const int before = first == 0 ? 0 : memory.ranks[own];
      if (thread_x() % kWarpSize == 0) memory.ranks[own] = static_cast<u16>(before + better);
      if (first + some == count && thread_x() % kWarpSize == 0)
        memory.order[before + better] = static_cast<u16>(own);
    }
  }
  block_barrier();
}

// A candidate is moved a word a thread.
using CandidateWord = u64 __attribute__((may_alias));
inline constexpr int kCandidateWords = sizeof(TracedCandidate) / sizeof(CandidateWord);
// to[i] = from[which[i]]; all threads.
PATTERND_DEVICE void gather_candidates(const TracedCandidate* from, const u16* which, int count,
                                       TracedCandidate* to) {
  const auto* in = reinterpret_cast<const CandidateWord*>(from);
  auto* out = reinterpret_cast<CandidateWord*>(to);
#pragma unroll 1
  for (int i = thread_x(); i < count * kCandidateWords; i += threads_x()) {
    const int candidate = i / kCandidateWords;
    out[i] = in[which[candidate] * kCandidateWords + i - candidate * kCandidateWords];
  }
}
// to[i] = from[i].
PATTERND_DEVICE void copy_candidates(const TracedCandidate* from, int count, TracedCandidate* to) {
  const auto* in = reinterpret_cast<const CandidateWord*>(from);
  auto* out = reinterpret_cast<CandidateWord*>(to);
#pragma unroll 1
  for (int i = thread_x(); i < count * kCandidateWords; i += threads_x()) out[i] = in[i];
}

// Remembers candidates for the runners-up, best first, as many as there is room for behind the
// `before` that are. All threads.
PATTERND_DEVICE void remember(const TraceParameters& p, int search, int before,
                              const TracedCandidate* all, const u16* losers, int count) {
  const int level = global<const TracePattern>(p.patterns)[search].image_level;
  const int fit = minimum(count, kMostLosers - before);
  TracedLoser* out =
      global<TracedLoser>(p.losers) + static_cast<i64>(search) * kMostLosers + before;
#pragma unroll 1
  for (int i = thread_x(); i < fit; i += threads_x()) {
    const TracedCandidate& loser = all[losers[i]];
    out[i] = {loser.pose, loser.score, level, 0};
  }
  if (thread_x() == 0) global<int>(p.loser_counts)[search] = before + fit;
}

// Of those looked at the best go on behind the others. One block a pattern.
PATTERND_DEVICE void follow_best(const TraceParameters& p, const TracePattern& pattern, int search,
                                 int count) {
  ScoreOrder& memory = pose_memory<ScoreOrder>();
  const i64 seen = static_cast<i64>(search) * p.select_limit + pattern.followed_unseen;
  TracedCandidate* all = global<TracedCandidate>(p.candidates) + seen;
  TracedCandidate* best = global<TracedCandidate>(p.next) + seen;
  const int looked_at = count - pattern.followed_unseen;
  const int places = pattern.most_followed - pattern.followed_unseen;
  const int lost = global<const int>(p.loser_counts)[search];
  order_by_score(all, looked_at, memory);
  gather_candidates(all, memory.order, places, best);
  remember(p, search, lost, all, memory.order + places,
           minimum(looked_at - places, kMostLosers / 2));
  block_barrier();
  copy_candidates(best, places, all);
  if (thread_x() == 0) global<int>(p.counts)[search] = pattern.most_followed;
}

// Whether all other glances of the pattern are done, and what they wrote is known here. All
// threads.
PATTERND_DEVICE bool is_last_glance(const TraceParameters& p, int search, int glances) {
  __shared__ bool last;
  if (thread_x() == 0) {
    u32* done = global<u32>(p.glances_done) + search;
    device_fence();
    last = atomic_add(done, 1U) + 1 == static_cast<u32>(glances);
    device_fence();
    if (last) *done = 0;
  }
  block_barrier();
  return last;
}

// Where there are too many candidates to be followed: one look at each but the first, whose coarse
// scores speak for themselves; the last of a pattern's blocks chooses. grid: (candidate, search).
PATTERND_KERNEL __launch_bounds__(kMostPoseThreads) patternd_trace_glance(const TraceParameters p) {
  await_launch_before();
  note_moment(p.moment);
  let_next_launch_start();
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
  if (is_last_glance(p, search, count - pattern.followed_unseen))
    follow_best(p, pattern, search, count);
}

// Candidates of a pattern, so many at a time.
inline constexpr int kKeepChunk = 256;
inline constexpr int kKeepWords = kKeepChunk / 32;
struct KeepMemory {
  ScoreOrder by_score;
  u32 twins[kKeepWords][kKeepChunk];  // bits of the better ones that came to its pose
  TracedPose poses[kKeepChunk];
  u16 kept[kKeepChunk];       // the numbers of those that go on
  u32 going[kKeepWords];      // bits of those
  u32 undecided[kKeepWords];  // bits of those that may still
  u32 over;                   // how many reach the threshold
  int full;                   // the first for which there is no room
};
PATTERND_DEVICE bool has_bit(const u32 (&bits)[kKeepWords], int i) {
  return (bits[i / 32] >> i % 32 & 1U) != 0;
}

// Finds for each of the chunk's candidates the better ones that came to its pose; a warp takes one
// at a time, a lane one of the better ones.
PATTERND_DEVICE void find_twins(const Closeness& close, int some, KeepMemory& memory) {
  const int lane = thread_x() % kWarpSize;
#pragma unroll 1
  for (int own = thread_x() / kWarpSize; own < some; own += kKeepThreads / kWarpSize) {
#pragma unroll 1
    for (int word = 0; word * 32 < own; ++word) {
      const int better = word * 32 + lane;
      const u32 twins =
          warp_ballot(better < own && same_pose(close, memory.poses[better], memory.poses[own]));
      if (lane == 0) memory.twins[word][own] = twins;
    }
  }
}

// Decides which of the candidates in `undecided` go on: those none of whose better twins do. In
// rounds, since a twin that is dropped drops nobody; all threads.
PATTERND_DEVICE void decide(int some, KeepMemory& memory) {
  const int mine = thread_x();
  const u32 bit = 1U << mine % 32;
  for (;;) {
    u32 hangs = 0;
    u32 beaten = 0;
    u32 left = 0;
    const bool open = mine < some && has_bit(memory.undecided, mine);
#pragma unroll 1
    for (int word = 0; word * 32 < some; ++word) {
      const u32 undecided = memory.undecided[word];
      const u32 twins = open && word * 32 < mine ? memory.twins[word][mine] : 0;
      beaten |= twins & memory.going[word];
      hangs |= twins & undecided;
      left |= undecided;
    }
    block_barrier();
    if (left == 0) return;
    if (open && beaten == 0 && hangs == 0) atomic_set_bits(&memory.going[mine / 32], bit);
    if (open && (beaten != 0 || hangs == 0)) atomic_keep_bits(&memory.undecided[mine / 32], ~bit);
    block_barrier();
  }
}

// How many of the chunk's candidates before this one go on.
PATTERND_DEVICE int going_before(const KeepMemory& memory, int candidate) {
  int count = 0;
  for (int word = 0; word < kKeepWords; ++word) {
    const int bits = minimum(maximum(candidate - 32 * word, 0), 32);
    const u32 before = bits == 0 ? 0U : ~0U >> (32 - bits);
    count += population(memory.going[word] & before);
  }
  return count;
}

// One chunk of candidates, best first: those over the threshold that did not come to the pose of a
// better one, the first of them to be number `kept` of `next`. Returns how many go on, as many as
// there is room for.
PATTERND_DEVICE int keep_chunk(const TracePattern& pattern, const Closeness& close,
                               const TracedCandidate* all, TracedCandidate* next, int first,
                               int some, int kept, KeepMemory& memory) {
  const int mine = thread_x();
  const u16* order = memory.by_score.order + first;
  block_barrier();
  if (mine < kKeepWords) memory.going[mine] = memory.undecided[mine] = 0;
  if (mine < some) memory.poses[mine] = all[order[mine]].pose;
  block_barrier();
  find_twins(close, some, memory);
  if (mine < some) {
    bool twin = false;
#pragma unroll 1
    for (int i = 0; i < kept && !twin; ++i)
      twin = same_pose(close, next[i].pose, memory.poses[mine]);
    if (!twin) atomic_set_bits(&memory.undecided[mine / 32], 1U << mine % 32);
  }
  block_barrier();
  decide(some, memory);
  const int room = pattern.most_kept - kept;
  if (mine < some && has_bit(memory.going, mine)) {
    const int place = going_before(memory, mine);
    if (place < room) memory.kept[place] = order[mine];
    if (place + 1 == room) memory.full = first + mine + 1;
  }
  const int going = minimum(going_before(memory, kKeepChunk), room);
  block_barrier();
  gather_candidates(all, memory.kept, going, next + kept);
  return going;
}

// How many candidates reach the threshold, into memory.over; all threads.
PATTERND_DEVICE void count_over(const TracePattern& pattern, const TracedCandidate* all, int count,
                                KeepMemory& memory) {
#pragma unroll 1
  for (int i = thread_x(); i < (count + kKeepThreads - 1) / kKeepThreads * kKeepThreads;
       i += kKeepThreads) {
    const u32 over = warp_ballot(i < count && all[i].score >= pattern.threshold);
    if (i % kWarpSize == 0 && over != 0)
      atomic_sum(&memory.over, static_cast<u32>(population(over)));
  }
}

// After a level: of a pattern's candidates those go on, best first, that reach the threshold, did
// not come to the same pose as a better one, and are not too many. One block a pattern.
PATTERND_KERNEL __launch_bounds__(kKeepThreads) patternd_trace_keep(const TraceParameters p) {
  __shared__ KeepMemory memory;
  await_launch_before();
  let_next_launch_start();
  const int search = block_x();
  const TracePattern& pattern = global<const TracePattern>(p.patterns)[search];
  const i64 start = static_cast<i64>(search) * p.select_limit;
  const TracedCandidate* all = global<const TracedCandidate>(p.candidates) + start;
  TracedCandidate* next = global<TracedCandidate>(p.next) + start;
  const int count = global<const int>(p.counts)[search];
  const int lost = global<const int>(p.loser_counts)[search];
  const Closeness close = {static_cast<double>(1 << pattern.image_level), pattern.angle_step_deg,
                           pattern.period_deg, pattern.scale_step};
  if (pattern.used == 0) {
    copy_candidates(all, count, next);
    return;
  }
  if (thread_x() == 0) {
    memory.over = 0;
    memory.full = count;
  }
  order_by_score(all, count, memory.by_score);
  count_over(pattern, all, count, memory);
  block_barrier();
  const int under = static_cast<int>(memory.over);
  int kept = 0;
#pragma unroll 1
  for (int first = 0; first < under && kept < pattern.most_kept; first += kKeepChunk)
    kept += keep_chunk(pattern, close, all, next, first, minimum(kKeepChunk, under - first), kept,
                       memory);
  const int out = minimum(under, memory.full);
  remember(p, search, lost, all, memory.by_score.order + out, count - out);
  if (thread_x() == 0) global<int>(p.counts)[search] = kept;
}

}  // namespace patternd::cuda
