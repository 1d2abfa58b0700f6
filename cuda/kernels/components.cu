// Connected components in six launches, without a word to the host in between (the CPU's version is
// in pipeline/components_rows.cpp; the idea of runs as bits is the same).
//
//   tiles    pixels to bits; union-find among the runs of a tile of 64 × 32 pixels in shared
//            memory; the statistics of the tile's components
//   seams    union-find across the tiles' edges, in global memory
//   count    which of the tiles' components are roots of the picture's; how many in each part
//   number   roots get consecutive labels in scan order
//   merge    the tiles' components are added to the picture's
//   write    labels of all pixels, where they are wanted
//
// A node of the union-find is a run of foreground within a word of 32 pixels. Nodes are numbered in
// scan order and the smaller one becomes the parent, so a component's root is its first run and
// roots in rising order are labels in scan order. The union is Komura's and Playne and Hawick's
// (IEEE TPDS 29(6), 2018): an atomic minimum on the parent of what was a root; where it no longer
// was, the loop goes on with what it found.

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/components_parameters.h"
#include "cuda/kernels/device.h"

namespace patternd::cuda {

// ---- runs and nodes

PATTERND_DEVICE u32 up_to(int bit) { return ~0U >> (31 - bit); }
PATTERND_DEVICE u32 starts_of(u32 word) { return word & ~(word << 1); }
// The number, within its word, of the run that starts last up to `bit`.
PATTERND_DEVICE u32 run_at(u32 starts, int bit) {
  return static_cast<u32>(highest_bit(starts & up_to(bit))) / 2;
}
// The last pixel of the run that starts at `bit`.
PATTERND_DEVICE int run_end(u32 word, int bit) {
  const u32 gap = ~word & ~up_to(bit);
  return gap != 0 ? lowest_bit(gap) - 1 : 31;
}

PATTERND_DEVICE u32 find_root(const u32* parent, u32 node) {
  const volatile u32* const now = parent;
  for (u32 next = now[node]; next != node; next = now[node]) node = next;
  return node;
}

PATTERND_DEVICE void unite(u32* parent, u32 a, u32 b) {
  for (;;) {
    a = find_root(parent, a);
    b = find_root(parent, b);
    if (a == b) return;
    const u32 low = a < b ? a : b;
    const u32 high = a < b ? b : a;
    const u32 old = atomic_minimum(parent + high, low);
    if (old == high) return;
    a = old;
    b = low;
  }
}

// Unites the runs of a word with those of the word above, which touch where their pixels
// (connectivity 4) or the corners between pixels (8) meet: at each first common one a pair.
PATTERND_DEVICE void unite_rows(u32* parent, u32 word, u32 node, u32 upper, u32 upper_node,
                                bool eight) {
  const u32 starts = starts_of(word);
  const u32 upper_starts = starts_of(upper);
  const u32 cover = eight ? word | word << 1 : word;
  const u32 upper_cover = eight ? upper | upper << 1 : upper;
  for (u32 pairs = (starts & upper_cover) | (upper_starts & cover); pairs != 0;
       pairs &= pairs - 1) {
    const int bit = lowest_bit(pairs);
    unite(parent, node + run_at(starts, bit), upper_node + run_at(upper_starts, bit));
  }
}

// A word, its neighbours to the left and above, and the first node of each.
struct Corner {
  u32 word, left, upper, upper_left;
  u32 node, left_node, upper_node, upper_left_node;
};
PATTERND_DEVICE u32 last_run(u32 word) { return run_at(starts_of(word), 31); }

PATTERND_DEVICE void unite_left(u32* parent, const Corner& c) {
  if ((c.word & 1) != 0 && c.left >> 31 != 0) unite(parent, c.node, c.left_node + last_run(c.left));
}
// Across the corner where four words meet; with a third pixel set there other unions do it.
PATTERND_DEVICE void unite_diagonals(u32* parent, const Corner& c) {
  const bool here = (c.word & 1) != 0;
  const bool above = (c.upper & 1) != 0;
  const bool left = c.left >> 31 != 0;
  const bool above_left = c.upper_left >> 31 != 0;
  if (here && above_left && !above && !left)
    unite(parent, c.node, c.upper_left_node + last_run(c.upper_left));
  if (left && above && !here && !above_left)
    unite(parent, c.left_node + last_run(c.left), c.upper_node);
}

// ---- tiles

PATTERND_DEVICE u32 pixel_at(const u8* row, int x, bool deep) {
  return deep ? reinterpret_cast<const u16*>(row)[x] : row[x];
}

// The foreground of 32 pixels from x on.
PATTERND_DEVICE u32 read_word(const ComponentsParameters& p, const u8* row, int x) {
  const u32 range = static_cast<u32>(p.high - p.low);
  const u32 low = static_cast<u32>(p.low);
  const int count = minimum(p.width - x, 32);
  u32 word = 0;
  if (p.high < p.low) return 0;
  if (count == 32 && p.deep == 0 && (reinterpret_cast<u64>(row + x) & 3) == 0) {
    const u32* four = reinterpret_cast<const u32*>(row + x);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const u32 pixels = four[i];
#pragma unroll
      for (int k = 0; k < 4; ++k)
        word |= static_cast<u32>((pixels >> (8 * k) & 0xFF) - low <= range) << (4 * i + k);
    }
    return word;
  }
  for (int i = 0; i < count; ++i)
    word |= static_cast<u32>(pixel_at(row, x + i, p.deep != 0) - low <= range) << i;
  return word;
}

