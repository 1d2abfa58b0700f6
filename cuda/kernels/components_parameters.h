// What the kernels of connected components share with the host (as parameters.h for the other
// stages).
#pragma once

#include "cuda/kernels/parameters.h"

namespace patternd::cuda {

// A block of the first kernel labels a tile; a thread has a word, 32 pixels of one row.
inline constexpr int kTileWords = 2;
inline constexpr int kTileRows = 32;
inline constexpr int kTileThreads = kTileWords * kTileRows;
// Runs of foreground start at least two pixels apart, so that half the position names a run.
inline constexpr int kNodesPerWord = 16;
inline constexpr int kScanThreads = 256;
inline constexpr int kScanWordsPerThread = 4;
inline constexpr int kScanWords = kScanThreads * kScanWordsPerThread;  // a block
inline constexpr int kMergeThreads = 256;
inline constexpr int kWriteThreads = 128;
// In `parent`, once a root has its final label: this bit and the label.
inline constexpr unsigned kFinalLabel = 0x80000000U;

// A component of one tile; sums relative to the tile's first pixel.
struct TileComponent {
  unsigned node;  // of its first run
  unsigned area;
  unsigned sum_x;
  unsigned sum_y;
  unsigned sum_xx;
  unsigned sum_yy;
  unsigned sum_xy;
  unsigned sum_grey;
  unsigned left_from_end;  // 63 − left
  unsigned right;
  unsigned bottom;
  unsigned peak;  // value << 11 | 2047 − (64·y + x)
};
static_assert(sizeof(TileComponent) == 48);

// A component of the picture: components[label − 1]. All zeros is the empty one; sides are kept so
// that each is a maximum.
struct DeviceComponent {
  unsigned long long area;
  unsigned long long sum_x;
  unsigned long long sum_y;
  unsigned long long sum_xx;
  unsigned long long sum_yy;
  unsigned long long sum_xy;
  unsigned long long sum_grey;
  unsigned long long peak;  // value << 32 | not (y << 16 | x)
  unsigned left_from_end;   // 65535 − left
  unsigned right;
  unsigned top_from_end;  // 65535 − top
  unsigned bottom;
};
static_assert(sizeof(DeviceComponent) == 80);

// Before the components in memory, so that one copy brings both.
struct ComponentCounts {
  unsigned tile_components;  // as many as there were, whether they fitted or not
  unsigned components;
  unsigned unused[2];
};
static_assert(sizeof(ComponentCounts) == 16);

struct ComponentsParameters {
  Address picture;       // grey, 8 or 16 bit
  Address bits;          // u32[height][words]: the foreground
  Address parent;        // u32[height · words · kNodesPerWord]
  Address roots;         // u32[height · words]: bit i: node i of the word is a root
  Address tiles;         // TileComponent[capacity]
  Address counts;        // ComponentCounts
  Address block_counts;  // u32[blocks of the scan]
  Address components;    // DeviceComponent[capacity]
  Address labels;        // i32
  int picture_stride_bytes;
  int labels_stride_bytes;
  int width;
  int height;
  int words;  // of a row
  int capacity;
  int low;  // foreground is low <= value <= high
  int high;
  int eight;  // connectivity 8, else 4
  int deep;   // 16 bit
};
static_assert(sizeof(ComponentsParameters) == 112);

// The report's programs B, C, D.
struct PropagationParameters {
  Address picture;  // grey, 8 bit
  Address texture;  // the same, for D
  Address labels;   // u32[height][width]: 0 background, else 1 + a pixel's place in scan order
  Address changed;  // u32
  int picture_stride_bytes;
  int width;
  int height;
  int low;
  int high;
  int similarity;  // < 0: foreground is low <= value <= high; else neighbours connect that differ
                   // by this at most
  int eight;
  int unused;
};
static_assert(sizeof(PropagationParameters) == 64);

}  // namespace patternd::cuda
