// Sub-pixel refinement of one pose: the GPU's version of pipeline/refine.cpp, inverse-compositional
// Gauss–Newton on shift, angle and scale with brightness, gain and uneven light as nuisances.
// Sums over the pattern's pixels by all threads of a block, the 10 × 10 algebra by one.
#pragma once

#include "cuda/kernels/pose_sampling.h"

namespace patternd::cuda {

inline constexpr double kRunawayPx = 3;
inline constexpr double kRadPerDeg = 3.14159265358979323846 / 180;
inline constexpr int kByX = kNuisances;
inline constexpr int kByY = kNuisances + 1;
inline constexpr int kSixth = kNuisances + 2;  // by the angle, or by the scale where it is fixed
inline constexpr int kSeventh = kNuisances + 3;
inline constexpr int kGram = kRegressors * (kRegressors + 1) / 2;
// Products of the picture with the regressors, then Σ W² and the pixels seen.
inline constexpr int kPictureSums = kRegressors + 2;

struct Regression {
  double coefficients[kRegressors];
  double residual;
  double inverse[4];  // (x, x), (y, y), (x, y), (angle, angle)
  int good;
};

struct RefineMemory {
  double scratch[(kPoseWarps + 1) * kGram];
  double matrix[kRegressors][kRegressors];
  double lower[kRegressors][kRegressors];
  double with_picture[kPictureSums];
  Regression regression;
  SamplingGrid grid;
  float middle;
};

PATTERND_DEVICE RefineMemory& refine_memory() { return pose_memory<RefineMemory>(); }

struct RefinePixel {
  float mask, value, gradient_x, gradient_y;
};

PATTERND_DEVICE void regressors_of(const RefinePattern& refine, const RefinePixel& pixel, int x,
                                   int y, float (&out)[kRegressors]) {
  const float qx = static_cast<float>(refine.first_column) + static_cast<float>(x);
  const float qy = static_cast<float>(refine.first_row) + static_cast<float>(y);
  const float turn = pixel.gradient_y * qx - pixel.gradient_x * qy;
  const float growth = pixel.gradient_x * qx + pixel.gradient_y * qy;
  out[0] = pixel.value;
  out[1] = pixel.mask;
  out[2] = pixel.mask * qx;
  out[3] = pixel.mask * qy;
  out[4] = pixel.value * qx;
  out[5] = pixel.value * qy;
  out[kByX] = pixel.gradient_x;
  out[kByY] = pixel.gradient_y;
  out[kSixth] = refine.with_angle != 0 ? turn : (refine.with_scale != 0 ? growth : 0.0F);
  out[kSeventh] = refine.with_angle != 0 && refine.with_scale != 0 ? growth : 0.0F;
}

// visit(x, y, pixel, W) for each pixel of the mask that is visible, of those that this thread has.
template <bool cubic, class Visit>
PATTERND_DEVICE void for_each_visible(const RefinePattern& refine, const TracePattern& pattern,
                                      const TraceImage& image, const Visit& visit) {
  const int lane = thread_x() % kWarpSize;
  const Float4* pixels = global<const Float4>(refine.pixels);
  for (int y = thread_x() / kWarpSize; y < pattern.height; y += threads_x() / kWarpSize) {
    for (int x = lane; x < pattern.width; x += kWarpSize) {
      const Float4 p = load_float4(pixels + y * pattern.width + x);
      if (p.x == 0.0F) continue;
      const Sampled s = sample_pose<cubic>(image, refine_memory().grid, x, y);
      if (s.visible == 0.0F) continue;
      visit(x, y, RefinePixel{p.x, p.y, p.z, p.w}, s.value - refine_memory().middle);
    }
  }
}

// Inverts the shared memory's `matrix` of order n by Cholesky's method; one thread. False where it
// is singular to working precision.
PATTERND_DEVICE_CALL bool invert(int n) {
  double scale[kRegressors];
  for (int i = 0; i < n; ++i) {
    if (!(refine_memory().matrix[i][i] > 0)) return false;
    scale[i] = 1 / root(refine_memory().matrix[i][i]);
  }
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = refine_memory().matrix[i][j] * scale[i] * scale[j];
      for (int k = 0; k < j; ++k) sum -= refine_memory().lower[i][k] * refine_memory().lower[j][k];
      if (i != j) {
        refine_memory().lower[i][j] = sum / refine_memory().lower[j][j];
      } else {
        if (!(sum > 1e-9)) return false;
        refine_memory().lower[i][i] = root(sum);
      }
    }
  }
  for (int column = 0; column < n; ++column) {
    double x[kRegressors];
    for (int i = 0; i < n; ++i) {
      double sum = i == column ? 1 : 0;
      for (int k = 0; k < i; ++k) sum -= refine_memory().lower[i][k] * x[k];
      x[i] = sum / refine_memory().lower[i][i];
    }
    for (int i = n - 1; i >= 0; --i) {
      double sum = x[i];
      for (int k = i + 1; k < n; ++k) sum -= refine_memory().lower[k][i] * x[k];
      x[i] = sum / refine_memory().lower[i][i];
    }
    for (int i = 0; i < n; ++i) refine_memory().matrix[i][column] = x[i] * scale[i] * scale[column];
  }
  return true;
}