constexpr int kTileNodes = kTileThreads * kNodesPerWord;
struct TileMemory {
  u32 words[kTileThreads];
  u32 parent[kTileNodes];
  // By node, what TileComponent has. An area (12 bits) and a sum of y (16) share a word: Kepler has
  // 48 KiB for a block.
  u32 area_sum_y[kTileNodes];
  u32 sum_x[kTileNodes];
  u32 sum_xx[kTileNodes];
  u32 sum_yy[kTileNodes];
  u32 sum_xy[kTileNodes];
  u32 sum_grey[kTileNodes];
  u32 left_from_end[kTileNodes];
  u32 right[kTileNodes];
  u32 bottom[kTileNodes];
  u32 peak[kTileNodes];
  u32 count;
  u32 first;
};
static_assert(sizeof(TileMemory) <= 48 * 1024, "what every GPU has");

// Sums of consecutive runs of one root, so that a thread has few atomic operations.
struct RunSums {
  u32 root, area, sum_x, sum_xx, sum_grey, left_from_end, right, peak;
};

PATTERND_DEVICE void add_to_root(TileMemory& tile, const RunSums& s, u32 y) {
  if (s.area == 0) return;
  atomic_sum(&tile.area_sum_y[s.root], s.area << 16 | s.area * y);
  atomic_sum(&tile.sum_x[s.root], s.sum_x);
  atomic_sum(&tile.sum_xx[s.root], s.sum_xx);
  atomic_sum(&tile.sum_yy[s.root], s.area * y * y);
  atomic_sum(&tile.sum_xy[s.root], s.sum_x * y);
  atomic_sum(&tile.sum_grey[s.root], s.sum_grey);
  atomic_maximum(&tile.left_from_end[s.root], s.left_from_end);
  atomic_maximum(&tile.right[s.root], s.right);
  atomic_maximum(&tile.bottom[s.root], y);
  atomic_maximum(&tile.peak[s.root], s.peak);
}

