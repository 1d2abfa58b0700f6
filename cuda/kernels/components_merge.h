// What the kernels that number and sum up components have in common.
#pragma once

#include "cuda/kernels/components_runs.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

// The root above a node with this parent, while roots get their labels; shortens the way.
PATTERND_DEVICE u32 root_or_numbered(const PictureForest& forest, u32 node, u32 up) {
  for (;;) {
    const u32 next = forest.parent(up);
    if (next == up || (next & kFinalLabel) != 0) return up;
    forest.set_parent(node, next);
    node = up;
    up = next;
  }
}

PATTERND_DEVICE u32 final_label(const u32* parent, u32 node) {
  u32 next = parent[node];
  while ((next & kFinalLabel) == 0) next = parent[next];
  return next & ~kFinalLabel;
}

// The sum over a block of kNumberThreads, in every thread, and over the threads before this one.
struct BlockSum {
  u32 total, before;
};
PATTERND_DEVICE BlockSum block_sum(u32 value) {
  __shared__ u32 of_warp[kNumberThreads / kWarpSize];
  const u32 up_to_own = warp_sum_up_to(value);
  const int warp = thread_x() / kWarpSize;
  if (thread_x() % kWarpSize == kWarpSize - 1) of_warp[warp] = up_to_own;
  block_barrier();
  BlockSum sum{0, up_to_own - value};
  for (int i = 0; i < kNumberThreads / kWarpSize; ++i) {
    sum.total += of_warp[i];
    sum.before += i < warp ? of_warp[i] : 0;
  }
  block_barrier();
  return sum;
}

// What is added to a component of the picture.
struct Addition {
  u64 sums[7];  // in DeviceComponent's order
  u64 peak;
  u32 sides[4];
};

PATTERND_DEVICE DeviceComponent component_of(const Addition& a) {
  return {a.sums[0], a.sums[1], a.sums[2],  a.sums[3],  a.sums[4],  a.sums[5],
          a.sums[6], a.peak,    a.sides[0], a.sides[1], a.sides[2], a.sides[3]};
}

PATTERND_DEVICE void add_to_component(DeviceComponent& to, const Addition& a) {
  u64* const sums = &to.area;
  u32* const sides = &to.left_from_end;
#pragma unroll
  for (int i = 0; i < 7; ++i) atomic_sum(sums + i, a.sums[i]);
#pragma unroll
  for (int i = 0; i < 4; ++i) atomic_maximum(sides + i, a.sides[i]);
  atomic_maximum(&to.peak, a.peak);
}

// A large component's parts come from everywhere, and all blocks would fight for its sums: a block
// adds up those that share the label of its largest one before it adds.
constexpr int kFinishWarps = kFinishThreads / kWarpSize;
struct AddMemory {
  u32 largest_area;  // both zero before
  u32 main_label;
  u64 sums[7][kFinishWarps];
  u64 peak[kFinishWarps];
  u32 sides[4][kFinishWarps];
};

PATTERND_DEVICE void set_warp(AddMemory& memory, const Addition& a) {
  const int warp = thread_x() / kWarpSize;
#pragma unroll
  for (int i = 0; i < 7; ++i) memory.sums[i][warp] = a.sums[i];
#pragma unroll
  for (int i = 0; i < 4; ++i) memory.sides[i][warp] = a.sides[i];
  memory.peak[warp] = a.peak;
}

// What the warp has of the block's main component; most warps of a picture of many small ones have
// nothing, or one.
PATTERND_DEVICE void add_up_warp(AddMemory& memory, const Addition& own, bool is_main) {
  const int lanes = population(warp_ballot(is_main));
  if (lanes == 0) {
    if (thread_x() % kWarpSize == 0) set_warp(memory, Addition{});
    return;
  }
  if (lanes == 1) {
    if (is_main) set_warp(memory, own);
    return;
  }
  Addition all;
#pragma unroll
  for (int i = 0; i < 7; ++i)
    all.sums[i] = static_cast<u64>(warp_sum(static_cast<i64>(is_main ? own.sums[i] : 0)));
#pragma unroll
  for (int i = 0; i < 4; ++i) all.sides[i] = warp_maximum(is_main ? own.sides[i] : 0U);
  all.peak = warp_maximum(is_main ? own.peak : 0ULL);
  if (thread_x() % kWarpSize == 0) set_warp(memory, all);
}

// Twelve threads add what the warps came to, one for each sum, side and the peak.
PATTERND_DEVICE void add_main(const AddMemory& memory, DeviceComponent& to) {
  const int thread = thread_x();
  if (thread < 7) {
    u64 sum = 0;
    for (int w = 0; w < kFinishWarps; ++w) sum += memory.sums[thread][w];
    atomic_sum(&to.area + thread, sum);
  } else if (thread < 11) {
    u32 side = 0;
    for (int w = 0; w < kFinishWarps; ++w)
      side = memory.sides[thread - 7][w] > side ? memory.sides[thread - 7][w] : side;
    atomic_maximum(&to.left_from_end + (thread - 7), side);
  } else if (thread == 11) {
    u64 peak = 0;
    for (int w = 0; w < kFinishWarps; ++w) peak = memory.peak[w] > peak ? memory.peak[w] : peak;
    atomic_maximum(&to.peak, peak);
  }
}

// Adds what each thread has to its label's component; `label` 0: nothing.
PATTERND_DEVICE void add_block(const ComponentsParameters& p, AddMemory& memory, u32 label,
                               const Addition& own) {
  DeviceComponent* const components = global<DeviceComponent>(p.components);
  const u32 area = static_cast<u32>(own.sums[0]);
  if (label != 0) atomic_maximum(&memory.largest_area, area);
  block_barrier();
  // Any of equals will do, but all threads must see the same one.
  if (label != 0 && area == memory.largest_area) atomic_maximum(&memory.main_label, label);
  block_barrier();
  const u32 main_label = memory.main_label;
  if (main_label != 0) {
    const bool is_main = label == main_label;
    add_up_warp(memory, own, is_main);
    if (label != 0 && !is_main) add_to_component(components[label - 1], own);
    block_barrier();
    add_main(memory, components[main_label - 1]);
  }
}

}  // namespace patternd::cuda
