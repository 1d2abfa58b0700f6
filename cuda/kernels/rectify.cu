// Rectification (T1–T3, T6): backward mapped, bilinear, one pass over the output.
//
// The map from output to source is smooth. The host cuts the output into squares, evaluates the
// camera model in double precision at nine points of each and hands over two quadratic polynomials,
// so a pixel's position costs two fused multiply-adds a coordinate whatever the lens
// (rectify_plan.h says how the error is bounded). Positions are kept relative to the square, where
// a float resolves 1e-5 px, unlike absolute ones (5e-4 px at 8192).
//
// The source is read through the texture unit in gather mode: four texels an instruction, weights
// in full precision, where the unit's own interpolation has 8 bits. A warp writes 32 × 4 pixels at
// a time, four pixels a lane.

#include "cuda/kernels/pose_sampling.h"

namespace patternd::cuda {

// The bilinear value at base + offset + 0.5: the offset comes without its half pixel, so that
// rounding to nearest finds the left and the upper texel.
template <int kChannel>
PATTERND_DEVICE float sample(u64 texture, float base_x, float base_y, float x, float y) {
  const float left = nearest(x);
  const float top = nearest(y);
  const float wx = (x - left) + 0.5F;
  const float wy = (y - top) + 0.5F;
  const Gathered g = gather<kChannel>(texture, left + base_x, top + base_y);
  const float upper = fused(wx, g.right_top - g.left_top, g.left_top);
  const float lower = fused(wx, g.right_bottom - g.left_bottom, g.left_bottom);
  return fused(wy, lower - upper, upper);
}

// The polynomial of one row: the patch's, with v put in.
struct Quadratic {
  float c0, c1, c2;
};
PATTERND_DEVICE Quadratic row_of(const float* c, float v) {
  return {fused(fused(c[6], v, c[3]), v, c[0]), fused(fused(c[7], v, c[4]), v, c[1]),
          fused(fused(c[8], v, c[5]), v, c[2])};
}
PATTERND_DEVICE float value_of(const Quadratic& q, float u) {
  return fused(fused(q.c2, u, q.c1), u, q.c0);
}

// Grey levels, rounded half up. The value is a mean of levels, so it cannot leave their range.
PATTERND_DEVICE u32 to_level(float value) { return static_cast<u32>(floor_to_int(value + 0.5F)); }

// Writes `count` (4, or fewer at the right edge) values from pixel x on.
PATTERND_DEVICE void store(u8* row, int x, const float (&v)[4], int count) {
  if (count == 4) {
    *reinterpret_cast<u32*>(row + x) =
        to_level(v[0]) | to_level(v[1]) << 8 | to_level(v[2]) << 16 | to_level(v[3]) << 24;
  } else {
    for (int j = 0; j < 3; ++j)
      if (j < count) row[x + j] = static_cast<u8>(to_level(v[j]));
  }
}
PATTERND_DEVICE void store(u16* row, int x, const float (&v)[4], int count) {
  if (count == 4) {
    *reinterpret_cast<UShort4*>(row + x) = {
        static_cast<u16>(to_level(v[0])), static_cast<u16>(to_level(v[1])),
        static_cast<u16>(to_level(v[2])), static_cast<u16>(to_level(v[3]))};
  } else {
    for (int j = 0; j < 3; ++j)
      if (j < count) row[x + j] = static_cast<u16>(to_level(v[j]));
  }
}
PATTERND_DEVICE void store(float* row, int x, const float (&v)[4], int count) {
  if (count == 4) {
    *reinterpret_cast<Float4*>(row + x) = {v[0], v[1], v[2], v[3]};
  } else {
    for (int j = 0; j < 3; ++j)
      if (j < count) row[x + j] = v[j];
  }
}

// A warp takes 32 columns by rows_per_warp rows: eight lanes of four pixels side by side, four rows
// at a time.
template <class Pixel, int kChannel>
PATTERND_DEVICE void rectify(const RectifyParameters& p) {
  constexpr int kLanesAcross = 8;
  const int lane = thread_x();
  const int x = block_x() * kMaxPatchSide + 4 * (lane % kLanesAcross);
  const int y_first = (block_y() * threads_y() + thread_y()) * p.rows_per_warp;
  if (x >= p.width || y_first >= p.height) return;

  const int side = 1 << p.patch_side_log2;
  const int index = (y_first >> p.patch_side_log2) * p.patches_across + (x >> p.patch_side_log2);
  const Float4* packed = global<const Float4>(p.patches) + 6 * index;
  union {
    Float4 packed[6];
    RectifyPatch patch;
  } loaded;
#pragma unroll
  for (int i = 0; i < 6; ++i) loaded.packed[i] = load_float4(packed + i);
  const RectifyPatch& patch = loaded.patch;

  const int x_in_patch = x & (side - 1);
  const float centre = 0.5F * static_cast<float>(side - 1);
  const float u = static_cast<float>(x_in_patch) - centre;
  const int count = minimum(4, p.width - x);
  for (int r = lane / kLanesAcross; r < p.rows_per_warp; r += kWarpSize / kLanesAcross) {
    const int y = y_first + r;
    if (y >= p.height) return;
    const int y_in_patch = y & (side - 1);
    const float v = static_cast<float>(y_in_patch) - centre;
    const Quadratic row_x = row_of(patch.x, v);
    const Quadratic row_y = row_of(patch.y, v);
    u32 valid = 0xfU;
    if (patch.mask != kPatchAllValid) {
      valid = patch.mask == kPatchNoneValid
                  ? 0U
                  : global<const u32>(p.masks)[patch.mask * side + y_in_patch] >> x_in_patch;
    }
    float values[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float source_x = value_of(row_x, u + static_cast<float>(j));
      float source_y = value_of(row_y, u + static_cast<float>(j));
      if (patch.table >= 0) {
        const float* position =
            global<const float>(p.tables) +
            2 * ((static_cast<i64>(patch.table) * side + y_in_patch) * side + x_in_patch + j);
        source_x = position[0];
        source_y = position[1];
      }
      const float value =
          sample<kChannel>(p.texture, patch.base_x, patch.base_y, source_x, source_y);
      values[j] = (valid >> j & 1U) != 0U ? value * p.scale : p.border;
    }
    store(reinterpret_cast<Pixel*>(global<u8>(p.output) + static_cast<i64>(y) * p.stride_bytes), x,
          values, count);
  }
}

PATTERND_KERNEL __launch_bounds__(256) patternd_rectify_gray8(const RectifyParameters p) {
  rectify<u8, 0>(p);
}
// Luma in the second of two channels (UYVY).
PATTERND_KERNEL __launch_bounds__(256) patternd_rectify_gray8_second(const RectifyParameters p) {
  rectify<u8, 1>(p);
}
PATTERND_KERNEL __launch_bounds__(256) patternd_rectify_gray16(const RectifyParameters p) {
  rectify<u16, 0>(p);
}
PATTERND_KERNEL __launch_bounds__(256) patternd_rectify_gray_f32(const RectifyParameters p) {
  rectify<float, 0>(p);
}

}  // namespace patternd::cuda