// One run: x within the tile, `first` its first pixel in memory, y likewise within the tile.
PATTERND_DEVICE void add_run(RunSums& s, const u8* row, int image_x, u32 x, u32 length, u32 y,
                             bool deep) {
  const u32 last = x + length - 1;
  s.area += length;
  s.sum_x += (x + last) * length / 2;
  for (u32 i = 0; i < length; ++i) {
    const u32 value = pixel_at(row, image_x + static_cast<int>(i), deep);
    s.sum_grey += value;
    s.sum_xx += (x + i) * (x + i);
    const u32 peak = value << 11 | (2047 - (64 * y + x + i));
    s.peak = peak > s.peak ? peak : s.peak;
  }
  s.left_from_end = 63 - x > s.left_from_end ? 63 - x : s.left_from_end;
  s.right = last > s.right ? last : s.right;
}

// Adds the runs of a thread's word to their roots' sums, makes them point there in global memory,
// and returns which of the word's nodes are roots.
PATTERND_DEVICE u32 sum_word(const ComponentsParameters& p, TileMemory& tile, u32 word,
                             const u8* row, int image_x, u32 node) {
  u32* const parent = global<u32>(p.parent);
  const int thread = thread_x();
  const u32 y = static_cast<u32>(thread / kTileWords);
  const u32 word_x = 32 * static_cast<u32>(thread % kTileWords);
  const int first_row = block_y() * kTileRows;
  RunSums sums{};
  u32 roots = 0;
  for (u32 starts = starts_of(word); starts != 0; starts &= starts - 1) {
    const int bit = lowest_bit(starts);
    const u32 local = static_cast<u32>(thread * kNodesPerWord + bit / 2);
    const u32 root = find_root(tile.parent, local);
    if (root != sums.root) {
      add_to_root(tile, sums, y);
      sums = RunSums{};
      sums.root = root;
    }
    const u32 length = static_cast<u32>(run_end(word, bit) - bit + 1);
    add_run(sums, row, image_x + bit, word_x + static_cast<u32>(bit), length, y, p.deep != 0);
    if (root == local) roots |= 1U << (bit / 2);
    const int root_thread = static_cast<int>(root / kNodesPerWord);
    const u32 root_word = static_cast<u32>((first_row + root_thread / kTileWords) * p.words +
                                           block_x() * kTileWords + root_thread % kTileWords);
    parent[node + static_cast<u32>(bit / 2)] = root_word * kNodesPerWord + root % kNodesPerWord;
  }
  add_to_root(tile, sums, y);
  return roots;
}

PATTERND_DEVICE void clear_node(TileMemory& tile, u32 node) {
  tile.parent[node] = node;
  tile.area_sum_y[node] = tile.sum_x[node] = tile.sum_xx[node] = tile.sum_yy[node] = 0;
  tile.sum_xy[node] = tile.sum_grey[node] = tile.left_from_end[node] = tile.right[node] = 0;
  tile.bottom[node] = tile.peak[node] = 0;
}

PATTERND_DEVICE TileComponent tile_component(const TileMemory& tile, u32 local, u32 node) {
  TileComponent c;
  c.node = node;
  c.area = tile.area_sum_y[local] >> 16;
  c.sum_x = tile.sum_x[local];
  c.sum_y = tile.area_sum_y[local] & 0xFFFF;
  c.sum_xx = tile.sum_xx[local];
  c.sum_yy = tile.sum_yy[local];
  c.sum_xy = tile.sum_xy[local];
  c.sum_grey = tile.sum_grey[local];
  c.left_from_end = tile.left_from_end[local];
  c.right = tile.right[local];
  c.bottom = tile.bottom[local];
  c.peak = tile.peak[local];
  return c;
}

// Hands the roots' sums to the list of all tiles' components; threads take places in it together.
PATTERND_DEVICE void list_roots(const ComponentsParameters& p, TileMemory& tile, u32 roots,
                                u32 node) {
  TileComponent* const list = global<TileComponent>(p.tiles);
  ComponentCounts* const counts = global<ComponentCounts>(p.counts);
  const int thread = thread_x();
  u32 place = atomic_sum(&tile.count, static_cast<u32>(population(roots)));
  block_barrier();
  if (thread == 0) tile.first = atomic_sum(&counts->tile_components, tile.count);
  block_barrier();
  place += tile.first;
  for (; roots != 0; roots &= roots - 1, ++place) {
    const u32 run = static_cast<u32>(lowest_bit(roots));
    if (place < static_cast<u32>(p.capacity))
      list[place] =
          tile_component(tile, static_cast<u32>(thread * kNodesPerWord) + run, node + run);
  }
}

