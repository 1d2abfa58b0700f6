// Blocks that work on one candidate together: each sums over its share of the pattern's pixels, all
// get the whole sums and go on alike, so that none waits for another to decide.
//
// No block waits for one that may not have started: they number themselves as they arrive, and the
// first of them closes the team where others have not come when it begins; who comes later ends at
// once. So a launch ends however few of its blocks the GPU runs at a time, down to one after the
// other. The pixels are cut into the same pieces and these added in the same order whatever the
// team's size, so results don't depend on it.
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

// What only some of a block's threads read before they write it. Volatile: else compilers let all
// threads read it beforehand, while it is written.
template <class T>
PATTERND_DEVICE T read_alone(const T& value) {
  return *static_cast<const volatile T*>(&value);
}

struct Team {
  PoseTeam* slot;  // of all its blocks; only touched where there is more than one
  u32* broken;     // set where they lose each other
  int blocks;      // that were launched for it
  int size;        // 1: this block is alone; 0: not known yet
  int member;      // −1: came too late
  u32 passes;
};
PATTERND_DEVICE Team& team_memory() {
  __shared__ Team team;
  return team;
}

PATTERND_DEVICE TeamSum tagged(float value, u32 pass) {
  union {
    float f;
    u32 bits;
  } of{value};
  return static_cast<u64>(of.bits) << 32 | pass;
}
PATTERND_DEVICE float untagged(TeamSum word) {
  union {
    u32 bits;
    float f;
  } of{static_cast<u32>(word >> 32)};
  return of.f;
}

// This block's number in the team, or that it is not needed; one thread.
PATTERND_DEVICE void take_place(PoseTeam* slot, int blocks, u32* broken) {
  Team& team = team_memory();
  team = {slot, broken, blocks, 1, 0, 0};
  if (blocks == 1) return;
  const u32 ticket = atomic_add(&slot->arrived, 1U);
  team.member = ticket >= kTeamClosed ? -1 : static_cast<int>(ticket);
  team.size = 0;
}

// How many blocks take part, once this can be told; one thread, before the first sums are given.
// Whoever takes a place must come here or go before anything that another block reads is changed.
PATTERND_DEVICE void learn_size() {
  Team& team = team_memory();
  if (read_alone(team.size) != 0) return;
  PoseTeam& slot = *team.slot;
  const u32 all = static_cast<u32>(team.blocks);
  u32 size = 0;
  for (int look = 0; size == 0; ++look) {
    // All have come: nobody needs to be told.
    if (load_fresh(&slot.arrived) == all) {
      size = all;
    } else if (team.member > 0) {
      size = load_fresh(&slot.size);
    } else if (look == kLooksForOthers) {
      size = atomic_add(&slot.arrived, kTeamClosed);
      store_through(&slot.size, size);
    }
  }
  team.size = static_cast<int>(size);
}

// The candidate's blocks become a team; false where this block is not needed. All threads.
PATTERND_DEVICE bool join_team(const TraceParameters& p, int search, int candidate, u32* broken) {
  if (thread_x() == 0) {
    take_place(global<PoseTeam>(p.teams) + static_cast<i64>(search) * p.team_limit + candidate,
               p.team_blocks, broken);
    if (team_memory().member >= 0) learn_size();
  }
  block_barrier();
  return team_memory().member >= 0;
}

// Every block that took a place, last of all; the last of them leaves the team's memory empty. All
// threads.
PATTERND_DEVICE void leave_team() {
  __shared__ int last;
  const Team& team = team_memory();
  if (team.blocks == 1) return;
  PoseTeam& slot = *team.slot;
  block_barrier();
  if (thread_x() == 0)
    last = atomic_add(&slot.left, 1U) + 1 == static_cast<u32>(team.blocks) ? 1 : 0;
  block_barrier();
  if (last == 0) return;
  TeamSum* sums = &slot.sums[0][0][0];
  for (int i = thread_x(); i < 2 * kMostPieces * kPieceSums; i += threads_x()) sums[i] = 0;
  if (thread_x() == 0) slot.arrived = slot.size = slot.left = 0;
}

// A warp's lanes take a sum each.
static_assert(kPieceSums == kWarpSize);

// Hands this lane's sum over a piece to the others.
PATTERND_DEVICE void give_sum(int piece, float sum) {
  const Team& team = team_memory();
  TeamSum& out = team.slot->sums[team.passes & 1U][piece][thread_x()];
  *static_cast<volatile TeamSum*>(&out) = tagged(sum, team.passes + 1U);
}

// Adds up a lane's sums over the pieces in order, all of them on their way at once; false where one
// has not been given yet.
PATTERND_DEVICE bool sum_given(const TeamSum (&sums)[kMostPieces][kPieceSums], int pieces, u32 pass,
                               double& sum) {
  TeamSum words[kMostPieces];
#pragma unroll
  for (int i = 0; i < kMostPieces; ++i) {
    words[i] = tagged(0.0F, pass);
    if (i < pieces) words[i] = *static_cast<const volatile TeamSum*>(&sums[i][thread_x()]);
  }
  bool all = true;
  sum = 0;
#pragma unroll
  for (int i = 0; i < kMostPieces; ++i) {
    all = all && static_cast<u32>(words[i]) == pass;
    sum += static_cast<double>(untagged(words[i]));
  }
  return all;
}

// A lane's sum over all pieces when all have been given; one warp. A pass's sums carry its number,
// so nothing else is waited for.
PATTERND_DEVICE double team_total(int pieces) {
  Team& team = team_memory();
  const u32 pass = team.passes + 1U;
  const TeamSum(&sums)[kMostPieces][kPieceSums] = team.slot->sums[team.passes & 1U];
  warp_barrier();
  double total = 0;
  int looks = 0;
  // All lanes look as often as the last one must, so that they go on together.
  for (bool all = false; !all && looks < kMostLooksForTeam; ++looks)
    all = warp_ballot(!sum_given(sums, pieces, pass, total)) == 0;
  if (looks >= kMostLooksForTeam) store_through(team.broken, 1U);
  warp_barrier();
  if (thread_x() == 0) team.passes = pass;
  return total;
}

}  // namespace patternd::cuda
