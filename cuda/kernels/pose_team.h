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

PATTERND_DEVICE double fresh(const double& value) {
  return *static_cast<const volatile double*>(&value);
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

// Every block that called join_team, last of all; all threads.
PATTERND_DEVICE void leave_team(const TraceParameters& p) {
  if (p.team_blocks == 1) return;
  block_barrier();
  if (thread_x() != 0) return;
  PoseTeam& slot = *team_memory().slot;
  if (atomic_add(&slot.left, 1U) + 1 == static_cast<u32>(p.team_blocks))
    slot.arrived = slot.size = slot.done = slot.left = 0;
}

// Lane i of the first warp has summed number i over the team's pieces that are this block's, into
// the team's memory; this waits for the others' and returns the whole. One warp.
PATTERND_DEVICE double team_total(int pieces) {
  Team& team = team_memory();
  const int lane = thread_x();
  const int side = static_cast<int>(team.passes & 1U);
  device_fence();
  warp_barrier();
  if (lane == 0) {
    atomic_add(&team.slot->done, 1U);
    const u32 all = (team.passes + 1U) * static_cast<u32>(team.size);
    int looks = 0;
    while (load_fresh(&team.slot->done) < all && looks < kMostLooksForTeam) ++looks;
    if (looks == kMostLooksForTeam) store_through(team.broken, 1U);
    ++team.passes;
  }
  warp_barrier();
  device_fence();
  double total = 0;
#pragma unroll 4
  for (int piece = 0; piece < pieces; ++piece)
    if (lane < kPieceSums) total += fresh(team.slot->sums[side][piece][lane]);
  return total;
}

}  // namespace patternd::cuda