PATTERND_KERNEL __launch_bounds__(kTileThreads)
    patternd_components_tiles(const ComponentsParameters p) {
  __shared__ TileMemory tile;
  const int thread = thread_x();
  const int x = block_x() * kTileWords + thread % kTileWords;
  const int y = block_y() * kTileRows + thread / kTileWords;
  const bool inside = x < p.words && y < p.height;
  const int at = y * p.words + x;
  const u8* const row = global<const u8>(p.picture) + static_cast<i64>(y) * p.picture_stride_bytes;
  u32* const bits = global<u32>(p.bits);
  u32* const roots = global<u32>(p.roots);

  const u32 word = inside ? read_word(p, row, 32 * x) : 0;
  if (inside) bits[at] = word;
  tile.words[thread] = word;
  if (thread == 0) tile.count = 0;
  const u32 local = static_cast<u32>(thread * kNodesPerWord);
  for (u32 starts = starts_of(word); starts != 0; starts &= starts - 1)
    clear_node(tile, local + static_cast<u32>(lowest_bit(starts) / 2));
  block_barrier();

  Corner c{};
  c.word = word;
  c.node = local;
  const bool has_left = thread % kTileWords > 0;
  const bool has_upper = thread >= kTileWords;
  if (has_left) {
    c.left = tile.words[thread - 1];
    c.left_node = local - kNodesPerWord;
    unite_left(tile.parent, c);
  }
  if (has_upper) {
    c.upper = tile.words[thread - kTileWords];
    c.upper_node = local - kTileWords * kNodesPerWord;
    unite_rows(tile.parent, word, local, c.upper, c.upper_node, p.eight != 0);
    if (has_left && p.eight != 0) {
      c.upper_left = tile.words[thread - kTileWords - 1];
      c.upper_left_node = c.upper_node - kNodesPerWord;
      unite_diagonals(tile.parent, c);
    }
  }
  block_barrier();

  const u32 node = static_cast<u32>(at) * kNodesPerWord;
  const u32 own_roots = sum_word(p, tile, word, row, 32 * x, node);
  if (inside) roots[at] = own_roots;
  block_barrier();
  list_roots(p, tile, own_roots, node);
}

// ---- seams

PATTERND_KERNEL __launch_bounds__(kScanThreads)
    patternd_components_seams(const ComponentsParameters p) {
  const u32* const bits = global<const u32>(p.bits);
  u32* const parent = global<u32>(p.parent);
  const int at = block_x() * kScanThreads + thread_x();
  if (at >= p.words * p.height) return;
  const int x = at % p.words;
  const int y = at / p.words;
  const bool on_left = x > 0 && x % kTileWords == 0;
  const bool on_top = y > 0 && y % kTileRows == 0;
  if (!on_left && !on_top) return;
  Corner c{};
  c.word = bits[at];
  c.node = static_cast<u32>(at) * kNodesPerWord;
  if (x > 0) {
    c.left = bits[at - 1];
    c.left_node = c.node - kNodesPerWord;
  }
  if (y > 0) {
    c.upper = bits[at - p.words];
    c.upper_node = c.node - static_cast<u32>(p.words) * kNodesPerWord;
  }
  if (x > 0 && y > 0) {
    c.upper_left = bits[at - p.words - 1];
    c.upper_left_node = c.upper_node - kNodesPerWord;
  }
  if (on_left) unite_left(parent, c);
  if (on_top) unite_rows(parent, c.word, c.node, c.upper, c.upper_node, p.eight != 0);
  if (p.eight != 0 && x > 0 && y > 0) unite_diagonals(parent, c);
}

