// The components of a picture's tiles of 128 × 64 pixels, a block each, wholly in shared memory;
// what becomes of them is in components.cu.
//
//   bits     a thread makes its word's foreground, and sums grey values a run in registers
//   forest   a run takes the first one that it touches above as its parent; ways to the roots are
//            shortened; further touches are unions; then each run learns its root
//   lists    a component of one run needs no sums but its run's, a thread lists it by itself; those
//            of several runs get numbers
//   sums     runs are added to their component's sums. What most of a warp's runs belong to is
//            summed up in registers, or all threads would fight for the sums of a large component

#include "cuda/kernels/components_runs.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

// In a tile's forest, once a root of several runs has a number: this bit and the number.
constexpr u32 kNumbered = 0x80000000U;
// A bit a node; one word more, so that a thread's may be taken from two.
constexpr int kNodeBitWords = kTileNodes / 32 + 1;

struct TileSums {  // what TileComponent has, by a component's number
  u32 node[kTileSums];
  u32 area_sum_y[kTileSums];  // an area (14 bits) above a sum of y (18)
  u32 sum_x[kTileSums];
  u32 sum_xx[kTileSums];
  u32 sum_yy[kTileSums];
  u32 sum_xy[kTileSums];
  u32 sum_grey[kTileSums];
  u32 left_from_end[kTileSums];
  u32 right[kTileSums];
  u32 bottom[kTileSums];
  u32 peak[kTileSums];
};

struct TileMemory {
  u32 words[kTileThreads];
  u32 parents[kTileNodes];
  // Of 8-bit runs, by run of a word, then thread: sum << 13 | peak.
  u32 grey[kTileThreads * kNodesPerWord];
  u32 joined[kNodeBitWords];    // roots that other runs have joined
  u32 touching[kNodeBitWords];  // roots of components that touch the tile's edge
  TileSums sums;
  u32 counts;  // components of several runs << 16 | of one
  u32 first;   // of this tile's entries in the list
};
static_assert(sizeof(TileMemory) <= 48 * 1024, "what every GPU has");

struct TileForest {
  u32* parents;
  __device__ u32 parent(u32 node) const { return load_fresh(parents + node); }
  __device__ void set_parent(u32 node, u32 parent) const { store_through(parents + node, parent); }
  __device__ u32 lower_parent(u32 node, u32 parent) const {
    return atomic_minimum(parents + node, parent);
  }
};

// The bits of a word's nodes, from its first node on.
PATTERND_DEVICE u32 bits_of_nodes(const u32* bits, u32 node) {
  const u64 two = static_cast<u64>(bits[node / 32 + 1]) << 32 | bits[node / 32];
  return static_cast<u32>(two >> node % 32) & 0xFFFF;
}
PATTERND_DEVICE void set_bit_of_node(u32* bits, u32 node) {
  atomic_set_bits(bits + node / 32, 1U << node % 32);
}
// Bits 2i and 2i + 1 for bit i: the places where the runs of a word may start.
PATTERND_DEVICE u32 places_of(u32 runs) {
  u32 spread = (runs | runs << 8) & 0x00FF00FF;
  spread = (spread | spread << 4) & 0x0F0F0F0F;
  spread = (spread | spread << 2) & 0x33333333;
  spread = (spread | spread << 1) & 0x55555555;
  return spread | spread << 1;
}

// ---- bits

struct Pixels {  // 32 of 8 bits
  u32 four[8];
};

PATTERND_DEVICE u32 pixel_at(const u8* row, int x, bool deep) {
  return deep ? reinterpret_cast<const u16*>(row)[x] : row[x];
}

