// The thesis's variants of rectification (T6): a thread a pixel, the camera model worked out for
// each.

#include "cuda/kernels/device.h"
#include "cuda/study/study_parameters.h"

namespace patternd::cuda {

// Output pixel -> source pixel by the camera model in single precision, as the thesis has it.
PATTERND_DEVICE void source_of(const StudyCamera& c, float u, float v, float& x, float& y) {
  const float w = c.homography[6] * u + c.homography[7] * v + c.homography[8];
  const float xn = (c.homography[0] * u + c.homography[1] * v + c.homography[2]) / w;
  const float yn = (c.homography[3] * u + c.homography[4] * v + c.homography[5]) / w;
  const float r2 = xn * xn + yn * yn;
  const float factor = 1.0F + r2 * (c.k1 + r2 * c.k2);
  x = c.fx * (xn * factor) + c.cx;
  y = c.fy * (yn * factor) + c.cy;
}

PATTERND_DEVICE float bilinear_global(const StudyParameters& p, float x, float y) {
  const int left = minimum(floor_to_int(x), p.width - 2);
  const int top = minimum(floor_to_int(y), p.height - 2);
  const float wx = x - static_cast<float>(left);
  const float wy = y - static_cast<float>(top);
  const float* row = reinterpret_cast<const float*>(global<const u8>(p.input) +
                                                    static_cast<i64>(top) * p.input_stride) +
                     left;
  const float* below =
      reinterpret_cast<const float*>(reinterpret_cast<const u8*>(row) + p.input_stride);
  const float upper = fused(wx, row[1] - row[0], row[0]);
  const float lower = fused(wx, below[1] - below[0], below[0]);
  return fused(wy, lower - upper, upper);
}

template <bool kTexture>
PATTERND_DEVICE void rectify_simply(const StudyParameters& p, const StudyCamera& camera) {
  const int u = block_x() * threads_x() + thread_x();
  const int v = block_y() * threads_y() + thread_y();
  if (u >= p.width || v >= p.height) return;
  float x;
  float y;
  source_of(camera, static_cast<float>(u), static_cast<float>(v), x, y);
  float value = 0;
  if (x >= 0 && y >= 0 && x <= static_cast<float>(p.width - 1) &&
      y <= static_cast<float>(p.height - 1))
    value = kTexture ? fetch(p.texture, x + 0.5F, y + 0.5F) : bilinear_global(p, x, y);
  reinterpret_cast<float*>(global<u8>(p.output) + static_cast<i64>(v) * p.stride_bytes)[u] = value;
}

// T6: naive (parameters from global memory), parameters in the constant bank, input by texture.
PATTERND_KERNEL __launch_bounds__(1024) patternd_study_rectify_naive(const StudyParameters p) {
  rectify_simply<false>(p, *global<const StudyCamera>(p.camera_address));
}
PATTERND_KERNEL __launch_bounds__(1024) patternd_study_rectify_constant(const StudyParameters p) {
  rectify_simply<false>(p, p.camera);
}
PATTERND_KERNEL __launch_bounds__(1024) patternd_study_rectify_texture(const StudyParameters p) {
  rectify_simply<true>(p, p.camera);
}

// The map of the same camera as two pictures.
PATTERND_KERNEL __launch_bounds__(256) patternd_study_map(const StudyMapParameters p) {
  const int u = block_x() * threads_x() + thread_x();
  const int v = block_y() * threads_y() + thread_y();
  if (u >= p.width || v >= p.height) return;
  float x;
  float y;
  source_of(p.camera, static_cast<float>(u), static_cast<float>(v), x, y);
  const i64 row = static_cast<i64>(v) * p.stride_bytes;
  reinterpret_cast<float*>(global<u8>(p.map_x) + row)[u] = x;
  reinterpret_cast<float*>(global<u8>(p.map_y) + row)[u] = y;
}

}  // namespace patternd::cuda