// ---- count, number

PATTERND_DEVICE u32 warp_total(u32 value) {
  return static_cast<u32>(warp_sum(static_cast<int>(value)));
}

// The sum over a block of kScanThreads, in every thread.
PATTERND_DEVICE u32 block_total(u32 value) {
  __shared__ u32 of_warp[kScanThreads / kWarpSize];
  const u32 warp = warp_total(value);
  if (thread_x() % kWarpSize == 0) of_warp[thread_x() / kWarpSize] = warp;
  block_barrier();
  u32 total = 0;
  for (int i = 0; i < kScanThreads / kWarpSize; ++i) total += of_warp[i];
  block_barrier();
  return total;
}

// How many of the values of the threads before this one.
PATTERND_DEVICE u32 block_sum_before(u32 value) {
  __shared__ u32 sums[2][kScanThreads];
  const int thread = thread_x();
  int now = 0;
  sums[0][thread] = value;
  block_barrier();
  for (int step = 1; step < kScanThreads; step *= 2) {
    sums[1 - now][thread] = sums[now][thread] + (thread >= step ? sums[now][thread - step] : 0);
    now = 1 - now;
    block_barrier();
  }
  return sums[now][thread] - value;
}

PATTERND_KERNEL __launch_bounds__(kScanThreads)
    patternd_components_count(const ComponentsParameters p) {
  u32* const roots = global<u32>(p.roots);
  u32* const parent = global<u32>(p.parent);
  u32* const block_counts = global<u32>(p.block_counts);
  u32 count = 0;
  for (int i = 0; i < kScanWordsPerThread; ++i) {
    const int at = block_x() * kScanWords + thread_x() * kScanWordsPerThread + i;
    if (at >= p.words * p.height) break;
    u32 own = 0;
    for (u32 rest = roots[at]; rest != 0; rest &= rest - 1) {
      const u32 node = static_cast<u32>(at * kNodesPerWord + lowest_bit(rest));
      const u32 root = find_root(parent, node);
      if (root == node)
        own |= rest & (0U - rest);
      else
        parent[node] = root;  // shortens the ways of the kernels behind
    }
    roots[at] = own;
    count += static_cast<u32>(population(own));
  }
  const u32 total = block_total(count);
  if (thread_x() == 0) block_counts[block_x()] = total;
}

PATTERND_KERNEL __launch_bounds__(kScanThreads)
    patternd_components_number(const ComponentsParameters p) {
  const u32* const roots = global<const u32>(p.roots);
  u32* const parent = global<u32>(p.parent);
  const u32* const block_counts = global<const u32>(p.block_counts);
  DeviceComponent* const components = global<DeviceComponent>(p.components);
  ComponentCounts* const counts = global<ComponentCounts>(p.counts);
  u32 before = 0;
  for (int block = thread_x(); block < block_x(); block += kScanThreads)
    before += block_counts[block];
  before = block_total(before);

  const int first = block_x() * kScanWords + thread_x() * kScanWordsPerThread;
  u32 own = 0;
  for (int i = 0; i < kScanWordsPerThread; ++i)
    if (first + i < p.words * p.height) own += static_cast<u32>(population(roots[first + i]));
  u32 label = before + block_sum_before(own);
  if (thread_x() == kScanThreads - 1 && block_x() == blocks_x() - 1)
    counts->components = label + own;
  for (int i = 0; i < kScanWordsPerThread && first + i < p.words * p.height; ++i) {
    for (u32 rest = roots[first + i]; rest != 0; rest &= rest - 1) {
      if (label < static_cast<u32>(p.capacity)) components[label] = DeviceComponent{};
      ++label;
      parent[(first + i) * kNodesPerWord + lowest_bit(rest)] = kFinalLabel | label;
    }
  }
}

PATTERND_DEVICE u32 final_label(const u32* parent, u32 node) {
  u32 next = parent[node];
  while ((next & kFinalLabel) == 0) next = parent[next];
  return next & ~kFinalLabel;
}