// The Gram matrix over the visible pixels, inverted; false where it can't be.
PATTERND_DEVICE_CALL bool invert_visible_gram(const RefinePattern& refine,
                                              const TracePattern& pattern,
                                              const TraceImage& image) {
  float sums[kGram] = {};
  for_each_visible<false>(
      refine, pattern, image, [&](int x, int y, const RefinePixel& pixel, float) {
        float r[kRegressors];
        regressors_of(refine, pixel, x, y, r);
#pragma unroll
        for (int i = 0; i < kRegressors; ++i)
#pragma unroll
          for (int j = 0; j <= i; ++j)
            sums[i * (i + 1) / 2 + j] = fused(r[i], r[j], sums[i * (i + 1) / 2 + j]);
      });
  const double* totals = block_sums(sums, refine_memory().scratch);
  if (thread_x() == 0) {
    for (int i = 0; i < kRegressors; ++i)
      for (int j = 0; j <= i; ++j)
        refine_memory().matrix[i][j] = refine_memory().matrix[j][i] = totals[i * (i + 1) / 2 + j];
    for (int i = kFirstRamp; i < kNuisances; ++i)
      refine_memory().matrix[i][i] += refine.light_prior[i - kFirstRamp];
    refine_memory().regression.good = invert(refine.regressors) ? 1 : 0;
  }
  block_barrier();
  const bool good = refine_memory().regression.good != 0;
  // One thread goes on to overwrite it.
  block_barrier();
  return good;
}

PATTERND_DEVICE_CALL void solve(const RefinePattern& refine, double pixels) {
  Regression& out = refine_memory().regression;
  const int n = refine.regressors;
  double explained = 0;
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int j = 0; j < n; ++j)
      sum += refine_memory().matrix[i][j] * refine_memory().with_picture[j];
    out.coefficients[i] = sum;
    explained += sum * refine_memory().with_picture[i];
  }
  const double left = refine_memory().with_picture[kRegressors] - explained;
  const double freedom = pixels - n;
  out.residual = (left > 0 ? left : 0) / (freedom > 1 ? freedom : 1);
  out.inverse[0] = refine_memory().matrix[kByX][kByX];
  out.inverse[1] = refine_memory().matrix[kByY][kByY];
  out.inverse[2] = refine_memory().matrix[kByX][kByY];
  out.inverse[3] = refine_memory().matrix[kSixth][kSixth];
  const double gain = out.coefficients[0];
  out.good = gain > 1e-6 || gain < -1e-6 ? 1 : 0;
}

// Regresses the picture at the pose; the outcome is in the shared memory's `regression`.
template <bool cubic>
PATTERND_DEVICE_CALL void regress(const RefinePattern& refine, const TracePattern& pattern,
                                  const TraceImage& image, const TracedPose& pose) {
  block_barrier();
  if (thread_x() == 0) {
    refine_memory().grid = grid_of(pattern, image, pose, 0);
    const Sampled s =
        sample_pose(image, refine_memory().grid, pattern.width / 2, pattern.height / 2);
    refine_memory().middle = s.visible != 0.0F ? s.value : 0.0F;
  }
  block_barrier();
  const bool complete = refine_memory().grid.inside != 0;
  float sums[kPictureSums] = {};
  for_each_visible<cubic>(refine, pattern, image,
                          [&](int x, int y, const RefinePixel& pixel, float w) {
                            float r[kRegressors];
                            regressors_of(refine, pixel, x, y, r);
#pragma unroll
                            for (int i = 0; i < kRegressors; ++i) sums[i] = fused(r[i], w, sums[i]);
                            sums[kRegressors] = fused(w, w, sums[kRegressors]);
                            sums[kRegressors + 1] += 1.0F;
                          });
  const double* totals = block_sums(sums, refine_memory().scratch);
  if (thread_x() < kPictureSums) refine_memory().with_picture[thread_x()] = totals[thread_x()];
  block_barrier();
  if (complete) {
    const double* inverse = global<const double>(refine.inverse_gram);
    for (int i = thread_x(); i < kRegressors * kRegressors; i += threads_x())
      refine_memory().matrix[i / kRegressors][i % kRegressors] = inverse[i];
    block_barrier();
  } else if (!invert_visible_gram(refine, pattern, image)) {
    return;
  }
  if (thread_x() == 0) solve(refine, refine_memory().with_picture[kRegressors + 1]);
  block_barrier();
}