PATTERND_DEVICE Pixels load_pixels(const u8* from, int count) {
  Pixels p;
  const u32 shift = static_cast<u32>(reinterpret_cast<u64>(from) & 3) * 8;
  if (count == 32 && (reinterpret_cast<u64>(from) & 15) == 0) {
    const Words4* words = reinterpret_cast<const Words4*>(from);
    const Words4 a = words[0];
    const Words4 b = words[1];
    p = Pixels{{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}};
  } else if (count == 32) {
    const u32* words = reinterpret_cast<const u32*>(from - shift / 8);
    u32 low = words[0];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const u32 high = shift != 0 || i < 7 ? words[i + 1] : 0;
      p.four[i] = static_cast<u32>((static_cast<u64>(high) << 32 | low) >> shift);
      low = high;
    }
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      p.four[i] = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (4 * i + k < count) p.four[i] |= static_cast<u32>(from[4 * i + k]) << (8 * k);
    }
  }
  return p;
}
PATTERND_DEVICE u32 value_of(const Pixels& p, int i) { return p.four[i / 4] >> (i % 4 * 8) & 0xFF; }

PATTERND_DEVICE u32 word_of(const Pixels& p, u32 low, u32 range) {
  u32 word = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) word |= static_cast<u32>(value_of(p, i) - low <= range) << i;
  return word;
}
PATTERND_DEVICE u32 deep_word_of(const u16* from, int count, u32 low, u32 range) {
  u32 word = 0;
  for (int i = 0; i < count; ++i) word |= static_cast<u32>(from[i] - low <= range) << i;
  return word;
}

// For each run of the word, in order: the sum of its values above its peak, value << 5 | 31 − x.
PATTERND_DEVICE void sum_grey(const Pixels& p, u32 word, u32* to) {
  u32 sum = 0;
  u32 peak = 0;
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    const u32 value = value_of(p, i);
    if ((word >> i & 1) != 0) {
      const u32 place = value << 5 | static_cast<u32>(31 - i);
      sum += value;
      peak = place > peak ? place : peak;
    }
    const bool ends = i == 31 ? word >> 31 != 0 : (word >> i & 3) == 1;
    if (ends) {
      *to = sum << 13 | peak;
      to += kTileThreads;
      sum = peak = 0;
    }
  }
}

// Of a thread: its word's place.
struct TileWord {
  int x;  // in words
  int y;
  int at;  // in the picture's words
  bool inside;
  u32 tile_x;  // of its first pixel, in the tile
  u32 tile_y;
  u32 node;  // of its first run, in the tile
  const u8* pixels;
};

PATTERND_DEVICE TileWord tile_word(const ComponentsParameters& p) {
  TileWord w;
  const int thread = thread_x();
  w.x = block_x() * kTileWords + thread % kTileWords;
  w.y = block_y() * kTileRows + thread / kTileWords;
  w.at = w.y * p.words + w.x;
  w.inside = w.x < p.words && w.y < p.height;
  w.tile_x = static_cast<u32>(thread % kTileWords * 32);
  w.tile_y = static_cast<u32>(thread / kTileWords);
  w.node = static_cast<u32>(thread * kTileNodeStride);
  w.pixels = global<const u8>(p.picture) + static_cast<i64>(w.y) * p.picture_stride_bytes +
             static_cast<i64>(w.x) * (p.deep != 0 ? 64 : 32);
  return w;
}

PATTERND_DEVICE u32 read_word(const ComponentsParameters& p, TileMemory& tile, const TileWord& w) {
  if (!w.inside) return 0;
  u32* const bits = global<u32>(p.bits);
  const int count = minimum(p.width - 32 * w.x, 32);
  int low = p.low;
  int high = p.high;
  if (p.range != 0) {
    const int* const range = global<const int>(p.range);
    low = range[0];
    high = range[1];
  }
  const u32 span = static_cast<u32>(high - low);
  u32 word = p.bits_given != 0 ? bits[w.at] : 0;
  const bool compared = p.bits_given == 0 && low <= high;
  if (p.deep != 0) {
    if (compared)
      word =
          deep_word_of(reinterpret_cast<const u16*>(w.pixels), count, static_cast<u32>(low), span);
  } else {
    const Pixels pixels = load_pixels(w.pixels, count);
    if (compared) word = word_of(pixels, static_cast<u32>(low), span) & up_to(count - 1);
    sum_grey(pixels, word, tile.grey + thread_x());
  }
  if (p.bits_given == 0) bits[w.at] = word;
  return word;
}

