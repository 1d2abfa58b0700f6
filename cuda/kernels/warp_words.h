// What a warp does with one 32-bit word a lane; all lanes of the warp must take part.
#pragma once

#include "cuda/kernels/device.h"

namespace patternd::cuda {

#if !defined(PATTERND_EMULATED)

// Bit i: lane i's `yes`.
PATTERND_DEVICE u32 warp_ballot(bool yes) {
#if !defined(__clang__)
  return __ballot_sync(kAllLanes, yes);
#elif PATTERND_IN_STEP
  u32 lanes;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %1, 0; vote.ballot.b32 %0, p; }"
               : "=r"(lanes)
               : "r"(static_cast<u32>(yes)));
  return lanes;
#else
  return __nvvm_vote_ballot_sync(kAllLanes, yes);
#endif
}

#endif

PATTERND_DEVICE u32 lane_value(u32 value, u32 lane) {
  return static_cast<u32>(shuffle_from(static_cast<int>(value), static_cast<int>(lane)));
}

// A value that all lanes have, such as a texture: behind this compilers know so, and fetch from it
// at once instead of in a loop over what it may be.
PATTERND_DEVICE u64 same_in_all(u64 value) {
  const u32 low = lane_value(static_cast<u32>(value), 0);
  const u32 high = lane_value(static_cast<u32>(value >> 32), 0);
  return static_cast<u64>(high) << 32 | low;
}

// The sum over the warp, in every lane.
PATTERND_DEVICE u32 warp_total(u32 value) {
#if PATTERND_ARCH >= 800 && !defined(__clang__)
  return __reduce_add_sync(kAllLanes, value);
#else
  return static_cast<u32>(warp_sum(static_cast<int>(value)));
#endif
}

// The largest of the warp, in every lane.
PATTERND_DEVICE u32 warp_maximum(u32 value) {
#if PATTERND_ARCH >= 800 && !defined(__clang__)
  return __reduce_max_sync(kAllLanes, value);
#else
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    const u32 other = static_cast<u32>(shuffle_xor(static_cast<int>(value), mask));
    value = other > value ? other : value;
  }
  return value;
#endif
}
PATTERND_DEVICE u64 warp_maximum(u64 value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    const u64 other = static_cast<u64>(shuffle_xor(static_cast<i64>(value), mask));
    value = other > value ? other : value;
  }
  return value;
}

// The sum of this lane's value and those of the lanes before it.
PATTERND_DEVICE u32 warp_sum_up_to(u32 value) {
  const int lane = thread_x() % kWarpSize;
  for (int step = 1; step < kWarpSize; step *= 2) {
    const u32 before = static_cast<u32>(shuffle_up(static_cast<int>(value), step));
    value += lane >= step ? before : 0;
  }
  return value;
}

}  // namespace patternd::cuda
