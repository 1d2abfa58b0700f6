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

// A direction at a pose, in pixels of the picture's level a pixel of the pattern.
struct PoseAxes {
  float ux, uy;
};
PATTERND_DEVICE PoseAxes axes_of(const TracePattern& pattern, const TracedPose& pose,
                                 const Turn& turn) {
  const float size = static_cast<float>(pose.scale) * pattern.pixel_in_level;
  return {turn.cosine * size, turn.sine * size};
}

// The grid of a pattern at a pose with the direction `turn`, `rim` samples wider on each side. The
// pose's place is taken apart in double; what is measured from it is small.
PATTERND_DEVICE SamplingGrid grid_of(const TracePattern& pattern, const TraceImage& image,
                                     const TracedPose& pose, const Turn& turn, int rim) {
  const PoseAxes axes = axes_of(pattern, pose, turn);
  const float first_x = pattern.first_column - static_cast<float>(rim);
  const float first_y = pattern.first_row - static_cast<float>(rim);
  const double at_x = (pose.x + 0.5) * pattern.to_level - 0.5;
  const double at_y = (pose.y + 0.5) * pattern.to_level - 0.5;
  const int whole_x = floor_to_int(at_x);
  const int whole_y = floor_to_int(at_y);
  const float x = static_cast<float>(at_x - whole_x) + (axes.ux * first_x - axes.uy * first_y);
  const float y = static_cast<float>(at_y - whole_y) + (axes.uy * first_x + axes.ux * first_y);
  SamplingGrid grid;
  const int shift_x = floor_to_int(x);
  const int shift_y = floor_to_int(y);
  grid.base_x = static_cast<float>(whole_x + shift_x);
  grid.base_y = static_cast<float>(whole_y + shift_y);
  grid.x = x - static_cast<float>(shift_x);
  grid.y = y - static_cast<float>(shift_y);
  grid.ux = axes.ux;
  grid.uy = axes.uy;
  grid.vx = -axes.uy;
  const float columns = static_cast<float>(pattern.width + 2 * rim - 1);
  const float rows = static_cast<float>(pattern.height + 2 * rim - 1);
  const float across_x = columns * axes.ux;
  const float across_y = columns * axes.uy;
  const float down_x = -rows * axes.uy;
  const float down_y = rows * axes.ux;
  const float left = grid.base_x + grid.x + (minimum(across_x, 0.0F) + minimum(down_x, 0.0F));
  const float right = grid.base_x + grid.x + (maximum(across_x, 0.0F) + maximum(down_x, 0.0F));
  const float top = grid.base_y + grid.y + (minimum(across_y, 0.0F) + minimum(down_y, 0.0F));
  const float bottom = grid.base_y + grid.y + (maximum(across_y, 0.0F) + maximum(down_y, 0.0F));
  grid.inside = image.has_valid == 0 && left >= 0.01F && top >= 0.01F &&
                        right <= static_cast<float>(image.width) - 1.01F &&
                        bottom <= static_cast<float>(image.height) - 1.01F
                    ? 1
                    : 0;
  return grid;
}
PATTERND_DEVICE SamplingGrid grid_of(const TracePattern& pattern, const TraceImage& image,
                                     const TracedPose& pose, int rim) {
  return grid_of(pattern, image, pose, turn_of(pose.angle_deg), rim);
}

// Adding and taking away 1.5 · 2^23 rounds a float of small magnitude to the nearest whole number,
// in two additions at full rate (conversions run at a quarter of it).
PATTERND_DEVICE float nearest(float value) { return (value + 12582912.0F) - 12582912.0F; }

PATTERND_DEVICE float length_of(float x, float y) {
  const float square = fused(x, x, y * y);
  return square * inverse_root(maximum(square, 1e-30F));
}
PATTERND_DEVICE float size_of(float value) { return value < 0 ? -value : value; }

// Grey values on the scale of 8 bit, whichever the picture's depth: the unit gives 0..1.
inline constexpr float kGreyScale = 255.0F;

// A place in the picture's level, from the grid's base, and whether it is visible (1 or 0): the
// nearest pixel exists (up to half a pixel past the outermost centres, where it takes the outermost
// value) and is valid.
struct Located {
  float x, y;
  float visible;
};

// Sample (x, y) of a grid that lies inside.
PATTERND_DEVICE Located locate_inside(const SamplingGrid& grid, float x, float y) {
  return {fused(x, grid.ux, fused(y, grid.vx, grid.x)),
          fused(x, grid.uy, fused(y, grid.ux, grid.y)), 1.0F};
}