// ---- forest

PATTERND_DEVICE void clear_sums(TileSums& sums) {
  for (int i = thread_x(); i < kTileSums; i += kTileThreads) {
    sums.area_sum_y[i] = sums.sum_x[i] = sums.sum_xx[i] = sums.sum_yy[i] = sums.sum_xy[i] = 0;
    sums.sum_grey[i] = sums.left_from_end[i] = sums.right[i] = sums.bottom[i] = sums.peak[i] = 0;
  }
}

PATTERND_DEVICE void clear_tile(TileMemory& tile) {
  if (thread_x() == 0) tile.counts = 0;
  if (thread_x() < kNodeBitWords) tile.joined[thread_x()] = tile.touching[thread_x()] = 0;
  static_assert(kNodeBitWords <= kTileThreads, "a thread a word");
  clear_sums(tile.sums);
}

// The words around a thread's, as far as they are of the tile.
PATTERND_DEVICE Corner corner_of(const TileMemory& tile, u32 word) {
  const int thread = thread_x();
  const bool has_left = thread % kTileWords > 0;
  const bool has_upper = thread >= kTileWords;
  Corner c;
  c.word = word;
  c.left = has_left ? tile.words[thread - 1] : 0;
  c.upper = has_upper ? tile.words[thread - kTileWords] : 0;
  c.upper_left = has_left && has_upper ? tile.words[thread - kTileWords - 1] : 0;
  return c;
}

constexpr u32 kNodesToUpper = kTileWords * kTileNodeStride;

// Unions that are left once each run has its first parent.
struct Touches {
  u32 upper;  // with the word above, as touches_of
  bool left;
};

PATTERND_DEVICE Touches plant(const TileForest& forest, const Corner& c, u32 node, bool eight) {
  Touches rest{touches_of(c.word, c.upper, eight), touches_left(c)};
  const u32 upper_starts = starts_of(c.upper);
  for (u32 starts = starts_of(c.word); starts != 0;) {
    const u32 start = starts & (0U - starts);
    starts ^= start;
    // From this run's start to before the next one's.
    const u32 touches = rest.upper & ((starts & (0U - starts)) - 1) & (0U - start);
    const u32 own = node + static_cast<u32>(highest_bit(start)) / 2;
    u32 parent = own;
    if (touches != 0) {
      const int bit = lowest_bit(touches);
      rest.upper ^= 1U << bit;
      parent = node - kNodesToUpper + run_at(upper_starts, bit);
    } else if (start == 1 && rest.left) {
      rest.left = false;
      parent = node - kTileNodeStride + last_run(c.left);
    }
    forest.set_parent(own, parent);
  }
  return rest;
}

// Halves the ways to the roots, again and again: a run hangs from the run above it, so that ways
// are as long as components are high.
PATTERND_DEVICE void shorten(const TileForest& forest, u32 node, u32 word) {
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    for (u32 starts = starts_of(word); starts != 0; starts &= starts - 1) {
      const u32 own = node + static_cast<u32>(highest_bit(starts & (0U - starts))) / 2;
      forest.set_parent(own, forest.parent(forest.parent(own)));
    }
  }
}

// The one touch of the word's left or lower left corner, if any, that has not planted a run.
PATTERND_DEVICE bool corner_pair(const Corner& c, bool left, bool eight, u32 node, u32& a, u32& b) {
  const u32 left_node = node - kTileNodeStride;
  if (left) {
    a = node;
    b = left_node + last_run(c.left);
  } else if (eight && touches_upper_left(c)) {
    a = node;
    b = left_node - kNodesToUpper + last_run(c.upper_left);
  } else if (eight && left_touches_upper(c)) {
    a = left_node + last_run(c.left);
    b = node - kNodesToUpper;
  } else {
    return false;
  }
  return true;
}

