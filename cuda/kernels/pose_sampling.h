// Sampling the picture in a pattern's upright frame: what trace and refine share.
#pragma once

#include "cuda/kernels/device.h"
#include "cuda/kernels/turn.h"

namespace patternd::cuda {

// Where sample (i, j) lies in the picture's level: base + (x + i·ux + j·vx, y + i·uy + j·ux), the
// base in whole pixels so that floats resolve the rest to 1e-5.
struct SamplingGrid {
  float x, y, ux, uy, vx;
  float base_x, base_y;
  int inside;  // every sample has its four sources
};

// The grid of a pattern at a pose, `rim` samples wider on each side.
PATTERND_DEVICE SamplingGrid grid_of(const TracePattern& pattern, const TraceImage& image,
                                     const TracedPose& pose, int rim) {
  const Turn turn = turn_of(pose.angle_deg);
  const double c = turn.cosine * pose.scale;
  const double s = turn.sine * pose.scale;
  const double to_level = 1.0 / static_cast<double>(1 << pattern.image_level);
  const double first_x = pattern.origin_x - rim * pattern.spacing;
  const double first_y = pattern.origin_y - rim * pattern.spacing;
  const double x = (pose.x + c * first_x - s * first_y + 0.5) * to_level - 0.5;
  const double y = (pose.y + s * first_x + c * first_y + 0.5) * to_level - 0.5;
  const double ux = c * pattern.spacing * to_level;
  const double uy = s * pattern.spacing * to_level;
  SamplingGrid grid;
  const double base_x = static_cast<double>(floor_to_int(x));
  const double base_y = static_cast<double>(floor_to_int(y));
  grid.x = static_cast<float>(x - base_x);
  grid.y = static_cast<float>(y - base_y);
  grid.ux = static_cast<float>(ux);
  grid.uy = static_cast<float>(uy);
  grid.vx = static_cast<float>(-uy);
  grid.base_x = static_cast<float>(base_x);
  grid.base_y = static_cast<float>(base_y);
  const double columns = pattern.width + 2 * rim - 1;
  const double rows = pattern.height + 2 * rim - 1;
  const double low_x = (ux < 0 ? columns * ux : 0) + (uy > 0 ? -rows * uy : 0);
  const double high_x = (ux > 0 ? columns * ux : 0) + (uy < 0 ? -rows * uy : 0);
  const double low_y = (uy < 0 ? columns * uy : 0) + (ux < 0 ? rows * ux : 0);
  const double high_y = (uy > 0 ? columns * uy : 0) + (ux > 0 ? rows * ux : 0);
  grid.inside = image.has_valid == 0 && x + low_x >= 0.01 && y + low_y >= 0.01 &&
                        x + high_x <= image.width - 1.01 && y + high_y <= image.height - 1.01
                    ? 1
                    : 0;
  return grid;
}

// Adding and taking away 1.5 · 2^23 rounds a float of small magnitude to the nearest whole number,
// in two additions at full rate (conversions run at a quarter of it).
PATTERND_DEVICE float nearest(float value) { return (value + 12582912.0F) - 12582912.0F; }

// Grey values on the scale of 8 bit, whichever the picture's depth: the unit gives 0..1.
inline constexpr float kGreyScale = 255.0F;

PATTERND_DEVICE float bilinear_at(const TraceImage& image, float base_x, float base_y, float x,
                                  float y) {
  const float left = nearest(x - 0.5F);
  const float top = nearest(y - 0.5F);
  const float wx = x - left;
  const float wy = y - top;
  const Gathered g = gather<0>(image.texture, left + (base_x + 1.0F), top + (base_y + 1.0F));
  const float upper = fused(wx, g.right_top - g.left_top, g.left_top);
  const float lower = fused(wx, g.right_bottom - g.left_bottom, g.left_bottom);
  return fused(wy, lower - upper, upper) * kGreyScale;
}

// The cubic through four pixels, Lagrange's: as bilinear_at, and without its third-order shift.
struct CubicWeights {
  float before, left, right, after;  // of the pixels at −1, 0, 1, 2
};
PATTERND_DEVICE CubicWeights cubic_weights(float t) {
  const float inner = 0.5F * ((t + 1.0F) * (t - 2.0F));
  const float outer = (1.0F / 6.0F) * (t * (t - 1.0F));
  return {-(outer * (t - 2.0F)), inner * (t - 1.0F), -(inner * t), outer * (t + 1.0F)};
}

PATTERND_DEVICE float cubic_at(const TraceImage& image, float base_x, float base_y, float x,
                               float y) {
  const float left = nearest(x - 0.5F);
  const float top = nearest(y - 0.5F);
  const CubicWeights across = cubic_weights(x - left);
  const CubicWeights down = cubic_weights(y - top);
  const float at_x = left + (base_x + 1.0F);
  const float at_y = top + (base_y + 1.0F);
  // Each brings two by two pixels, its place the corner between them.
  const Gathered nw = gather<0>(image.texture, at_x - 1.0F, at_y - 1.0F);
  const Gathered ne = gather<0>(image.texture, at_x + 1.0F, at_y - 1.0F);
  const Gathered sw = gather<0>(image.texture, at_x - 1.0F, at_y + 1.0F);
  const Gathered se = gather<0>(image.texture, at_x + 1.0F, at_y + 1.0F);
  const auto line = [&](float p0, float p1, float p2, float p3) {
    return fused(across.after, p3,
                 fused(across.right, p2, fused(across.left, p1, across.before * p0)));
  };
  const float first = line(nw.left_top, nw.right_top, ne.left_top, ne.right_top);
  const float second = line(nw.left_bottom, nw.right_bottom, ne.left_bottom, ne.right_bottom);
  const float third = line(sw.left_top, sw.right_top, se.left_top, se.right_top);
  const float fourth = line(sw.left_bottom, sw.right_bottom, se.left_bottom, se.right_bottom);
  return fused(down.after, fourth,
               fused(down.right, third, fused(down.left, second, down.before * first))) *
         kGreyScale;
}

struct Sampled {
  float value;
  float visible;  // 1 or 0
};

// Sample (i, j). Visible is what the nearest pixel of the picture exists for (up to half a pixel
// past the outermost centres, where it takes the outermost value) and is valid. `cubic`: bilinear
// all the same where one of the sixteen pixels doesn't exist.
template <bool cubic = false>
PATTERND_DEVICE Sampled sample_pose(const TraceImage& image, const SamplingGrid& grid, int i,
                                    int j) {
  const float fi = static_cast<float>(i);
  const float fj = static_cast<float>(j);
  float x = fused(fi, grid.ux, fused(fj, grid.vx, grid.x));
  float y = fused(fi, grid.uy, fused(fj, grid.ux, grid.y));
  if (grid.inside == 0) {
    const float columns = static_cast<float>(image.width);
    const float rows = static_cast<float>(image.height);
    const float at_x = x + grid.base_x;
    const float at_y = y + grid.base_y;
    if (!(at_x >= -0.5F && at_y >= -0.5F && at_x <= columns - 0.5F && at_y <= rows - 0.5F))
      return {0.0F, 0.0F};
    x = minimum(maximum(x, -grid.base_x), (columns - 1.0F) - grid.base_x);
    y = minimum(maximum(y, -grid.base_y), (rows - 1.0F) - grid.base_y);
    if (image.has_valid != 0) {
      const int px = floor_to_int(x + grid.base_x + 0.5F);
      const int py = floor_to_int(y + grid.base_y + 0.5F);
      if (global<const u8>(image.valid)[static_cast<i64>(py) * image.valid_stride + px] == 0)
        return {0.0F, 0.0F};
    }
  }
  if (cubic) {
    const float at_x = x + grid.base_x;
    const float at_y = y + grid.base_y;
    if (at_x >= 1.01F && at_y >= 1.01F && at_x <= static_cast<float>(image.width) - 2.01F &&
        at_y <= static_cast<float>(image.height) - 2.01F)
      return {cubic_at(image, grid.base_x, grid.base_y, x, y), 1.0F};
  }
  return {bilinear_at(image, grid.base_x, grid.base_y, x, y), 1.0F};
}

// The shared memory of a block that works on a pose, as whichever struct is at work.
inline constexpr int kPoseMemoryBytes = 13 * 1024;
PATTERND_DEVICE void* pose_memory_bytes() {
  alignas(16) __shared__ char bytes[kPoseMemoryBytes];
  return bytes;
}
template <class Memory>
PATTERND_DEVICE Memory& pose_memory() {
  static_assert(sizeof(Memory) <= kPoseMemoryBytes);
  return *static_cast<Memory*>(pose_memory_bytes());
}

// Sums kCount numbers a thread over the block, in double from warp to warp and always in the same
// order. Returns the totals, in shared memory that the next call overwrites. `scratch` holds kCount
// doubles a warp and kCount more.
template <int kCount>
PATTERND_DEVICE const double* block_sums(const float (&values)[kCount], double* scratch) {
  const int lane = thread_x() % kWarpSize;
  const int warp = thread_x() / kWarpSize;
  const int warps = threads_x() / kWarpSize;
  block_barrier();
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float sum = warp_sum(values[i]);
    if (lane == i % kWarpSize) scratch[warp * kCount + i] = static_cast<double>(sum);
  }
  block_barrier();
  double* totals = scratch + warps * kCount;
  for (int i = thread_x(); i < kCount; i += threads_x()) {
    double sum = 0;
    for (int w = 0; w < warps; ++w) sum += scratch[w * kCount + i];
    totals[i] = sum;
  }
  block_barrier();
  return totals;
}

// NCC from sums over n pixels: clamped, 0 where the window or the visible part of the pattern has
// no contrast.
PATTERND_DEVICE double score_of(double n, double t, double tt, double w, double ww, double tw,
                                double least_contrast) {
  if (n < 2) return 0;
  const double energy = ww - w * w / n;
  const double pattern_energy = tt - t * t / n;
  const double contrast = least_contrast * least_contrast;
  const double least = (contrast > 1e-6 ? contrast : 1e-6) * n;
  if (!(energy >= least) || !(pattern_energy > 1e-6 * n)) return 0;
  const double score = (tw - t * w / n) / root(energy * pattern_energy);
  return score > 1 ? 1 : (score < -1 ? -1 : score);
}

inline constexpr int kPoseWarps = 16;  // most warps of a block that works on a pose
// Sums of the visible part of a pattern against the picture.
enum VisibleSum { kSumN, kSumT, kSumTT, kSumW, kSumWW, kSumTW, kVisibleSums };

}  // namespace patternd::cuda
