// Rectification (T1–T3, T6): backward mapped, bilinear, one pass over the output.
//
// The map from output to source is smooth. The host cuts the output into squares, evaluates the
// camera model in double precision at nine points of each and hands over two quadratic polynomials,
// so a pixel's position costs two fused multiply-adds a coordinate whatever the lens
// (rectify_plan.h says how the error is bounded). Positions are kept relative to the square, where
// a float resolves 1e-5 px, unlike absolute ones (5e-4 px at 8192).
//
// The source is read through the texture unit in gather mode: four texels an instruction, weights
// in full precision, where the unit's own interpolation has 8 bits. A lane takes a column: then the
// lanes of a lookup lie side by side in the source, which the unit serves faster than any other
// arrangement, whichever way the plane is turned (squares of lanes, and four pixels side by side a
// lane, were measured beside it); and what depends on the column is worked out once.
//
// The unit takes two clocks for a texel of 32 bits. Since Volta plain loads go through the same
// cache beside it, lines of 128 bytes at a time, so floats are read by four loads a pixel where a
// patch's rows touch few lines (the plan says where). Before, plain loads come from the
// second-level cache or through the texture unit itself: nothing would be gained.

#include "cuda/kernels/pose_sampling.h"

namespace patternd::cuda {

// The bilinear value between four pixels.
PATTERND_DEVICE float between(const Gathered& g, float wx, float wy) {
  const float upper = fused(wx, g.right_top - g.left_top, g.left_top);
  const float lower = fused(wx, g.right_bottom - g.left_bottom, g.left_bottom);
  return fused(wy, lower - upper, upper);
}

// The value at base + offset + 0.5: the offset comes without its half pixel, so that rounding to
// nearest finds the left and the upper texel.
template <int kChannel>
PATTERND_DEVICE float sample(u64 texture, float base_x, float base_y, float x, float y) {
  const float left = nearest(x);
  const float top = nearest(y);
  const float wx = (x - left) + 0.5F;
  const float wy = (y - top) + 0.5F;
  return between(gather<kChannel>(texture, left + base_x, top + base_y), wx, wy);
}

#if PATTERND_PLAIN_LOADS
// A source of floats by plain loads.
struct PlainSource {
  // Adding kRounder, rounded down, leaves a float whose bits, less kRounderBits, count texels from
  // the patch's base; what is less is taken off here.
  u64 base;
  int stride;

