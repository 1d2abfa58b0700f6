// What the kernels of connected components share with the host (as parameters.h for the other
// stages).
#pragma once

#include "cuda/kernels/parameters.h"

namespace patternd::cuda {

// A block of the first kernel labels a tile; a thread has a word, 32 pixels of one row.
inline constexpr int kTileWords = 4;
inline constexpr int kTileRows = 64;
inline constexpr int kTileColumns = 32 * kTileWords;
inline constexpr int kTileThreads = kTileWords * kTileRows;
// Runs of foreground start at least two pixels apart, so that half the position names a run.
inline constexpr int kNodesPerWord = 16;
// In a tile's forest; one more, so that where all threads take their own nodes, each has its bank.
inline constexpr int kTileNodeStride = kNodesPerWord + 1;
inline constexpr int kTileNodes = kTileThreads * kTileNodeStride;
// Components of several runs that a tile adds up at a time: what 48 KiB have place for.
inline constexpr int kTileSums = 288;
inline constexpr int kSeamThreads = 256;
inline constexpr int kNumberThreads = 256;  // words of a part
inline constexpr int kFinishThreads = 256;
// In `parent`, once a root has its final label: this bit and the label.
inline constexpr unsigned kFinalLabel = 0x80000000U;

// A component of one tile; sums relative to the tile's first pixel.
struct alignas(16) TileComponent {
  unsigned node;  // of its first run
  unsigned area;
  unsigned sum_x;
  unsigned sum_y;
  unsigned sum_xx;
  unsigned sum_yy;
  unsigned sum_xy;
  unsigned sum_grey;
  unsigned left_from_end;  // kTileColumns − 1 − left
  unsigned right;
  unsigned bottom;
  unsigned peak;  // value << 13 | 8191 − (kTileColumns·y + x)
};
static_assert(sizeof(TileComponent) == 48);
static_assert(kTileColumns * kTileRows == 8192, "places within a tile have 13 bits");

// A component of the picture: components[label − 1]. All zeros is the empty one; sides are kept so
// that each is a maximum.
struct alignas(16) DeviceComponent {
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
  Address picture;     // grey, 8 or 16 bit
  Address range;       // int[2], low and high, where the device chose them; else 0
  Address bits;        // u32[height][words]: the foreground
  Address local;       // u16[height · words][kNodesPerWord]: the root of a run, as its tile's node
  Address parent;      // u32[height · words · kNodesPerWord], of the tiles' roots; similarity: a
                       // pixel's, u32[height · words · 32]
  Address roots;       // u32[height · words]: bit i: node i of the word is the root of a tile's
                       // component, bit 16 + i: which touches its tile's edge
  Address tiles;       // TileComponent[capacity]
  Address listed;      // u32: entries of `tiles`; zero before the first picture, and left so
  Address part_roots;  // u32[parts of kNumberThreads words]: roots of each; likewise
  Address counts;      // ComponentCounts
  Address components;  // DeviceComponent[capacity]
  Address labels;      // i32; 0: not wanted
  int picture_stride_bytes;
  int labels_stride_bytes;
  int width;
  int height;
  int words;  // of a row
  int capacity;
  int low;           // foreground is low <= value <= high
  int high;          // similarity: the largest difference
  int eight;         // connectivity 8, else 4
  int deep;          // 16 bit
  int bits_given;    // `bits` has the foreground already
  int merge_blocks;  // of the last kernel: the first ones, which merge
  int colour;        // similarity: 8-bit red, green, blue
  int unused;
};
static_assert(sizeof(ComponentsParameters) == 152);

// Foreground that takes more than a comparison: components_foreground.cu.
inline constexpr int kForegroundThreads = 256;
inline constexpr int kColumnRows = 32;  // of a block that sums up columns
struct ForegroundParameters {
  Address picture;    // grey, 8 or 16 bit
  Address histogram;  // u32[256 or 65536]; zero before the first picture, and left so
  Address range;      // int[2]: what Otsu's threshold leaves as foreground, from low to high
  Address columns;    // u32[height][width]
  Address prefix;     // u64[height][width + 1]
  Address bits;       // as ComponentsParameters
  double offset;
  int picture_stride_bytes;
  int width;
  int height;
  int words;
  int radius;
  int below;
  int deep;
  int max_value;
};
static_assert(sizeof(ForegroundParameters) == 88);

// A picture less its reference: blobs.cu.
inline constexpr int kSubtractThreads = 256;
inline constexpr int kSubtractColumns = 1024;  // of a block
struct SubtractParameters {
  Address picture;     // grey, 8 or 16 bit
  Address reference;   // where `keep` is set, the picture takes its place
  Address difference;  // max(picture − reference, 0)
  int picture_stride_bytes;
  int reference_stride_bytes;
  int difference_stride_bytes;
  int width;
  int height;
  int deep;
  int keep;
  int unused;
};
static_assert(sizeof(SubtractParameters) == 56);

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
