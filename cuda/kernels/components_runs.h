// Runs of foreground as bits, and the union-find among them.
//
// A node of the union-find is a run of foreground within a word of 32 pixels. Nodes are numbered in
// scan order and the smaller one becomes the parent, so a component's root is its first run and
// roots in rising order are labels in scan order. A union is an atomic minimum on the parent of
// what was a root, as Komura's and Playne and Hawick's (IEEE TPDS 29(6), 2018); where it no longer
// was, the loop goes on with what it found. Ways are shortened while they are walked, as in
// Jaiganesh and Burtscher's ECL-CC (HPDC 2018): a node that is no root may be given any of its
// ancestors as parent by a plain store, because a union that meets it goes on until both sides of
// what it replaced are joined.
#pragma once

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/components_parameters.h"
#include "cuda/kernels/device.h"

namespace patternd::cuda {

struct alignas(16) Words4 {
  u32 x, y, z, w;
};

PATTERND_DEVICE u32 up_to(int bit) { return ~0U >> (31 - bit); }
PATTERND_DEVICE u32 starts_of(u32 word) { return word & ~(word << 1); }
// The number, within its word, of the run that starts last up to `bit`.
PATTERND_DEVICE u32 run_at(u32 starts, int bit) {
  return static_cast<u32>(highest_bit(starts & up_to(bit))) / 2;
}
PATTERND_DEVICE u32 last_run(u32 word) { return run_at(starts_of(word), 31); }
// The last pixel of the run that starts at `bit`.
PATTERND_DEVICE int run_end(u32 word, int bit) {
  const u32 gap = ~word & ~up_to(bit);
  return gap != 0 ? lowest_bit(gap) - 1 : 31;
}

// Where the runs of a word touch those of the word above: where pixels (connectivity 4) or the
// corners between pixels (8) meet, the first common one of each pair of runs.
PATTERND_DEVICE u32 touches_of(u32 word, u32 upper, bool eight) {
  const u32 cover = eight ? word | word << 1 : word;
  const u32 upper_cover = eight ? upper | upper << 1 : upper;
  return (starts_of(word) & upper_cover) | (starts_of(upper) & cover);
}

// Where four words meet, what touches across the corner alone: with a third pixel set there, other
// touches do it.
struct Corner {
  u32 word, left, upper, upper_left;
};
PATTERND_DEVICE bool touches_left(const Corner& c) { return (c.word & c.left >> 31) != 0; }
PATTERND_DEVICE bool touches_upper_left(const Corner& c) {
  return (c.word & c.upper_left >> 31 & ~c.upper & ~(c.left >> 31) & 1) != 0;
}
PATTERND_DEVICE bool left_touches_upper(const Corner& c) {
  return (c.left >> 31 & c.upper & ~c.word & ~(c.upper_left >> 31) & 1) != 0;
}

// Whether another tile's component may touch a tile's; `top` is its first row in the tile.
PATTERND_DEVICE bool touches_edge(const TileComponent& c, u32 top) {
  return c.left_from_end == kTileColumns - 1 || c.right == kTileColumns - 1 || top == 0 ||
         c.bottom == kTileRows - 1;
}

// A node of the tile that has word (x, y), as a node of the picture.
PATTERND_DEVICE u32 node_in_picture(const ComponentsParameters& p, int x, int y, u32 tile_node) {
  const int word = static_cast<int>(tile_node / kTileNodeStride);
  const int at = (y / kTileRows * kTileRows + word / kTileWords) * p.words +
                 x / kTileWords * kTileWords + word % kTileWords;
  return static_cast<u32>(at * kNodesPerWord) + tile_node % kTileNodeStride;
}

// Joins two components of a forest: parent(node), set_parent(node, parent), and lower_parent(node,
// parent), which returns what was there. Returns the root that ceased to be one, or kNoNode where
// both were of one component. Climbs on the side whose parent is larger, as Rem's algorithm
// (Patwary, Blair and Manne, SEA 2010) does, and so ends where the ways meet: most do below the
// root, which all threads would have to ask for else.
constexpr u32 kNoNode = 0xFFFFFFFFU;
template <class Forest>
PATTERND_DEVICE u32 unite(const Forest& forest, u32 a, u32 b) {
  u32 up_a = forest.parent(a);
  u32 up_b = forest.parent(b);
  while (up_a != up_b) {
    if (up_a < up_b) {
      const u32 node = a;
      const u32 up = up_a;
      a = b;
      up_a = up_b;
      b = node;
      up_b = up;
    }
    if (up_a != a) {
      const u32 next = forest.parent(up_a);
      if (next != up_a) forest.set_parent(a, next);
      a = up_a;
      up_a = next;
      continue;
    }
    const u32 old = forest.lower_parent(a, up_b);
    if (old == a) return a;
    a = old;
    up_a = forest.parent(a);
  }
  return kNoNode;
}

// The forest of a picture, in global memory.
struct PictureForest {
  u32* parents;
  __device__ u32 parent(u32 node) const { return load_fresh(parents + node); }
  __device__ void set_parent(u32 node, u32 parent) const { store_through(parents + node, parent); }
  __device__ u32 lower_parent(u32 node, u32 parent) const {
    return atomic_minimum(parents + node, parent);
  }
};

}  // namespace patternd::cuda