// How long to go on: as the CPU's RefineLimits.
struct RefineLimits {
  int iterations;
  double still_px;
  double nearly_px;
  int cubic_steps;
};

PATTERND_DEVICE double length_of(double x, double y) { return root(x * x + y * y); }
PATTERND_DEVICE double size_of(double value) { return value < 0 ? -value : value; }

// Moves the pose by `share` of what the regression found; by how many pixels of the pattern its
// centre and farthest pixel move.
PATTERND_DEVICE double move_pose(const RefinePattern& refine, const TracePattern& pattern,
                                 const Regression& last, double radius, double share,
                                 TracedPose& at) {
  const double gain = last.coefficients[0] / share;
  const double dx = last.coefficients[kByX] / gain;
  const double dy = last.coefficients[kByY] / gain;
  const double sixth = last.coefficients[kSixth] / gain;
  const double seventh = last.coefficients[kSeventh] / gain;
  const double turn = refine.with_angle != 0 ? sixth : 0;
  const double growth = refine.with_scale == 0 ? 0 : (refine.with_angle != 0 ? seventh : sixth);
  const double size = pattern.spacing * at.scale;
  const Turn direction = turn_of(at.angle_deg);
  const double c = direction.cosine * size;
  const double s = direction.sine * size;
  at.x -= c * dx - s * dy;
  at.y -= s * dx + c * dy;
  at.angle_deg -= turn / kRadPerDeg;
  at.scale /= 1 + (growth > -0.5 ? growth : -0.5);
  return length_of(dx, dy) + (size_of(turn) + size_of(growth)) * radius;
}

// How far the pose is from where it started, in pixels of the pattern.
PATTERND_DEVICE double distance_moved(const TracePattern& pattern, double radius,
                                      const TracedPose& start, const TracedPose& at) {
  return length_of(at.x - start.x, at.y - start.y) / (pattern.spacing * start.scale) +
         radius * (size_of(at.angle_deg - start.angle_deg) * kRadPerDeg +
                   size_of(at.scale / start.scale - 1));
}

// Steps with bilinear samples until they are small; false where they don't get there or run away.
PATTERND_DEVICE_CALL bool approach(const RefinePattern& refine, const TracePattern& pattern,
                                   const TraceImage& image, const RefineLimits& limits,
                                   double radius, TracedPose& at) {
  const TracedPose start = at;
  double share = 1;
  double previous = 1e300;
  for (int i = 0; i < limits.iterations; ++i) {
    regress<false>(refine, pattern, image, at);
    if (refine_memory().regression.good == 0) return false;
    const double moved = move_pose(refine, pattern, refine_memory().regression, radius, share, at);
    // Steps that don't shrink overshoot: shorter ones settle.
    if (moved > 0.5 * previous) share = 0.5 * share > 0.25 ? 0.5 * share : 0.25;
    previous = moved;
    if (!(distance_moved(pattern, radius, start, at) < kRunawayPx)) return false;
    if (moved <= (i + 1 == limits.iterations ? limits.nearly_px : limits.still_px)) return true;
  }
  return false;
}