PATTERND_DEVICE void unite_rest(const TileForest& forest, const Corner& c, Touches rest, u32 node,
                                bool eight) {
  const u32 upper = node - kNodesToUpper;
  const u32 starts = starts_of(c.word);
  const u32 upper_starts = starts_of(c.upper);
  u32 a = 0;
  u32 b = 0;
  bool more = corner_pair(c, rest.left, eight, node, a, b);
  while (more || rest.upper != 0) {
    if (!more) {
      const int bit = lowest_bit(rest.upper);
      rest.upper &= rest.upper - 1;
      a = node + run_at(starts, bit);
      b = upper + run_at(upper_starts, bit);
    }
    more = false;
    unite(forest, a, b);
  }
}

// The roots of a word's runs, for the kernels behind; what is no run's is of no meaning.
PATTERND_DEVICE void store_roots(const ComponentsParameters& p, const TileForest& forest,
                                 const TileWord& w) {
  if (!w.inside) return;
  u32 pairs[kNodesPerWord / 2];
#pragma unroll
  for (int i = 0; i < kNodesPerWord / 2; ++i) {
    const u32 node = w.node + static_cast<u32>(2 * i);
    pairs[i] = (forest.parent(node) & 0xFFFF) | forest.parent(node + 1) << 16;
  }
  Words4* const to = global<Words4>(p.local) + 2 * static_cast<i64>(w.at);
  to[0] = {pairs[0], pairs[1], pairs[2], pairs[3]};
  to[1] = {pairs[4], pairs[5], pairs[6], pairs[7]};
}

// Makes each run of the word point to its root; returns which are roots. Nobody else writes to a
// run here, so that it stays so.
PATTERND_DEVICE u32 flatten(const ComponentsParameters& p, TileMemory& tile,
                            const TileForest& forest, const TileWord& w, u32 word) {
  u32* const parent = global<u32>(p.parent);
  u32 roots = 0;
  for (u32 starts = starts_of(word); starts != 0; starts &= starts - 1) {
    const u32 run = static_cast<u32>(lowest_bit(starts)) / 2;
    u32 root = forest.parent(w.node + run);
    if (root == w.node + run) {
      const u32 everywhere = static_cast<u32>(w.at) * kNodesPerWord + run;
      roots |= 1U << run;
      parent[everywhere] = everywhere;
      continue;
    }
    for (u32 next = forest.parent(root); next != root; next = forest.parent(root)) root = next;
    forest.set_parent(w.node + run, root);
    if ((load_fresh(tile.joined + root / 32) >> root % 32 & 1) == 0)
      set_bit_of_node(tile.joined, root);
  }
  store_roots(p, forest, w);
  return roots;
}

// ---- lists

// Of a thread: its word's roots, those that other runs have joined, and where both begin among the
// tile's.
struct Roots {
  u32 all;
  u32 joined;
  u32 first_joined;
  u32 first_single;
};

PATTERND_DEVICE Roots number_roots(TileMemory& tile, const TileForest& forest, u32 node, u32 all) {
  Roots r;
  r.all = all;
  r.joined = bits_of_nodes(tile.joined, node) & all;
  const u32 own =
      static_cast<u32>(population(r.joined)) << 16 | static_cast<u32>(population(all & ~r.joined));
  const u32 up_to_own = warp_sum_up_to(own);
  u32 before = 0;
  if (thread_x() % kWarpSize == kWarpSize - 1) before = atomic_sum(&tile.counts, up_to_own);
  before = lane_value(before, kWarpSize - 1) + up_to_own - own;
  r.first_joined = before >> 16;
  r.first_single = before & 0xFFFF;
  u32 number = r.first_joined;
  for (u32 rest = r.joined; rest != 0; rest &= rest - 1, ++number)
    forest.set_parent(node + static_cast<u32>(lowest_bit(rest)), kNumbered | number);
  return r;
}