  // The value at the patch's base + offset.
  __device__ float at(float x, float y) const {
    constexpr int kBytes = sizeof(float);
    const float left = add_down(x, kRounder);
    const float top = add_down(y, kRounder);
    const float wx = x - (left - kRounder);
    const float wy = y - (top - kRounder);
    const u64 upper = add_product(add_product(base, bits_of(top), stride), bits_of(left), kBytes);
    const u64 lower = upper + static_cast<u64>(static_cast<i64>(stride));
    return between({load_float<0>(lower), load_float<kBytes>(lower), load_float<kBytes>(upper),
                    load_float<0>(upper)},
                   wx, wy);
  }
};
#endif

// The polynomial of one column: the patch's, with u put in.
struct Quadratic {
  float c0, c1, c2;
};
PATTERND_DEVICE Quadratic column_of(const float* c, float u) {
  return {fused(fused(c[2], u, c[1]), u, c[0]), fused(fused(c[5], u, c[4]), u, c[3]),
          fused(fused(c[8], u, c[7]), u, c[6])};
}
PATTERND_DEVICE float value_of(const Quadratic& q, float v) {
  return fused(fused(q.c2, v, q.c1), v, q.c0);
}

// Grey levels, rounded half up. The value is a mean of levels, so it cannot leave their range.
PATTERND_DEVICE void store(u8* pixel, float value) {
  *pixel = static_cast<u8>(floor_to_int(value + 0.5F));
}
PATTERND_DEVICE void store(u16* pixel, float value) {
  *pixel = static_cast<u16>(floor_to_int(value + 0.5F));
}
PATTERND_DEVICE void store(float* pixel, float value) { *pixel = value; }

// What a lane has of its patch.
struct RectifyColumn {
  Quadratic x, y;
  float base_x, base_y;
  float first_v;  // of the first row
  int mask;
  int table;
  int near;
  int x_in_patch;
  int y_in_patch;  // of the first row
};

PATTERND_DEVICE RectifyColumn column_at(const RectifyParameters& p, int x, int y) {
  const int side = 1 << p.patch_side_log2;
  const int index = (y >> p.patch_side_log2) * p.patches_across + (x >> p.patch_side_log2);
  const Float4* packed = global<const Float4>(p.patches) + 6 * index;
  union {
    Float4 packed[6];
    RectifyPatch patch;
  } loaded;
#pragma unroll
  for (int i = 0; i < 6; ++i) loaded.packed[i] = load_float4(packed + i);
  const RectifyPatch& patch = loaded.patch;
  RectifyColumn column;
  column.x_in_patch = x & (side - 1);
  column.y_in_patch = y & (side - 1);
  const float centre = 0.5F * static_cast<float>(side - 1);
  const float u = static_cast<float>(column.x_in_patch) - centre;
  column.x = column_of(patch.x, u);
  column.y = column_of(patch.y, u);
  column.base_x = patch.base_x;
  column.base_y = patch.base_y;
  column.first_v = static_cast<float>(column.y_in_patch) - centre;
  column.mask = patch.mask;
  column.table = patch.table;
  column.near = patch.near;
  return column;
}

#if PATTERND_PLAIN_LOADS
PATTERND_DEVICE PlainSource plain_source(const RectifyParameters& p, const RectifyColumn& column) {
  // The base is one to the right of its first texel, and one below.
  const int left = static_cast<int>(column.base_x) - 1 - kRounderBits;
  const int top = static_cast<int>(column.base_y) - 1 - kRounderBits;
  return {add_product(add_product(p.pixels, top, p.source_stride), left, sizeof(float)),
          p.source_stride};
}
#endif

// Row `r` of a column, counted from its first, whatever the patch.
template <int kChannel>
PATTERND_DEVICE float value_at(const RectifyParameters& p, const RectifyColumn& column, int r) {
  const int side = 1 << p.patch_side_log2;
  const int row = column.y_in_patch + r;
  if (column.mask == kPatchNoneValid) return p.border;
  if (column.mask >= 0 &&
      (global<const u32>(p.masks)[column.mask * side + row] >> column.x_in_patch & 1U) == 0U)
    return p.border;
  const float v = column.first_v + static_cast<float>(r);
  float x = value_of(column.x, v);
  float y = value_of(column.y, v);
  if (column.table >= 0) {
    const float* position =
        global<const float>(p.tables) +
        2 * ((static_cast<i64>(column.table) * side + row) * side + column.x_in_patch);
    x = position[0];
    y = position[1];
  }
  return sample<kChannel>(p.texture, column.base_x, column.base_y, x, y) * p.scale;
}

constexpr int kRowsTogether = 4;  // so that their lookups overlap

// A column that is valid throughout, of a multiple of kRowsTogether rows; sample_at(x, y) gives the
// value at the patch's base and that.
template <class Pixel, class SampleAt>
PATTERND_DEVICE void put_column(const RectifyParameters& p, const RectifyColumn& column, int rows,
                                u8* out, const SampleAt& sample_at) {
  float v = column.first_v;
#pragma unroll 1
  for (int first = 0; first < rows; first += kRowsTogether) {
    float values[kRowsTogether];
#pragma unroll
    for (int j = 0; j < kRowsTogether; ++j, v += 1.0F)
      values[j] = sample_at(value_of(column.x, v), value_of(column.y, v));
#pragma unroll
    for (int j = 0; j < kRowsTogether; ++j, out += p.stride_bytes)
      store(reinterpret_cast<Pixel*>(out), values[j]);
  }
}

// A warp takes 32 columns by rows_per_warp rows.
template <class Pixel, int kChannel>
PATTERND_DEVICE void rectify(const RectifyParameters& p) {
  const int x = block_x() * kMaxPatchSide + thread_x();
  const int y_first = (block_y() * threads_y() + thread_y()) * p.rows_per_warp;
  if (x >= p.width || y_first >= p.height) return;
  RectifyColumn column = column_at(p, x, y_first);
  const int rows = minimum(p.rows_per_warp, p.height - y_first);
  u8* out = global<u8>(p.output) + static_cast<i64>(y_first) * p.stride_bytes +
            x * static_cast<int>(sizeof(Pixel));
  if (column.mask != kPatchAllValid || column.table >= 0 || rows % kRowsTogether != 0) {
#pragma unroll 1
    for (int r = 0; r < rows; ++r, out += p.stride_bytes)
      store(reinterpret_cast<Pixel*>(out), value_at<kChannel>(p, column, r));
    return;
  }
#if PATTERND_PLAIN_LOADS
  if (sizeof(Pixel) == sizeof(float) && column.near != 0 && p.pixels != 0) {
    const PlainSource source = plain_source(p, column);
    column.x.c0 += 0.5F;
    column.y.c0 += 0.5F;
    put_column<Pixel>(p, column, rows, out, [&](float u, float v) { return source.at(u, v); });
    return;
  }
#endif
  put_column<Pixel>(p, column, rows, out, [&](float u, float v) {
    return sample<kChannel>(p.texture, column.base_x, column.base_y, u, v) * p.scale;
  });
}

PATTERND_KERNEL __launch_bounds__(128) patternd_rectify_gray8(const RectifyParameters p) {
  rectify<u8, 0>(p);
}
// Luma in the second of two channels (UYVY).
PATTERND_KERNEL __launch_bounds__(128) patternd_rectify_gray8_second(const RectifyParameters p) {
  rectify<u8, 1>(p);
}
PATTERND_KERNEL __launch_bounds__(128) patternd_rectify_gray16(const RectifyParameters p) {
  rectify<u16, 0>(p);
}
// Loads overlap the better the more warps there are; left alone, compilers take registers for fewer
// (a tenth longer on an H200).
PATTERND_KERNEL __launch_bounds__(128, PATTERND_PLAIN_LOADS ? blocks_at_a_time(128, 12) : 1)
    patternd_rectify_gray_f32(const RectifyParameters p) {
  rectify<float, 0>(p);
}

}  // namespace patternd::cuda
