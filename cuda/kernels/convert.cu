// Conversion of camera formats to luma, for those that no texture can stand in for: the GPU's
// version of pipeline/frame_luma.cpp, with the same integers.

#include "cuda/kernels/device.h"

namespace patternd::cuda {

// Column or row beyond the edge: the one before it (…2 1 0 1 2…), which keeps a mosaic in step.
PATTERND_DEVICE int mirrored(int at, int size) {
  if (at < 0) return minimum(1, size - 1);
  return at < size ? at : maximum(size - 2, 0);
}

PATTERND_DEVICE u32 mosaic_sample(const ConvertParameters& p, int x, int y) {
  const u8* row = global<const u8>(p.input) + static_cast<i64>(y) * p.input_stride;
  const u32 value = p.wide_output == 0 ? row[x] : reinterpret_cast<const u16*>(row)[x];
  return value & p.mask;
}

PATTERND_DEVICE u32 luma_of_mosaic(const ConvertParameters& p, int x, int y) {
  const BayerSite& w = p.sites[2 * (y & 1) + (x & 1)];
  const int left = mirrored(x - 1, p.width);
  const int right = mirrored(x + 1, p.width);
  const int above = mirrored(y - 1, p.height);
  const int below = mirrored(y + 1, p.height);
  const u32 sum = w.centre * mosaic_sample(p, x, y) +
                  w.horizontal * (mosaic_sample(p, left, y) + mosaic_sample(p, right, y)) +
                  w.vertical * (mosaic_sample(p, x, above) + mosaic_sample(p, x, below)) +
                  w.diagonal * (mosaic_sample(p, left, above) + mosaic_sample(p, right, above) +
                                mosaic_sample(p, left, below) + mosaic_sample(p, right, below));
  return ((sum << p.shift) + 512U) >> 10;
}

PATTERND_DEVICE u32 luma_at(const ConvertParameters& p, int x, int y) {
  const u8* row = global<const u8>(p.input) + static_cast<i64>(y) * p.input_stride;
  switch (p.kind) {
    case kConvertPacked:
      return row[2 * x + p.first];
    case kConvertShifted:
      return static_cast<u16>(reinterpret_cast<const u16*>(row)[x] << p.shift);
    case kConvertColour: {
      const u8* c = row + 3 * x;
      const u32 first = p.first == 0 ? 77U : 29U;
      return (first * c[0] + 150U * c[1] + (106U - first) * c[2] + 128U) >> 8;
    }
    default:
      return luma_of_mosaic(p, x, y);
  }
}

PATTERND_KERNEL __launch_bounds__(256) patternd_convert_luma(const ConvertParameters p) {
  const int x = block_x() * threads_x() + thread_x();
  const int y = block_y() * threads_y() + thread_y();
  if (x >= p.width || y >= p.height) return;
  const u32 luma = luma_at(p, x, y);
  u8* row = global<u8>(p.output) + static_cast<i64>(y) * p.output_stride;
  if (p.wide_output == 0)
    row[x] = static_cast<u8>(luma);
  else
    reinterpret_cast<u16*>(row)[x] = static_cast<u16>(luma);
}

}  // namespace patternd::cuda