PATTERND_DEVICE void list_component(const ComponentsParameters& p, u32 place,
                                    const TileComponent& c) {
  if (place < static_cast<u32>(p.capacity)) global<TileComponent>(p.tiles)[place] = c;
}

// ---- sums

// A run, or several of one row.
struct RunSums {
  u32 area, sum_x, sum_xx, sum_grey, left_from_end, right, peak;
};

// Of the first n whole numbers' squares, 0² + … + (n − 1)².
PATTERND_DEVICE u32 squares_before(u32 n) { return n * (n - 1) * (2 * n - 1) / 6; }

PATTERND_DEVICE RunSums sums_of_run(const ComponentsParameters& p, const TileMemory& tile,
                                    const TileWord& w, u32 word, int bit, int run) {
  RunSums s;
  const int end = run_end(word, bit);
  const u32 first = w.tile_x + static_cast<u32>(bit);
  const u32 last = w.tile_x + static_cast<u32>(end);
  s.area = last - first + 1;
  s.sum_x = (first + last) * s.area / 2;
  s.sum_xx = squares_before(last + 1) - squares_before(first);
  s.left_from_end = kTileColumns - 1 - first;
  s.right = last;
  const u32 row = w.tile_y * kTileColumns;
  if (p.deep == 0) {
    const u32 grey = tile.grey[run * kTileThreads + thread_x()];
    const u32 x = 31 - (grey & 31);
    s.sum_grey = grey >> 13;
    s.peak = (grey >> 5 & 0xFF) << 13 | (8191 - (row + w.tile_x + x));
    return s;
  }
  s.sum_grey = s.peak = 0;
  for (int x = bit; x <= end; ++x) {
    const u32 value = reinterpret_cast<const u16*>(w.pixels)[x];
    const u32 place = value << 13 | (8191 - (row + w.tile_x + static_cast<u32>(x)));
    s.sum_grey += value;
    s.peak = place > s.peak ? place : s.peak;
  }
  return s;
}

PATTERND_DEVICE void add_run(RunSums& to, const RunSums& s) {
  to.area += s.area;
  to.sum_x += s.sum_x;
  to.sum_xx += s.sum_xx;
  to.sum_grey += s.sum_grey;
  to.left_from_end = s.left_from_end > to.left_from_end ? s.left_from_end : to.left_from_end;
  to.right = s.right > to.right ? s.right : to.right;
  to.peak = s.peak > to.peak ? s.peak : to.peak;
}

PATTERND_DEVICE void add_to_sums(TileSums& sums, u32 at, const RunSums& s, u32 y) {
  atomic_sum(&sums.area_sum_y[at], s.area << 18 | s.area * y);
  atomic_sum(&sums.sum_x[at], s.sum_x);
  atomic_sum(&sums.sum_xx[at], s.sum_xx);
  atomic_sum(&sums.sum_yy[at], s.area * y * y);
  atomic_sum(&sums.sum_xy[at], s.sum_x * y);
  atomic_sum(&sums.sum_grey[at], s.sum_grey);
  atomic_maximum(&sums.left_from_end[at], s.left_from_end);
  atomic_maximum(&sums.right[at], s.right);
  atomic_maximum(&sums.bottom[at], y);
  atomic_maximum(&sums.peak[at], s.peak);
}

