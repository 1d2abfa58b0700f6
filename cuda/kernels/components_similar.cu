// Components by similarity (R5), where every pixel belongs to one: neighbours connect whose grey,
// or colours' largest channel difference, is at most the limit. A node of the forest is a pixel, in
// the picture's memory; runs of up to 32 similar pixels of a row hang from their first one from the
// start, so that most of the work is between rows.
//
//   rows     runs within words of 32 pixels, a warp each
//   join     union-find between words and rows
//   number   roots get consecutive labels in scan order
//   finish   labels, and sums, of what has one label side by side in a word
//
// What words, parts and sums are is as in components.cu.

#include "cuda/kernels/components_merge.h"

namespace patternd::cuda {

constexpr int kSimilarWarps = kNumberThreads / kWarpSize;

struct Colour {
  u32 channel[3];  // grey: the same in each
};

PATTERND_DEVICE Colour colour_at(const ComponentsParameters& p, int x, int y) {
  const u8* const row = global<const u8>(p.picture) + static_cast<i64>(y) * p.picture_stride_bytes;
  if (p.colour != 0) return {{row[3 * x], row[3 * x + 1], row[3 * x + 2]}};
  const u32 grey = p.deep != 0 ? reinterpret_cast<const u16*>(row)[x] : row[x];
  return {{grey, grey, grey}};
}
PATTERND_DEVICE u32 grey_of(const ComponentsParameters& p, const Colour& c) {
  if (p.colour == 0) return c.channel[0];
  return (77 * c.channel[0] + 150 * c.channel[1] + 29 * c.channel[2] + 128) >> 8;
}
PATTERND_DEVICE bool similar(const ComponentsParameters& p, int x, int y, int other_x,
                             int other_y) {
  const Colour a = colour_at(p, x, y);
  const Colour b = colour_at(p, other_x, other_y);
  bool close = true;
#pragma unroll
  for (int i = 0; i < 3; ++i) {
    const u32 difference =
        a.channel[i] > b.channel[i] ? a.channel[i] - b.channel[i] : b.channel[i] - a.channel[i];
    close = close && difference <= static_cast<u32>(p.high);
  }
  return close;
}

// Where a lane stands: its word's place, and its pixel's. Pixels of a row fill whole words.
struct SimilarPlace {
  int word;
  int x;
  int y;
  bool inside;
  u32 node;
};
PATTERND_DEVICE SimilarPlace similar_place(const ComponentsParameters& p, int word) {
  const int lane = thread_x() % kWarpSize;
  SimilarPlace at;
  at.word = word;
  at.x = word % p.words * kWarpSize + lane;
  at.y = word / p.words;
  at.inside = at.x < p.width && at.y < p.height;
  at.node = static_cast<u32>(word) * kWarpSize + static_cast<u32>(lane);
  return at;
}
PATTERND_DEVICE int word_of_warp() { return block_x() * kSimilarWarps + thread_x() / kWarpSize; }

// ---- rows

PATTERND_KERNEL __launch_bounds__(kNumberThreads)
    patternd_similar_rows(const ComponentsParameters p) {
  const SimilarPlace at = similar_place(p, word_of_warp());
  const int lane = thread_x() % kWarpSize;
  const bool continues = at.inside && lane > 0 && similar(p, at.x, at.y, at.x - 1, at.y);
  const u32 starts = warp_ballot(at.inside && !continues);
  if (!at.inside) return;
  const int start = highest_bit(starts & up_to(lane));
  global<u32>(p.parent)[at.node] = at.node - static_cast<u32>(lane - start);
  if (lane == 0)
    atomic_sum(global<u32>(p.part_roots) + at.word / kNumberThreads,
               static_cast<u32>(population(starts)));
}

// ---- join

PATTERND_DEVICE void join(const ComponentsParameters& p, u32 a, u32 b) {
  const u32 ceased = unite(PictureForest{global<u32>(p.parent)}, a, b);
  if (ceased != kNoNode)
    atomic_sum(global<u32>(p.part_roots) + ceased / (kWarpSize * kNumberThreads), 0U - 1U);
}

PATTERND_KERNEL __launch_bounds__(kNumberThreads)
    patternd_similar_join(const ComponentsParameters p) {
  const SimilarPlace at = similar_place(p, word_of_warp());
  const int lane = thread_x() % kWarpSize;
  const bool has_upper = at.inside && at.y > 0;
  const bool left = at.inside && at.x > 0 && similar(p, at.x, at.y, at.x - 1, at.y);
  const bool upper = has_upper && similar(p, at.x, at.y, at.x, at.y - 1);
  const bool upper_run = has_upper && at.x > 0 && similar(p, at.x, at.y - 1, at.x - 1, at.y - 1);
  // The pixel to the left has joined the same two runs already.
  const u32 left_upper = warp_ballot(upper) << 1;
  const bool joined = left && upper_run && (left_upper >> lane & 1) != 0;
  if (!at.inside) return;
  const u32 row = static_cast<u32>(p.words * kWarpSize);
  if (lane == 0 && left) join(p, at.node, at.node - 1);
  if (upper && !joined) join(p, at.node, at.node - row);
  if (p.eight == 0 || at.y == 0) return;
  if (at.x > 0 && !(upper && upper_run) && similar(p, at.x, at.y, at.x - 1, at.y - 1))
    join(p, at.node, at.node - row - 1);
  if (at.x + 1 < p.width && similar(p, at.x, at.y, at.x + 1, at.y - 1))
    join(p, at.node, at.node - row + 1);
}

// ---- number

PATTERND_KERNEL __launch_bounds__(kNumberThreads)
    patternd_similar_number(const ComponentsParameters p) {
  __shared__ u32 roots[kNumberThreads];   // by word of the part: bit i: pixel i is a root
  __shared__ u32 labels[kNumberThreads];  // before the word
  const PictureForest forest{global<u32>(p.parent)};
  const u32* const part_roots = global<const u32>(p.part_roots);
  DeviceComponent* const components = global<DeviceComponent>(p.components);
  const int lane = thread_x() % kWarpSize;
  const int part = block_x() * kNumberThreads;
  u32 before = 0;
  for (int i = thread_x(); i < block_x(); i += kNumberThreads) before += part_roots[i];
  for (int i = thread_x() / kWarpSize; i < kNumberThreads; i += kSimilarWarps) {
    const SimilarPlace at = similar_place(p, part + i);
    const u32 up = at.inside ? forest.parent(at.node) : kNoNode;
    if (at.inside && up != at.node)
      forest.set_parent(at.node, root_or_numbered(forest, at.node, up));
    const u32 word_roots = warp_ballot(up == at.node);
    if (lane == 0) roots[i] = word_roots;
  }
  before = block_sum(before).total;
  const u32 own = static_cast<u32>(population(roots[thread_x()]));
  labels[thread_x()] = before + block_sum(own).before;
  block_barrier();
  for (int i = thread_x() / kWarpSize; i < kNumberThreads; i += kSimilarWarps) {
    if ((roots[i] >> lane & 1) == 0) continue;
    const u32 label = labels[i] + static_cast<u32>(population(roots[i] & ((1U << lane) - 1)));
    if (label < static_cast<u32>(p.capacity)) components[label] = DeviceComponent{};
    forest.set_parent(similar_place(p, part + i).node, kFinalLabel | (label + 1));
  }
  if (thread_x() == kNumberThreads - 1 && block_x() == blocks_x() - 1) {
    ComponentCounts* const counts = global<ComponentCounts>(p.counts);
    counts->components = labels[thread_x()] + own;
    counts->tile_components = 0;
  }
}

// ---- finish

// The sums of the pixels of one label that stand side by side in a word, in the lane of the last.
PATTERND_DEVICE Addition sums_of_pixels(u32 starts, const SimilarPlace& at, u32 grey) {
  const int lane = thread_x() % kWarpSize;
  const int first = highest_bit(starts & up_to(lane));
  u32 sum_grey = grey;
  u64 peak = static_cast<u64>(grey) << 32 |
             (~(static_cast<u64>(at.y) << 16 | static_cast<u32>(at.x)) & 0xFFFFFFFFU);
  for (int step = 1; step < kWarpSize; step *= 2) {
    const u32 other_sum = static_cast<u32>(shuffle_up(static_cast<int>(sum_grey), step));
    const u64 other_high = static_cast<u32>(shuffle_up(static_cast<int>(peak >> 32), step));
    const u64 other_peak =
        other_high << 32 | static_cast<u32>(shuffle_up(static_cast<int>(peak & 0xFFFFFFFFU), step));
    if (lane - step < first) continue;
    sum_grey += other_sum;
    peak = other_peak > peak ? other_peak : peak;
  }
  const u64 x0 = static_cast<u32>(at.x - (lane - first));
  const u64 x1 = static_cast<u32>(at.x);
  const u64 y = static_cast<u32>(at.y);
  const u64 area = x1 - x0 + 1;
  const u64 sum_x = (x0 + x1) * area / 2;
  u64 sum_xx = 0;
  for (u64 x = x0; x <= x1; ++x) sum_xx += x * x;
  return {{area, sum_x, area * y, sum_xx, area * y * y, sum_x * y, sum_grey},
          peak,
          {65535 - static_cast<u32>(x0), static_cast<u32>(x1), 65535 - static_cast<u32>(y),
           static_cast<u32>(y)}};
}

// What a lane has found of one component, from word to word: large ones go on, and all blocks would
// fight for their sums.
struct Pending {
  u32 label;  // 0: nothing
  Addition sums;
};

// Takes in more; what stood there of another label comes back to be added to the picture's.
PATTERND_DEVICE Pending take_in(Pending& pending, u32 label, const Addition& more) {
  if (label == 0) return Pending{};
  if (label != pending.label) {
    const Pending before = pending;
    pending = Pending{label, more};
    return before;
  }
  Addition& sums = pending.sums;
#pragma unroll
  for (int i = 0; i < 7; ++i) sums.sums[i] += more.sums[i];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    sums.sides[i] = more.sides[i] > sums.sides[i] ? more.sides[i] : sums.sides[i];
  sums.peak = more.peak > sums.peak ? more.peak : sums.peak;
  return Pending{};
}

PATTERND_DEVICE void add_pending(const ComponentsParameters& p, AddMemory& memory,
                                 const Pending& pending) {
  if (thread_x() == 0) memory.largest_area = memory.main_label = 0;
  block_barrier();
  add_block(p, memory, pending.label, pending.sums);
  block_barrier();
}

PATTERND_KERNEL __launch_bounds__(kFinishThreads)
    patternd_similar_finish(const ComponentsParameters p) {
  __shared__ AddMemory memory;
  static_assert(kFinishThreads == kNumberThreads, "a block has a part");
  const u32* const parent = global<const u32>(p.parent);
  const int lane = thread_x() % kWarpSize;
  const int part = block_x() * kNumberThreads;
  Pending pending{};
  for (int i = 0; i < kNumberThreads && part + i < p.words * p.height; i += kSimilarWarps) {
    const SimilarPlace at = similar_place(p, part + i + thread_x() / kWarpSize);
    const u32 label = at.inside ? final_label(parent, at.node) : 0;
    if (at.inside && p.labels != 0)
      reinterpret_cast<u32*>(global<u8>(p.labels) +
                             static_cast<i64>(at.y) * p.labels_stride_bytes)[at.x] = label;
    const u32 before = static_cast<u32>(shuffle_up(static_cast<int>(label), 1));
    const u32 after = lane_value(label, static_cast<u32>(minimum(lane + 1, kWarpSize - 1)));
    const u32 starts = warp_ballot(lane == 0 || label != before);
    const u32 grey = at.inside ? grey_of(p, colour_at(p, at.x, at.y)) : 0;
    const Addition own = sums_of_pixels(starts, at, grey);
    const bool ends = lane == kWarpSize - 1 || label != after;
    const bool kept = ends && label <= static_cast<u32>(p.capacity);
    add_pending(p, memory, take_in(pending, kept ? label : 0, own));
  }
  add_pending(p, memory, pending);
  if (thread_x() == 0) global<u32>(p.part_roots)[block_x()] = 0;  // for the next picture
}

}  // namespace patternd::cuda
