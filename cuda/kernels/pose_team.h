// Blocks that work on one candidate together: each sums over its share of the pattern's pixels, all
// get the whole sums and go on alike, so that none waits for another to decide.
//
// No block waits for one that may not have started: the first to arrive counts who is there and
// closes the team, who comes later ends at once. So a launch ends however few of its blocks the GPU
// runs at a time, down to one after the other. The pixels are cut into the same pieces and these
// added in the same order whatever the team's size, so results don't depend on it.
#pragma once

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/device.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

// How often the first block looks whether the others have come: a microsecond or two.
inline constexpr int kLooksForOthers = 6;
// Members of a team all run, so none waits long; after a second something is broken, and the frame
// is given to the CPU.
inline constexpr int kMostLooksForTeam = 1 << 21;

struct Team {
  PoseTeam* slot;  // of all its blocks; only touched where there is more than one
  u32* broken;     // set where they lose each other
  int size;        // 1: this block is alone
  int member;      // −1: came too late
  u32 passes;
};
PATTERND_DEVICE Team& team_memory() {
  __shared__ Team team;
  return team;
}

PATTERND_DEVICE u64 tagged(float value, u32 pass) {
  union {
    float f;
    u32 bits;
  } of{value};
  return static_cast<u64>(of.bits) << 32 | pass;
}
PATTERND_DEVICE float untagged(u64 word) {
  union {
    u32 bits;
    float f;
  } of{static_cast<u32>(word >> 32)};
  return of.f;
}

// One thread.
PATTERND_DEVICE void find_place(PoseTeam& slot, int blocks, Team& team) {
  const u32 ticket = atomic_add(&slot.arrived, 1U);
  if (ticket >= kTeamClosed) {
    team.member = -1;
    return;
  }
  team.member = static_cast<int>(ticket);
  if (ticket == 0) {
    for (int i = 0; i < kLooksForOthers; ++i)
      if (load_fresh(&slot.arrived) == static_cast<u32>(blocks)) break;
    team.size = static_cast<int>(atomic_add(&slot.arrived, kTeamClosed));
    store_through(&slot.size, static_cast<u32>(team.size));
    return;
  }
  while (team.size == 0) team.size = static_cast<int>(load_fresh(&slot.size));
}

// The candidate's blocks become a team; false where this block is not needed. All threads.
PATTERND_DEVICE bool join_team(const TraceParameters& p, int search, int candidate, u32* broken) {
  Team& team = team_memory();
  if (thread_x() == 0) {
    team = {global<PoseTeam>(p.teams) + static_cast<i64>(search) * p.team_limit + candidate, broken,
            p.team_blocks == 1 ? 1 : 0, 0, 0};
    if (p.team_blocks > 1) find_place(*team.slot, p.team_blocks, team);
  }
  block_barrier();
  return team.member >= 0;
}

// Every block that called join_team, last of all; the last of them leaves the team's memory empty.
// All threads.
PATTERND_DEVICE void leave_team(const TraceParameters& p) {
  __shared__ int last;
  if (p.team_blocks == 1) return;
  PoseTeam& slot = *team_memory().slot;
  block_barrier();
  if (thread_x() == 0)
    last = atomic_add(&slot.left, 1U) + 1 == static_cast<u32>(p.team_blocks) ? 1 : 0;
  block_barrier();
  if (last == 0) return;
  TeamSum* sums = &slot.sums[0][0][0];
  for (int i = thread_x(); i < 2 * kMostPieces * kPieceSums; i += threads_x()) sums[i] = {0, 0};
  if (thread_x() == 0) slot.arrived = slot.size = slot.left = 0;
}

// What is left of a sum where it is handed on, for teams of one too: results don't depend on size.
PATTERND_DEVICE double as_given(double sum) {
  const float high = static_cast<float>(sum);
  return static_cast<double>(high) +
         static_cast<double>(static_cast<float>(sum - static_cast<double>(high)));
}

// Hands lane i's sum over a piece to the others; one warp, its first kPieceSums lanes.
PATTERND_DEVICE void give_sum(int piece, double sum) {
  const Team& team = team_memory();
  if (thread_x() >= kPieceSums) return;
  TeamSum& out = team.slot->sums[team.passes & 1U][piece][thread_x()];
  const float high = static_cast<float>(sum);
  const u32 pass = team.passes + 1U;
  *static_cast<volatile u64*>(&out.high) = tagged(high, pass);
  *static_cast<volatile u64*>(&out.low) =
      tagged(static_cast<float>(sum - static_cast<double>(high)), pass);
}

// Pieces whose sums are on their way at once.
inline constexpr int kPiecesAtOnce = 8;
// Adds a lane's sums over a few pieces to `before`, in order; false where one has not been given
// yet.
PATTERND_DEVICE bool sum_given(const TeamSum (&sums)[kMostPieces][kPieceSums], int lane, int first,
                               int pieces, u32 pass, double before, double& sum) {
  u64 high[kPiecesAtOnce];
  u64 low[kPiecesAtOnce];
#pragma unroll
  for (int i = 0; i < kPiecesAtOnce; ++i) {
    const TeamSum& from = sums[minimum(first + i, pieces - 1)][lane];
    high[i] = *static_cast<const volatile u64*>(&from.high);
    low[i] = *static_cast<const volatile u64*>(&from.low);
  }
  bool all = true;
  sum = before;
#pragma unroll
  for (int i = 0; i < kPiecesAtOnce; ++i) {
    all = all && static_cast<u32>(high[i]) == pass && static_cast<u32>(low[i]) == pass;
    if (first + i < pieces)
      sum += static_cast<double>(untagged(high[i])) + static_cast<double>(untagged(low[i]));
  }
  return all;
}

// Lane i's sum over all pieces, this block's and the others', when all have given theirs; one warp,
// its first kPieceSums lanes. A pass's sums carry its number, so nothing else is waited for.
PATTERND_DEVICE double team_total(int pieces) {
  Team& team = team_memory();
  const u32 pass = team.passes + 1U;
  const TeamSum(&sums)[kMostPieces][kPieceSums] = team.slot->sums[team.passes & 1U];
  const int lane = minimum(thread_x(), kPieceSums - 1);
  warp_barrier();
  double total = 0;
  int looks = 0;
  for (int first = 0; first < pieces; first += kPiecesAtOnce) {
    const double before = total;
    // All lanes look as often as the last one must, so that they go on together.
    for (bool all = false; !all && looks < kMostLooksForTeam; ++looks)
      all = warp_ballot(!sum_given(sums, lane, first, pieces, pass, before, total)) == 0;
  }
  if (looks >= kMostLooksForTeam) store_through(team.broken, 1U);
  warp_barrier();
  if (thread_x() == 0) team.passes = pass;
  return total;
}

}  // namespace patternd::cuda