// ---- merge

struct Addition {
  u64 sums[7];  // in DeviceComponent's order
  u64 peak;
  u32 sides[4];
};

// A tile's component in the picture's coordinates.
PATTERND_DEVICE Addition addition_of(const ComponentsParameters& p, const TileComponent& c) {
  const u32 word = c.node / kNodesPerWord;
  const u32 top = word / static_cast<u32>(p.words);
  const u64 x0 = word % static_cast<u32>(p.words) / kTileWords * (32 * kTileWords);
  const u64 y0 = top / kTileRows * kTileRows;
  Addition a;
  a.sums[0] = c.area;
  a.sums[1] = x0 * c.area + c.sum_x;
  a.sums[2] = y0 * c.area + c.sum_y;
  a.sums[3] = x0 * x0 * c.area + 2 * x0 * c.sum_x + c.sum_xx;
  a.sums[4] = y0 * y0 * c.area + 2 * y0 * c.sum_y + c.sum_yy;
  a.sums[5] = x0 * y0 * c.area + x0 * c.sum_y + y0 * c.sum_x + c.sum_xy;
  a.sums[6] = c.sum_grey;
  const u32 place = 2047 - (c.peak & 2047);
  const u64 peak_x = x0 + place % 64;
  const u64 peak_y = y0 + place / 64;
  a.peak = static_cast<u64>(c.peak >> 11) << 32 | (~(peak_y << 16 | peak_x) & 0xFFFFFFFFU);
  a.sides[0] = 65535 - (static_cast<u32>(x0) + 63 - c.left_from_end);
  a.sides[1] = static_cast<u32>(x0) + c.right;
  a.sides[2] = 65535 - top;
  a.sides[3] = static_cast<u32>(y0) + c.bottom;
  return a;
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

PATTERND_DEVICE u32 warp_maximum(u32 value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    const u32 other = static_cast<u32>(shuffle_xor(static_cast<int>(value), mask));
    value = other > value ? other : value;
  }
  return value;
}
PATTERND_DEVICE u64 warp_maximum(u64 value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) {
    const u64 other = static_cast<u64>(shuffle_xor(static_cast<i64>(value), mask));
    value = other > value ? other : value;
  }
  return value;
}

// Many tiles' components belong to one large component of the picture, whose sums all blocks would
// fight for: a block adds up those that share the label of its largest one before it adds.
constexpr int kMergeWarps = kMergeThreads / kWarpSize;
struct MergeMemory {
  u32 largest_area;
  u32 main_label;
  u64 sums[7][kMergeWarps];
  u64 peak[kMergeWarps];
  u32 sides[4][kMergeWarps];
};

PATTERND_DEVICE void add_up_warp(MergeMemory& memory, const Addition& own, bool is_main) {
  const int warp = thread_x() / kWarpSize;
#pragma unroll
  for (int i = 0; i < 7; ++i)
    memory.sums[i][warp] = static_cast<u64>(warp_sum(static_cast<i64>(is_main ? own.sums[i] : 0)));
#pragma unroll
  for (int i = 0; i < 4; ++i) memory.sides[i][warp] = warp_maximum(is_main ? own.sides[i] : 0);
  memory.peak[warp] = warp_maximum(is_main ? own.peak : 0);
}

// Twelve threads add what the warps came to, one for each sum, side and the peak.
PATTERND_DEVICE void add_main(const MergeMemory& memory, DeviceComponent& to) {
  const int thread = thread_x();
  if (thread < 7) {
    u64 sum = 0;
    for (int w = 0; w < kMergeWarps; ++w) sum += memory.sums[thread][w];
    atomic_sum(&to.area + thread, sum);
  } else if (thread < 11) {
    u32 side = 0;
    for (int w = 0; w < kMergeWarps; ++w)
      side = memory.sides[thread - 7][w] > side ? memory.sides[thread - 7][w] : side;
    atomic_maximum(&to.left_from_end + (thread - 7), side);
  } else if (thread == 11) {
    u64 peak = 0;
    for (int w = 0; w < kMergeWarps; ++w) peak = memory.peak[w] > peak ? memory.peak[w] : peak;
    atomic_maximum(&to.peak, peak);
  }
}