// A sample of one that does not, to what is known there.
PATTERND_DEVICE void clip(const TraceImage& image, const SamplingGrid& grid, Located& at) {
  const float columns = static_cast<float>(image.width);
  const float rows = static_cast<float>(image.height);
  const float at_x = at.x + grid.base_x;
  const float at_y = at.y + grid.base_y;
  const bool exists =
      at_x >= -0.5F && at_y >= -0.5F && at_x <= columns - 0.5F && at_y <= rows - 0.5F;
  at.x = minimum(maximum(at.x, -grid.base_x), (columns - 1.0F) - grid.base_x);
  at.y = minimum(maximum(at.y, -grid.base_y), (rows - 1.0F) - grid.base_y);
  at.visible = exists ? 1.0F : 0.0F;
  if (exists && image.has_valid != 0) {
    const int px = floor_to_int(at.x + grid.base_x + 0.5F);
    const int py = floor_to_int(at.y + grid.base_y + 0.5F);
    if (global<const u8>(image.valid)[static_cast<i64>(py) * image.valid_stride + px] == 0)
      at.visible = 0.0F;
  }
}

PATTERND_DEVICE Located locate(const TraceImage& image, const SamplingGrid& grid, int i, int j) {
  Located at = locate_inside(grid, static_cast<float>(i), static_cast<float>(j));
  if (grid.inside == 0) clip(image, grid, at);
  return at;
}

// The four pixels around a place, on their way, and where it lies between them.
struct Neighbours {
  Gathered pixels;
  float wx, wy;
};
PATTERND_DEVICE Neighbours neighbours_of(const TraceImage& image, const SamplingGrid& grid,
                                         const Located& at) {
  const float left = nearest(at.x - 0.5F);
  const float top = nearest(at.y - 0.5F);
  return {gather<0>(image.texture, left + (grid.base_x + 1.0F), top + (grid.base_y + 1.0F)),
          at.x - left, at.y - top};
}
PATTERND_DEVICE float between(const Neighbours& around) {
  const Gathered& g = around.pixels;
  const float upper = fused(around.wx, g.right_top - g.left_top, g.left_top);
  const float lower = fused(around.wx, g.right_bottom - g.left_bottom, g.left_bottom);
  return fused(around.wy, lower - upper, upper);
}
PATTERND_DEVICE float bilinear_at(const TraceImage& image, const SamplingGrid& grid,
                                  const Located& at) {
  return between(neighbours_of(image, grid, at)) * kGreyScale;
}

// The cubic through four pixels, Lagrange's.
struct CubicWeights {
  float before, left, right, after;  // of the pixels at −1, 0, 1, 2
};
PATTERND_DEVICE CubicWeights cubic_weights(float t) {
  const float inner = 0.5F * ((t + 1.0F) * (t - 2.0F));
  const float outer = (1.0F / 6.0F) * (t * (t - 1.0F));
  return {-(outer * (t - 2.0F)), inner * (t - 1.0F), -(inner * t), outer * (t + 1.0F)};
}
PATTERND_DEVICE float weighted(const CubicWeights& w, float a, float b, float c, float d) {
  return fused(w.after, d, fused(w.right, c, fused(w.left, b, w.before * a)));
}

// A sample both ways: bilinear, and cubic, which lacks its third-order shift. The same where one of
// the sixteen pixels does not exist.
struct BothSamples {
  float bilinear, cubic;
};
PATTERND_DEVICE BothSamples both_at(const TraceImage& image, const SamplingGrid& grid,
                                    const Located& at) {
  const float x = at.x + grid.base_x;
  const float y = at.y + grid.base_y;
  const bool whole = x >= 1.01F && y >= 1.01F && x <= static_cast<float>(image.width) - 2.01F &&
                     y <= static_cast<float>(image.height) - 2.01F;
  const float left = nearest(at.x - 0.5F);
  const float top = nearest(at.y - 0.5F);
  const float wx = at.x - left;
  const float wy = at.y - top;
  // Each brings two by two pixels; its place is the corner between them.
  const float corner_x = left + (grid.base_x + 1.0F);
  const float corner_y = top + (grid.base_y + 1.0F);
  const Gathered nw = gather<0>(image.texture, corner_x - 1.0F, corner_y - 1.0F);
  const Gathered ne = gather<0>(image.texture, corner_x + 1.0F, corner_y - 1.0F);
  const Gathered sw = gather<0>(image.texture, corner_x - 1.0F, corner_y + 1.0F);
  const Gathered se = gather<0>(image.texture, corner_x + 1.0F, corner_y + 1.0F);
  const float upper = fused(wx, ne.left_bottom - nw.right_bottom, nw.right_bottom);
  const float lower = fused(wx, se.left_top - sw.right_top, sw.right_top);
  const float bilinear = fused(wy, lower - upper, upper);
  const CubicWeights across = cubic_weights(wx);
  const CubicWeights down = cubic_weights(wy);
  const float cubic =
      weighted(down, weighted(across, nw.left_top, nw.right_top, ne.left_top, ne.right_top),
               weighted(across, nw.left_bottom, nw.right_bottom, ne.left_bottom, ne.right_bottom),
               weighted(across, sw.left_top, sw.right_top, se.left_top, se.right_top),
               weighted(across, sw.left_bottom, sw.right_bottom, se.left_bottom, se.right_bottom));
  return {bilinear * kGreyScale, (whole ? cubic : bilinear) * kGreyScale};
}