// What the lanes of a warp have of one component.
PATTERND_DEVICE void add_warp_to_sums(TileSums& sums, u32 at, const RunSums& s, u32 y) {
  const u32 area_sum_y = warp_total(s.area << 18 | s.area * y);
  const u32 sum_x = warp_total(s.sum_x);
  const u32 sum_xx = warp_total(s.sum_xx);
  const u32 sum_yy = warp_total(s.area * y * y);
  const u32 sum_xy = warp_total(s.sum_x * y);
  const u32 sum_grey = warp_total(s.sum_grey);
  const u32 left_from_end = warp_maximum(s.left_from_end);
  const u32 right = warp_maximum(s.right);
  const u32 bottom = warp_maximum(s.area != 0 ? y : 0);
  const u32 peak = warp_maximum(s.peak);
  if (thread_x() % kWarpSize != 0) return;
  atomic_sum(&sums.area_sum_y[at], area_sum_y);
  atomic_sum(&sums.sum_x[at], sum_x);
  atomic_sum(&sums.sum_xx[at], sum_xx);
  atomic_sum(&sums.sum_yy[at], sum_yy);
  atomic_sum(&sums.sum_xy[at], sum_xy);
  atomic_sum(&sums.sum_grey[at], sum_grey);
  atomic_maximum(&sums.left_from_end[at], left_from_end);
  atomic_maximum(&sums.right[at], right);
  atomic_maximum(&sums.bottom[at], bottom);
  atomic_maximum(&sums.peak[at], peak);
}

// The number of a run's component of several, less `first`; kTileSums and more: not one to be
// summed up now.
PATTERND_DEVICE u32 number_of(const TileForest& forest, u32 node, u32 first) {
  u32 number = forest.parent(node);
  if ((number & kNumbered) == 0) number = forest.parent(number);
  return (number & ~kNumbered) - first;
}

// Which component most of the warp's words start with, if several do; else kTileSums. `starts`: of
// the runs of components of several.
PATTERND_DEVICE u32 main_number(const TileForest& forest, u32 node, u32 starts, u32 first) {
  u32 own = kTileSums;
  if (starts != 0) own = number_of(forest, node + static_cast<u32>(lowest_bit(starts)) / 2, first);
  u32 chosen = kTileSums;
  int most = 1;
#pragma unroll
  for (u32 lane = 2; lane < kWarpSize; lane += 9) {
    const u32 number = lane_value(own, lane);
    const int lanes = population(warp_ballot(own == number && number < kTileSums));
    if (lanes > most) {
      most = lanes;
      chosen = number;
    }
  }
  return chosen;
}

PATTERND_DEVICE int runs_before(u32 word, int bit) {
  return population(starts_of(word) & ((1U << bit) - 1));
}

// Adds the runs of the thread's word to the sums of components `first` to `first` + kTileSums − 1.
PATTERND_DEVICE void sum_up(const ComponentsParameters& p, TileMemory& tile,
                            const TileForest& forest, const TileWord& w, const Roots& roots,
                            u32 word, u32 first) {
  u32 starts = starts_of(word) & ~places_of(roots.all & ~roots.joined);
  const u32 main = main_number(forest, w.node, starts, first);
  RunSums of_main{};
  for (; starts != 0; starts &= starts - 1) {
    const int bit = lowest_bit(starts);
    const u32 place = static_cast<u32>(bit) / 2;
    const u32 number = number_of(forest, w.node + place, first);
    if (number >= kTileSums) continue;
    if (roots.all >> place & 1) tile.sums.node[number] = w.node + place;
    const RunSums s = sums_of_run(p, tile, w, word, bit, runs_before(word, bit));
    if (number == main)
      add_run(of_main, s);
    else
      add_to_sums(tile.sums, number, s, w.tile_y);
  }
  block_barrier();  // lanes that the loop has parted are together again, in the universal image too
  if (main < kTileSums) add_warp_to_sums(tile.sums, main, of_main, w.tile_y);
}

