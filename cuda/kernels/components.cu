// Connected components in four launches, without a word to the host in between (the CPU's version
// is in pipeline/components_rows.cpp; the idea of runs as bits is the same).
//
//   tiles    the components of tiles of 128 × 64 pixels, with their sums (components_tiles.cu)
//   seams    union-find across the tiles' edges, in global memory
//   number   roots get consecutive labels in scan order
//   finish   the tiles' components are added to the picture's; at the same time, in other blocks,
//            the labels of all pixels are written, where they are wanted
//
// Only roots of tiles' components take part in the picture's forest; a run knows its root within
// its tile. A component that touches no edge of its tile is one of the picture's: nothing has to be
// looked up for it, and its sums are stored, not added.

#include "cuda/kernels/components_merge.h"

namespace patternd::cuda {

// The root, within its tile, of a run of a word.
PATTERND_DEVICE u32 tile_root(const ComponentsParameters& p, int x, int y, u32 run) {
  const u16* const local = global<const u16>(p.local);
  return node_in_picture(
      p, x, y, local[static_cast<i64>(y * p.words + x) * kNodesPerWord + static_cast<int>(run)]);
}

// ---- seams

struct Pair {  // of roots; kNoNode: none
  u32 a, b;
};

PATTERND_DEVICE Corner read_corner(const ComponentsParameters& p, int x, int y) {
  const u32* const bits = global<const u32>(p.bits) + static_cast<i64>(y) * p.words + x;
  Corner c;
  c.word = bits[0];
  c.left = x > 0 ? bits[-1] : 0;
  c.upper = y > 0 ? bits[-p.words] : 0;
  c.upper_left = x > 0 && y > 0 ? bits[-p.words - 1] : 0;
  return c;
}

PATTERND_DEVICE Pair pair_at_corner(const ComponentsParameters& p, const Corner& c, int x, int y) {
  if (touches_upper_left(c))
    return {tile_root(p, x, y, 0), tile_root(p, x - 1, y - 1, last_run(c.upper_left))};
  if (left_touches_upper(c))
    return {tile_root(p, x - 1, y, last_run(c.left)), tile_root(p, x, y - 1, 0)};
  return {kNoNode, kNoNode};
}

// A warp has a word under a horizontal seam, a lane one of its 32 places. Where pixels touch across
// a word's corner alone, place 0 has no other touch.
PATTERND_DEVICE Pair pair_under_seam(const ComponentsParameters& p, int warp, int lane) {
  const int x = warp % p.words;
  const int y = (warp / p.words + 1) * kTileRows;
  const Corner c = read_corner(p, x, y);
  if (touches_of(c.word, c.upper, p.eight != 0) >> lane & 1)
    return {tile_root(p, x, y, run_at(starts_of(c.word), lane)),
            tile_root(p, x, y - 1, run_at(starts_of(c.upper), lane))};
  if (lane == 0 && p.eight != 0) return pair_at_corner(p, c, x, y);
  return {kNoNode, kNoNode};
}

// A warp has 32 rows beside a vertical seam, a lane one of them.
PATTERND_DEVICE Pair pair_beside_seam(const ComponentsParameters& p, int warp, int lane) {
  const int row_groups = (p.height + kWarpSize - 1) / kWarpSize;
  const int x = (warp / row_groups + 1) * kTileWords;
  const int y = warp % row_groups * kWarpSize + lane;
  if (y >= p.height) return {kNoNode, kNoNode};
  const Corner c = read_corner(p, x, y);
  if (touches_left(c)) return {tile_root(p, x, y, 0), tile_root(p, x - 1, y, last_run(c.left))};
  if (p.eight != 0) return pair_at_corner(p, c, x, y);
  return {kNoNode, kNoNode};
}

PATTERND_KERNEL __launch_bounds__(kSeamThreads)
    patternd_components_seams(const ComponentsParameters p) {
  const int lane = thread_x() % kWarpSize;
  const int warp = (block_x() * kSeamThreads + thread_x()) / kWarpSize;
  const int under = ((p.height + kTileRows - 1) / kTileRows - 1) * p.words;
  const int beside =
      ((p.words + kTileWords - 1) / kTileWords - 1) * ((p.height + kWarpSize - 1) / kWarpSize);
  Pair pair{kNoNode, kNoNode};
  if (warp < under)
    pair = pair_under_seam(p, warp, lane);
  else if (warp < under + beside)
    pair = pair_beside_seam(p, warp - under, lane);
  // Large components meet again and again along a seam: what the lane before has, it unites.
  const u32 having = warp_ballot(pair.a != kNoNode);
  const u32 before = having & ((1U << lane) - 1);
  const u32 last = before != 0 ? static_cast<u32>(highest_bit(before)) : 0;
  const Pair of_last{lane_value(pair.a, last), lane_value(pair.b, last)};
  const bool known = before != 0 && of_last.a == pair.a && of_last.b == pair.b;
  if (pair.a == kNoNode || known) return;
  const u32 ceased = unite(PictureForest{global<u32>(p.parent)}, pair.a, pair.b);
  if (ceased != kNoNode)
    atomic_sum(global<u32>(p.part_roots) + ceased / (kNodesPerWord * kNumberThreads), 0U - 1U);
}

// ---- number

struct NumberMemory {
  u16 nodes[kNumberThreads * kNodesPerWord];  // of the block, that touch their tile's edge
  u32 own[kNumberThreads];                    // by word: roots of the picture
};

// Which of the tiles' roots in the thread's word are the picture's; the others get their root as
// parent. Those to be looked up crowd in words at the tiles' edges, so the block shares them out.
PATTERND_DEVICE u32 roots_of_word(const ComponentsParameters& p, NumberMemory& memory, u32 roots) {
  const PictureForest forest{global<u32>(p.parent)};
  const int thread = thread_x();
  u32 touching = roots >> 16;
  memory.own[thread] = roots & 0xFFFF & ~touching;
  const BlockSum nodes = block_sum(static_cast<u32>(population(touching)));
  for (u32 place = nodes.before; touching != 0; touching &= touching - 1, ++place)
    memory.nodes[place] = static_cast<u16>(thread * kNodesPerWord + lowest_bit(touching));
  block_barrier();
  for (u32 i = static_cast<u32>(thread); i < nodes.total; i += kNumberThreads) {
    const u32 local = memory.nodes[i];
    const u32 node = static_cast<u32>(block_x() * kNumberThreads * kNodesPerWord) + local;
    const u32 up = forest.parent(node);
    if (up == node)
      atomic_set_bits(&memory.own[local / kNodesPerWord], 1U << local % kNodesPerWord);
    else
      forest.set_parent(node, root_or_numbered(forest, node, up));
  }
  block_barrier();
  return memory.own[thread];
}

PATTERND_KERNEL __launch_bounds__(kNumberThreads)
    patternd_components_number(const ComponentsParameters p) {
  __shared__ NumberMemory memory;
  const u32* const part_roots = global<const u32>(p.part_roots);
  u32* const parent = global<u32>(p.parent);
  DeviceComponent* const components = global<DeviceComponent>(p.components);
  u32 before = 0;
  for (int part = thread_x(); part < block_x(); part += kNumberThreads) before += part_roots[part];
  const int at = block_x() * kNumberThreads + thread_x();
  const u32 first_node = static_cast<u32>(at) * kNodesPerWord;
  const u32 roots = at < p.words * p.height ? global<const u32>(p.roots)[at] : 0;
  const u32 own = roots_of_word(p, memory, roots);
  before = block_sum(before).total;
  u32 label = before + block_sum(static_cast<u32>(population(own))).before;
  for (u32 rest = own; rest != 0; rest &= rest - 1) {
    const int run = lowest_bit(rest);
    // What is added to starts from zero; what touches no edge is stored.
    if ((roots >> (16 + run) & 1) != 0 && label < static_cast<u32>(p.capacity))
      components[label] = DeviceComponent{};
    parent[first_node + static_cast<u32>(run)] = kFinalLabel | ++label;
  }
  if (thread_x() == kNumberThreads - 1 && block_x() == blocks_x() - 1) {
    ComponentCounts* const counts = global<ComponentCounts>(p.counts);
    counts->components = label;
    counts->tile_components = *global<const u32>(p.listed);
  }
}

// ---- finish: merge

// A tile's component in the picture's coordinates.
PATTERND_DEVICE Addition addition_of(const ComponentsParameters& p, const TileComponent& c) {
  const u32 word = c.node / kNodesPerWord;
  const u32 top = word / static_cast<u32>(p.words);
  const u64 x0 = word % static_cast<u32>(p.words) / kTileWords * kTileColumns;
  const u64 y0 = top / kTileRows * kTileRows;
  Addition a;
  a.sums[0] = c.area;
  a.sums[1] = x0 * c.area + c.sum_x;
  a.sums[2] = y0 * c.area + c.sum_y;
  a.sums[3] = x0 * x0 * c.area + 2 * x0 * c.sum_x + c.sum_xx;
  a.sums[4] = y0 * y0 * c.area + 2 * y0 * c.sum_y + c.sum_yy;
  a.sums[5] = x0 * y0 * c.area + x0 * c.sum_y + y0 * c.sum_x + c.sum_xy;
  a.sums[6] = c.sum_grey;
  const u32 place = 8191 - (c.peak & 8191);
  const u64 peak_x = x0 + place % kTileColumns;
  const u64 peak_y = y0 + place / kTileColumns;
  a.peak = static_cast<u64>(c.peak >> 13) << 32 | (~(peak_y << 16 | peak_x) & 0xFFFFFFFFU);
  a.sides[0] = 65535 - (static_cast<u32>(x0) + kTileColumns - 1 - c.left_from_end);
  a.sides[1] = static_cast<u32>(x0) + c.right;
  a.sides[2] = 65535 - top;
  a.sides[3] = static_cast<u32>(y0) + c.bottom;
  return a;
}

constexpr int kComponentPieces = sizeof(DeviceComponent) / sizeof(Words4);
struct MergeMemory {
  DeviceComponent whole[kFinishThreads];  // components of one tile
  u32 labels[kFinishThreads];             // theirs; 0: none
  AddMemory add;
};

// Stores components of one tile, neighbouring lanes neighbouring pieces: a component's memory is
// written at once.
PATTERND_DEVICE void store_whole(const ComponentsParameters& p, const MergeMemory& memory) {
  Words4* const to = global<Words4>(p.components);
  const Words4* const pieces = reinterpret_cast<const Words4*>(memory.whole);
#pragma unroll
  for (int k = 0; k < kComponentPieces; ++k) {
    const int i = k * kFinishThreads + thread_x();
    const u32 label = memory.labels[i / kComponentPieces];
    if (label != 0)
      to[static_cast<i64>(label - 1) * kComponentPieces + i % kComponentPieces] = pieces[i];
  }
}

PATTERND_DEVICE void merge(const ComponentsParameters& p, MergeMemory& memory) {
  const u32* const parent = global<const u32>(p.parent);
  const TileComponent* const list = global<const TileComponent>(p.tiles);
  const ComponentCounts* const counts = global<const ComponentCounts>(p.counts);
  const int thread = thread_x();
  const int listed = counts->tile_components > static_cast<u32>(p.capacity)
                         ? p.capacity
                         : static_cast<int>(counts->tile_components);
  for (int first = block_x() * kFinishThreads; first < listed;
       first += p.merge_blocks * kFinishThreads) {
    u32 label = 0;
    bool whole = false;
    Addition own{};
    if (first + thread < listed) {
      const TileComponent c = list[first + thread];
      const u32 row = c.node / static_cast<u32>(kNodesPerWord * p.words);
      label = final_label(parent, c.node);
      if (label > static_cast<u32>(p.capacity)) label = 0;
      own = addition_of(p, c);
      whole = !touches_edge(c, row % kTileRows);
    }
    if (thread == 0) memory.add.largest_area = memory.add.main_label = 0;
    memory.labels[thread] = whole ? label : 0;
    if (whole) memory.whole[thread] = component_of(own);
    block_barrier();
    store_whole(p, memory);
    add_block(p, memory.add, whole ? 0 : label, own);
    block_barrier();
  }
  // For the next picture.
  const int parts = (p.words * p.height + kNumberThreads - 1) / kNumberThreads;
  for (int part = block_x() * kFinishThreads + thread_x(); part < parts;
       part += p.merge_blocks * kFinishThreads)
    global<u32>(p.part_roots)[part] = 0;
  if (block_x() == 0 && thread_x() == 0) *global<u32>(p.listed) = 0;
}

// ---- finish: labels

struct LabelMemory {
  u32 words[kFinishThreads];
  u32 labels[kFinishThreads][kNodesPerWord + 1];  // a column more: other banks
};

// Labels of four pixels of a word.
struct alignas(16) Labels4 {
  u32 of[4];
};
PATTERND_DEVICE Labels4 labels_at(const LabelMemory& memory, int word, int bit) {
  Labels4 labels;
  const u32 shown = memory.words[word];
  const u32 starts = starts_of(shown);
#pragma unroll
  for (int i = 0; i < 4; ++i)
    labels.of[i] = (shown >> (bit + i) & 1) != 0 ? memory.labels[word][run_at(starts, bit + i)] : 0;
  return labels;
}

PATTERND_DEVICE void write_labels(const ComponentsParameters& p, LabelMemory& memory, int block) {
  const u32* const parent = global<const u32>(p.parent);
  const int thread = thread_x();
  const int first = block * kFinishThreads;
  const int count = p.words * p.height;
  const int own = first + thread;
  const u32 word = own < count ? global<const u32>(p.bits)[own] : 0;
  memory.words[thread] = word;
  const int own_x = own % p.words;
  const int own_y = own / p.words;
  for (u32 starts = starts_of(word); starts != 0; starts &= starts - 1) {
    const u32 run = static_cast<u32>(lowest_bit(starts)) / 2;
    memory.labels[thread][run] = final_label(parent, tile_root(p, own_x, own_y, run));
  }
  block_barrier();
  // Eight lanes have a word, four pixels each.
  const int bit = thread % 8 * 4;
  for (int i = thread / 8; i < kFinishThreads && first + i < count; i += kFinishThreads / 8) {
    const int at = first + i;
    const int x = at % p.words * 32 + bit;
    u32* const row = reinterpret_cast<u32*>(global<u8>(p.labels) +
                                            static_cast<i64>(at / p.words) * p.labels_stride_bytes);
    const Labels4 labels = labels_at(memory, i, bit);
    if (x + 4 <= p.width && (reinterpret_cast<u64>(row + x) & 15) == 0) {
      *reinterpret_cast<Labels4*>(row + x) = labels;
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (x + k < p.width) row[x + k] = labels.of[k];
    }
  }
}

PATTERND_KERNEL __launch_bounds__(kFinishThreads, blocks_at_a_time(kFinishThreads, 5))
    patternd_components_finish(const ComponentsParameters p) {
  __shared__ union {
    MergeMemory merge;
    LabelMemory labels;
  } memory;
  if (block_x() < p.merge_blocks)
    merge(p, memory.merge);
  else
    write_labels(p, memory.labels, block_x() - p.merge_blocks);
}

}  // namespace patternd::cuda