PATTERND_DEVICE void merge_block(const ComponentsParameters& p, MergeMemory& memory, u32 label,
                                 const Addition& own) {
  DeviceComponent* const components = global<DeviceComponent>(p.components);
  const u32 area = static_cast<u32>(own.sums[0]);
  if (thread_x() == 0) memory.largest_area = memory.main_label = 0;
  block_barrier();
  if (label != 0) atomic_maximum(&memory.largest_area, area);
  block_barrier();
  // Any of equals will do, but all threads must see the same one.
  if (label != 0 && area == memory.largest_area) atomic_maximum(&memory.main_label, label);
  block_barrier();
  const u32 main_label = memory.main_label;
  const bool is_main = label != 0 && label == main_label;
  add_up_warp(memory, own, is_main);
  if (label != 0 && !is_main) add_to_component(components[label - 1], own);
  block_barrier();
  if (main_label != 0) add_main(memory, components[main_label - 1]);
  block_barrier();
}

PATTERND_KERNEL __launch_bounds__(kMergeThreads)
    patternd_components_merge(const ComponentsParameters p) {
  __shared__ MergeMemory memory;
  const u32* const parent = global<const u32>(p.parent);
  const TileComponent* const list = global<const TileComponent>(p.tiles);
  const ComponentCounts* const counts = global<const ComponentCounts>(p.counts);
  const int listed = counts->tile_components > static_cast<u32>(p.capacity)
                         ? p.capacity
                         : static_cast<int>(counts->tile_components);
  for (int first = block_x() * kMergeThreads; first < listed; first += blocks_x() * kMergeThreads) {
    const int at = first + thread_x();
    u32 label = 0;
    Addition own{};
    if (at < listed) {
      label = final_label(parent, list[at].node);
      if (label > static_cast<u32>(p.capacity)) label = 0;
      own = addition_of(p, list[at]);
    }
    merge_block(p, memory, label, own);
  }
}

// ---- write

PATTERND_KERNEL __launch_bounds__(kWriteThreads)
    patternd_components_write(const ComponentsParameters p) {
  __shared__ u32 words[kWriteThreads];
  __shared__ u32 labels[kWriteThreads][kNodesPerWord + 1];  // a column more: other banks
  const u32* const bits = global<const u32>(p.bits);
  const u32* const parent = global<const u32>(p.parent);
  u8* const out = global<u8>(p.labels);
  const int thread = thread_x();
  const int first = block_x() * kWriteThreads;
  const int count = p.words * p.height;
  const u32 word = first + thread < count ? bits[first + thread] : 0;
  words[thread] = word;
  for (u32 starts = starts_of(word); starts != 0; starts &= starts - 1) {
    const int run = lowest_bit(starts) / 2;
    labels[thread][run] =
        final_label(parent, static_cast<u32>((first + thread) * kNodesPerWord + run));
  }
  block_barrier();
  // A warp takes one word after another, a lane a pixel.
  const int lane = thread % kWarpSize;
  for (int i = thread / kWarpSize * kWarpSize; i < (thread / kWarpSize + 1) * kWarpSize; ++i) {
    const int at = first + i;
    if (at >= count) return;
    const int x = at % p.words * 32 + lane;
    if (x >= p.width) continue;
    const u32 shown = words[i];
    const bool on = (shown >> lane & 1) != 0;
    u32* const row =
        reinterpret_cast<u32*>(out + static_cast<i64>(at / p.words) * p.labels_stride_bytes);
    row[x] = on ? labels[i][run_at(starts_of(shown), lane)] : 0;
  }
}

}  // namespace patternd::cuda