PATTERND_DEVICE void list_sums(const ComponentsParameters& p, TileMemory& tile, u32 first,
                               u32 count) {
  const TileSums& sums = tile.sums;
  for (u32 i = static_cast<u32>(thread_x()); i < count; i += kTileThreads) {
    const u32 node = sums.node[i];
    TileComponent c;
    c.node = node_in_picture(p, block_x() * kTileWords, block_y() * kTileRows, node);
    c.area = sums.area_sum_y[i] >> 18;
    c.sum_x = sums.sum_x[i];
    c.sum_y = sums.area_sum_y[i] & 0x3FFFF;
    c.sum_xx = sums.sum_xx[i];
    c.sum_yy = sums.sum_yy[i];
    c.sum_xy = sums.sum_xy[i];
    c.sum_grey = sums.sum_grey[i];
    c.left_from_end = sums.left_from_end[i];
    c.right = sums.right[i];
    c.bottom = sums.bottom[i];
    c.peak = sums.peak[i];
    list_component(p, tile.first + first + i, c);
    if (touches_edge(c, node / kNodesToUpper)) set_bit_of_node(tile.touching, node);
  }
}

// Components of one run; returns which of them touch the tile's edge.
PATTERND_DEVICE u32 list_singles(const ComponentsParameters& p, const TileMemory& tile,
                                 const TileWord& w, const Roots& roots, u32 word, u32 place) {
  u32 touching = 0;
  for (u32 starts = starts_of(word) & places_of(roots.all & ~roots.joined); starts != 0;
       starts &= starts - 1) {
    const int bit = lowest_bit(starts);
    const u32 node = static_cast<u32>(bit) / 2;
    const RunSums s = sums_of_run(p, tile, w, word, bit, runs_before(word, bit));
    TileComponent c;
    c.node = static_cast<u32>(w.at) * kNodesPerWord + node;
    c.area = s.area;
    c.sum_x = s.sum_x;
    c.sum_y = s.area * w.tile_y;
    c.sum_xx = s.sum_xx;
    c.sum_yy = s.area * w.tile_y * w.tile_y;
    c.sum_xy = s.sum_x * w.tile_y;
    c.sum_grey = s.sum_grey;
    c.left_from_end = s.left_from_end;
    c.right = s.right;
    c.bottom = w.tile_y;
    c.peak = s.peak;
    list_component(p, place++, c);
    if (touches_edge(c, w.tile_y)) touching |= 1U << node;
  }
  return touching;
}

PATTERND_KERNEL __launch_bounds__(kTileThreads, blocks_at_a_time(kTileThreads, 4))
    patternd_components_tiles(const ComponentsParameters p) {
  __shared__ TileMemory tile;
  const TileForest forest{tile.parents};
  const TileWord w = tile_word(p);
  const bool eight = p.eight != 0;
  clear_tile(tile);
  const u32 word = read_word(p, tile, w);
  tile.words[thread_x()] = word;
  block_barrier();
  const Corner corner = corner_of(tile, word);
  const Touches rest = plant(forest, corner, w.node, eight);
  block_barrier();
  shorten(forest, w.node, word);
  block_barrier();
  unite_rest(forest, corner, rest, w.node, eight);
  block_barrier();
  const u32 all = flatten(p, tile, forest, w, word);
  block_barrier();
  const Roots roots = number_roots(tile, forest, w.node, all);
  block_barrier();
  const u32 counts = tile.counts;
  const u32 several = counts >> 16;
  if (thread_x() == 0) tile.first = atomic_sum(global<u32>(p.listed), several + (counts & 0xFFFF));
  for (u32 first = 0; first < several; first += kTileSums) {
    if (first > 0) {
      clear_sums(tile.sums);
      block_barrier();
    }
    sum_up(p, tile, forest, w, roots, word, first);
    block_barrier();
    list_sums(p, tile, first, several - first < kTileSums ? several - first : kTileSums);
    block_barrier();
  }
  block_barrier();
  u32 touching = list_singles(p, tile, w, roots, word, tile.first + several + roots.first_single);
  touching |= bits_of_nodes(tile.touching, w.node) & all;
  if (!w.inside) return;
  global<u32>(p.roots)[w.at] = all | touching << 16;
  if (all != 0)
    atomic_sum(global<u32>(p.part_roots) + w.at / kNumberThreads,
               static_cast<u32>(population(all)));
}

}  // namespace patternd::cuda
