// The ceilings that rectification is compared with (T18).

#include "cuda/kernels/device.h"
#include "cuda/study/study_parameters.h"

namespace patternd::cuda {

// A plain copy, 16 bytes a thread.
PATTERND_KERNEL __launch_bounds__(256) patternd_study_copy(const StudyParameters p) {
  const i64 i = static_cast<i64>(block_x()) * threads_x() + thread_x();
  if (i < p.count) global<Float4>(p.output)[i] = global<const Float4>(p.input)[i];
}

// Each output pixel fetched at its own place through the texture unit, stored 16 bytes at a time:
// the least that rectification can cost where the texture unit is the bound. grid: (x, y).
template <class Pixel, int kPixels>
PATTERND_DEVICE void fetch_identity(const StudyParameters& p) {
  const int x = (block_x() * threads_x() + thread_x()) * kPixels;
  const int y = block_y() * threads_y() + thread_y();
  if (x >= p.width || y >= p.height) return;
  union {
    Float4 whole;
    Pixel pixels[kPixels];
  } out;
#pragma unroll
  for (int i = 0; i < kPixels; ++i) {
    const float value =
        fetch(p.texture, static_cast<float>(x + i) + 0.5F, static_cast<float>(y) + 0.5F);
    out.pixels[i] = static_cast<Pixel>(value * p.scale);
  }
  *reinterpret_cast<Float4*>(global<u8>(p.output) + static_cast<i64>(y) * p.stride_bytes +
                             static_cast<i64>(x) * static_cast<int>(sizeof(Pixel))) = out.whole;
}
PATTERND_KERNEL __launch_bounds__(256) patternd_study_identity_gray8(const StudyParameters p) {
  fetch_identity<u8, 16>(p);
}
PATTERND_KERNEL __launch_bounds__(256) patternd_study_identity_gray_f32(const StudyParameters p) {
  fetch_identity<float, 4>(p);
}

// Does nothing: what a launch costs.
PATTERND_KERNEL patternd_study_nothing(const StudyParameters) {}

}  // namespace patternd::cuda
