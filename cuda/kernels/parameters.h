// The kernels' parameters: one plain struct a kernel, the same bytes on the host and in every
// device image. No pointers and no size_t: addresses are 64-bit fields, in 32-bit images too, so
// that one layout serves all. Sizes are checked on both sides by the static_asserts here.
#pragma once

namespace patternd::cuda {

using Address = unsigned long long;

inline constexpr int kWarpSize = 32;  // compared with the device's when it is opened

// ---- rectify ------------------------------------------------------------------------------------
// A square of output pixels with one map: source x = base_x − 1/2 + Σ x[3 j + i] u^i v^j, y
// likewise, where u, v count from the square's middle. That half pixel makes rounding to the
// nearest whole number find the texel to the left (rectify.cu).
struct RectifyPatch {
  float x[9];
  float y[9];
  float base_x;  // whole numbers
  float base_y;
  int mask;   // kPatchAllValid, kPatchNoneValid, or index of this patch's rows of valid bits
  int table;  // −1, or index of this patch's side² explicit positions (x, y less the bases)
  int unused[2];
};
static_assert(sizeof(RectifyPatch) == 96);
inline constexpr int kPatchAllValid = -1;
inline constexpr int kPatchNoneValid = -2;
inline constexpr int kMaxPatchSide = 32;

struct RectifyParameters {
  Address texture;  // the source, point mode, unnormalised coordinates, clamped
  Address patches;  // RectifyPatch[patches_down][patches_across]
  Address masks;    // u32[][side]: bit x of row y: output pixel has a source
  Address tables;   // float2[][side][side]
  Address output;
  int stride_bytes;
  int width;
  int height;
  int patch_side_log2;  // 3, 4, 5
  int patches_across;
  int rows_per_warp;  // a multiple of 4, at most the patch's side
  float scale;        // texture value -> grey level
  float border;       // grey level
};
static_assert(sizeof(RectifyParameters) == 72);

// ---- pyramid ------------------------------------------------------------------------------------
struct PyramidLevel {
  Address address;
  int stride_bytes;
  int width;
  int height;
  int unused;
};
inline constexpr int kPyramidTile = 64;            // pixels of the first level that a block takes
inline constexpr int kPyramidThreads = 256;        // a block
inline constexpr int kPyramidLevelsPerLaunch = 6;  // that a tile yields
struct PyramidParameters {
  PyramidLevel levels[kPyramidLevelsPerLaunch + 1];  // [0] is read, the others are written
  int level_count;                                   // the one read included
  int unused;
};
static_assert(sizeof(PyramidParameters) == 176);

}  // namespace patternd::cuda