// The threads that share the pixels of a pattern, and this one's place among them.
struct PixelThreads {
  int index;
  int count;
};

// Walks a rectangle row by row: visit(x, y) with kAtOnce places of this thread in arrays, so that
// their loads overlap; those with y >= height do not exist.
template <int kAtOnce, class Visit>
PATTERND_DEVICE void for_each_place(const PixelThreads& threads, int width, int height,
                                    const Visit& visit) {
  // Quotients of small numbers; half a unit keeps rounding away from whole ones.
  const float per_width = 1.0F / static_cast<float>(width);
  const int step_y = floor_to_int((static_cast<float>(threads.count) + 0.5F) * per_width);
  const int step_x = threads.count - step_y * width;
  int y = floor_to_int((static_cast<float>(threads.index) + 0.5F) * per_width);
  int x = threads.index - y * width;
  while (y < height) {
    int xs[kAtOnce];
    int ys[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      xs[i] = x;
      ys[i] = y;
      x += step_x;
      y += step_y;
      if (x >= width) {
        x -= width;
        ++y;
      }
    }
    visit(xs, ys);
  }
}

// Threads of a block that works on a pose, at most.
inline constexpr int kMostPoseThreads = 384;
inline constexpr int kPoseWarps = kMostPoseThreads / kWarpSize;

// The shared memory of a block that works on a pose (kPoseMemoryBytes), as whichever struct is at
// work.
PATTERND_DEVICE void* pose_memory_bytes() {
  alignas(16) __shared__ char bytes[kPoseMemoryBytes];
  return bytes;
}
template <class Memory>
PATTERND_DEVICE Memory& pose_memory() {
  static_assert(sizeof(Memory) <= kPoseMemoryBytes);
  return *static_cast<Memory*>(pose_memory_bytes());
}

// One step of warp_totals: a lane keeps the half of its sums that its number says and hands over
// the others.
template <int kHalf>
PATTERND_DEVICE void halve_sums(float* sums) {
  const bool upper = (thread_x() & kHalf) != 0;
#pragma unroll
  for (int i = 0; i < kHalf; ++i) {
    // Read before they are chosen from: a choice between places would put the array into memory.
    const float low = sums[i];
    const float high = sums[i + kHalf];
    sums[i] = (upper ? high : low) + shuffle_xor(upper ? low : high, kHalf);
  }
}
// Adds up 32 numbers of each lane over the warp in 31 shuffles: lane i gets the total of number i.
PATTERND_DEVICE float warp_totals(float (&sums)[kWarpSize]) {
  halve_sums<16>(sums);
  halve_sums<8>(sums);
  halve_sums<4>(sums);
  halve_sums<2>(sums);
  halve_sums<1>(sums);
  return sums[0];
}

// The same for 16 numbers: lanes i and i + 16 get the total of number i.
PATTERND_DEVICE float half_warp_totals(float* sums) {
  halve_sums<8>(sums);
  halve_sums<4>(sums);
  halve_sums<2>(sums);
  halve_sums<1>(sums);
  return sums[0] + shuffle_xor(sums[0], kWarpSize / 2);
}

// 1 / value, without the call that a division of doubles is.
PATTERND_DEVICE float inverse_of(float value) { return reciprocal(value); }
PATTERND_DEVICE double inverse_of(double value) {
  const double per = static_cast<double>(reciprocal(static_cast<float>(value)));
  return fused(per, fused(-value, per, 1.0), per);
}

// NCC from sums over n pixels: clamped, 0 where the window or the visible part of the pattern has
// no contrast. In float where only the better of two is asked for.
template <class Real>
PATTERND_DEVICE Real score_of(Real n, Real t, Real tt, Real w, Real ww, Real tw,
                              Real least_contrast) {
  constexpr Real kFlat = static_cast<Real>(1e-6);
  if (n < 2) return 0;
  const Real per = inverse_of(n);
  const Real energy = ww - w * w * per;
  const Real pattern_energy = tt - t * t * per;
  const Real contrast = least_contrast * least_contrast;
  const Real least = (contrast > kFlat ? contrast : kFlat) * n;
  if (!(energy >= least) || !(pattern_energy > kFlat * n)) return 0;
  const float per_length =
      inverse_root(static_cast<float>(energy)) * inverse_root(static_cast<float>(pattern_energy));
  const Real score = (tw - t * w * per) * static_cast<Real>(per_length);
  return score > 1 ? 1 : (score < -1 ? -1 : score);
}

}  // namespace patternd::cuda