// True where the pose converged; else the candidate stays as it was.
PATTERND_DEVICE_CALL bool refine_pose(const RefinePattern& refine, const TracePattern& pattern,
                                      const TraceImage& image, TracedCandidate& candidate,
                                      const RefineLimits& limits) {
  if (refine.used == 0) return false;
  TracedPose at = candidate.pose;
  const double radius = length_of(pattern.width, pattern.height) / 2;
  if (!approach(refine, pattern, image, limits, radius, at)) return false;
  for (int i = 0; i < limits.cubic_steps; ++i) {
    regress<true>(refine, pattern, image, at);
    if (refine_memory().regression.good == 0) return false;
    const double moved = move_pose(refine, pattern, refine_memory().regression, radius, 1, at);
    if (!(distance_moved(pattern, radius, candidate.pose, at) < kRunawayPx)) return false;
    if (moved <= limits.still_px) break;
  }
  const Regression& last = refine_memory().regression;
  candidate.pose = at;
  candidate.residual = last.residual;
  candidate.gain = last.coefficients[0];
  for (int k = 0; k < 4; ++k) candidate.inverse[k] = last.inverse[k];
  return true;
}

// Puts a pose that left the allowed angles or scales back to the nearest allowed one; whether it
// had to.
PATTERND_DEVICE_CALL bool bring_inside(const AllowedPoses& allowed, TracedPose& pose) {
  bool moved = false;
  double nearest_deg = pose.angle_deg;
  double least = 1e9;
  for (int i = 0; i < allowed.ranges; ++i) {
    const double low = allowed.low_deg[i];
    const double span = allowed.high_deg[i] - low;
    const double above =
        pose.angle_deg - low -
        allowed.period_deg *
            static_cast<double>(floor_to_int((pose.angle_deg - low) / allowed.period_deg));
    const double to_high = above <= span ? 0 : above - span;
    const double to_low = above <= span ? 0 : allowed.period_deg - above;
    const double distance = to_high < to_low ? to_high : to_low;
    if (distance >= least) continue;
    least = distance;
    nearest_deg = pose.angle_deg + (to_low < to_high ? to_low : -to_high);
  }
  if (allowed.ranges > 0 && least > 0) {
    pose.angle_deg = nearest_deg;
    moved = true;
  }
  const double scale = pose.scale < allowed.low_scale
                           ? allowed.low_scale
                           : (pose.scale > allowed.high_scale ? allowed.high_scale : pose.scale);
  moved = moved || scale != pose.scale;
  pose.scale = scale;
  return moved;
}

// Sets the candidate's score, visible share and polarity from the NCC at its pose.
PATTERND_DEVICE_CALL void score_candidate(const TracePattern& pattern, const TraceImage& image,
                                          TracedCandidate& candidate) {
  block_barrier();
  if (thread_x() == 0) {
    refine_memory().grid = grid_of(pattern, image, candidate.pose, 0);
    const Sampled s =
        sample_pose(image, refine_memory().grid, pattern.width / 2, pattern.height / 2);
    refine_memory().middle = s.visible != 0.0F ? s.value : 0.0F;
  }
  block_barrier();
  const int lane = thread_x() % kWarpSize;
  const float* pixels = global<const float>(pattern.pixels);
  float sums[kVisibleSums] = {};
  for (int y = thread_x() / kWarpSize; y < pattern.height; y += threads_x() / kWarpSize) {
    for (int x = lane; x < pattern.width; x += kWarpSize) {
      const float* pixel = pixels + 2 * (y * pattern.width + x);
      if (pixel[1] == 0.0F) continue;
      const Sampled s = sample_pose(image, refine_memory().grid, x, y);
      if (s.visible == 0.0F) continue;
      const float t = pixel[0];
      const float w = s.value - refine_memory().middle;
      sums[kSumN] += 1.0F;
      sums[kSumT] += t;
      sums[kSumTT] = fused(t, t, sums[kSumTT]);
      sums[kSumW] += w;
      sums[kSumWW] = fused(w, w, sums[kSumWW]);
      sums[kSumTW] = fused(t, w, sums[kSumTW]);
    }
  }
  const double* totals = block_sums(sums, refine_memory().scratch);
  const double n = totals[kSumN];
  const double score = score_of(n, totals[kSumT], totals[kSumTT], totals[kSumW], totals[kSumWW],
                                totals[kSumTW], pattern.least_contrast);
  candidate.visible = n / (pattern.counted > 1 ? pattern.counted : 1);
  candidate.inverted = pattern.any_polarity != 0 && score < 0 ? 1 : 0;
  // A sample more or less by rounding is not a question of visibility.
  const bool seen = n + 0.5 >= pattern.least_visible * pattern.counted;
  candidate.score = !seen ? 0 : (candidate.inverted != 0 ? -score : score);
}

}  // namespace patternd::cuda
