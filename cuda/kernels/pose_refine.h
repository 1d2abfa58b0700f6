// Sub-pixel refinement of one pose: the GPU's version of pipeline/refine.cpp, inverse-compositional
// Gauss–Newton on shift, angle and scale with brightness, gain and uneven light as nuisances.
// All threads of a block, and all blocks of a team, sum over the pattern's pixels; each block's
// first warp does the algebra, a lane a regressor.
#pragma once

#include "cuda/kernels/pose_sampling.h"
#include "cuda/kernels/pose_team.h"

namespace patternd::cuda {

inline constexpr float kRunawayPx = 3;
inline constexpr double kRadPerDeg = 3.14159265358979323846 / 180;
inline constexpr int kGram = kRegressors * (kRegressors + 1) / 2;

// What one pass over the pattern sums up: the bilinear samples' products with the regressors, their
// square, and the NCC's sums over the whole mask; then products and square of the cubic samples.
enum PictureSum { kSumSquare = kRegressors, kScoreW, kScoreWW, kScoreTW, kBilinearSums };
inline constexpr int kCubicSums = 16;  // the first of the cubic samples'
static_assert(kBilinearSums <= kCubicSums && kCubicSums + kSumSquare < kPieceSums);
// The same of the pixels that are hidden: the Gram matrix, the regressed pixels, and the NCC's.
enum HiddenSum { kHiddenPixels = kGram, kHiddenN, kHiddenT, kHiddenTT, kHiddenSums };

enum RefineStatus { kRefining, kConverged, kLost };

// As the CPU's RefineLimits.
struct RefineLimits {
  int iterations;
  float still_px;
  float nearly_px;
  int cubic_steps;
};

struct RefineMemory {
  float scratch[kPoseWarps][2 * kWarpSize];
  float pieces[kMostPieces][kPoseWarps][kPieceSums];
  double totals[kPieceSums];
  double hidden[kHiddenSums];
  double inverse[kRegressors][kRegressors];  // of the Gram matrix of all pixels
  double matrix[kRegressors][kRegressors];   // the same of those that are visible, if not all are
  double lower[kRegressors][kRegressors];
  double scale[kRegressors];
  double coefficients[2][kRegressors];  // by bilinear samples, by cubic ones
  TracedPose at;
  SamplingGrid grid;
  float radius;    // of the pattern, pixels
  float share;     // of a step that is taken
  float previous;  // pixels moved by the step before
  int iteration;
  int cubic_steps;  // taken; −1: steps are those of bilinear samples still
  int status;
  double score;  // at the last bilinear pose
  double visible;
  int inverted;
};

PATTERND_DEVICE RefineMemory& refine_memory() { return pose_memory<RefineMemory>(); }

// `mask`: 2 where the pixel is regressed, 1 where it only counts for the score. The gradients are 0
// but where it is regressed.
struct RefinePixel {
  float mask, value, gradient_x, gradient_y;
};

PATTERND_DEVICE void regressors_of(const RefinePattern& refine, const RefinePixel& pixel, int x,
                                   int y, float (&out)[kRegressors]) {
  const float qx = static_cast<float>(refine.first_column) + static_cast<float>(x);
  const float qy = static_cast<float>(refine.first_row) + static_cast<float>(y);
  const float counts = pixel.mask > 1.5F ? 1.0F : 0.0F;
  const float turn = pixel.gradient_y * qx - pixel.gradient_x * qy;
  const float growth = pixel.gradient_x * qx + pixel.gradient_y * qy;
  const float value = counts * pixel.value;
  out[0] = value;
  out[1] = counts;
  out[2] = counts * qx;
  out[3] = counts * qy;
  out[4] = value * qx;
  out[5] = value * qy;
  out[kByX] = pixel.gradient_x;
  out[kByX + 1] = pixel.gradient_y;
  out[kByX + 2] = refine.with_angle != 0 ? turn : (refine.with_scale != 0 ? growth : 0.0F);
  out[kByX + 3] = refine.with_angle != 0 && refine.with_scale != 0 ? growth : 0.0F;
}

// Adds up to 32 sums of every thread; lane i of the first warp gets the total of number i.
PATTERND_DEVICE double block_totals(float (&sums)[kWarpSize], int half) {
  RefineMemory& memory = refine_memory();
  const int lane = thread_x() % kWarpSize;
  memory.scratch[thread_x() / kWarpSize][half * kWarpSize + lane] = warp_totals(sums);
  block_barrier();
  double total = 0;
  if (thread_x() < kWarpSize)
    for (int warp = 0; warp < threads_x() / kWarpSize; ++warp)
      total += static_cast<double>(memory.scratch[warp][half * kWarpSize + lane]);
  return total;
}

// Pixel `index` of the pattern, row by row; nothing from `end` on.
PATTERND_DEVICE RefinePixel pixel_at(const RefinePattern& refine, int index, int end) {
  if (index >= end) return {0.0F, 0.0F, 0.0F, 0.0F};
  const Float4 p = load_float4(global<const Float4>(refine.pixels) + index);
  return {p.x, p.y, p.z, p.w};
}

// Pixels that a thread works on at a time: every threads_x()-th one of a piece, from `first` on.
// They are fetched long before they are needed, the picture's samples all at once.
inline constexpr int kRefineAtOnce = 4;
struct RefineGroup {
  int piece;
  int first;
  RefinePixel pixels[kRefineAtOnce];
};

PATTERND_DEVICE void fetch_group(const RefinePattern& refine, const TracePattern& pattern,
                                 int piece, int first, RefineGroup& out) {
  const int rows = refine.piece_rows;
  const int begin = piece * rows * pattern.width;
  const int end = minimum((piece + 1) * rows, pattern.height) * pattern.width;
  out.piece = piece;
  out.first = first + thread_x();
#pragma unroll
  for (int i = 0; i < kRefineAtOnce; ++i)
    out.pixels[i] = pixel_at(refine, begin + out.first + i * threads_x(), end);
}

// Adds the products of a pixel at (qx, qy) from the pattern's centre, where the picture has `w`.
PATTERND_DEVICE void add_products(const RefinePixel& pixel, float qx, float qy, float w,
                                  float* sums) {
  const float counted = maximum(pixel.mask - 1.0F, 0.0F) * w;
  const float by_value = pixel.value * counted;
  const float by_x = pixel.gradient_x * w;
  const float by_y = pixel.gradient_y * w;
  sums[0] += by_value;
  sums[1] += counted;
  sums[2] = fused(counted, qx, sums[2]);
  sums[3] = fused(counted, qy, sums[3]);
  sums[4] = fused(by_value, qx, sums[4]);
  sums[5] = fused(by_value, qy, sums[5]);
  sums[kByX] += by_x;
  sums[kByX + 1] += by_y;
  sums[kByX + 2] = fused(by_y, qx, fused(-by_x, qy, sums[kByX + 2]));
  sums[kByX + 3] = fused(by_x, qx, fused(by_y, qy, sums[kByX + 3]));
  sums[kSumSquare] = fused(counted, w, sums[kSumSquare]);
}

// Adds a group's products, of the picture less `middle`. kCubic: of both kinds of samples.
template <bool kCubic>
PATTERND_DEVICE void sum_group(const RefinePattern& refine, const TracePattern& pattern,
                               const TraceImage& image, const SamplingGrid& grid, float middle,
                               const RefineGroup& group, float (&sums)[kPieceSums]) {
  const float width = static_cast<float>(pattern.width);
  const float per_width = reciprocal(width);
  const float first_row = static_cast<float>(group.piece * refine.piece_rows);
  float x[kRefineAtOnce];
  float y[kRefineAtOnce];
  Located at[kRefineAtOnce];
  BothSamples values[kRefineAtOnce];
#pragma unroll
  for (int i = 0; i < kRefineAtOnce; ++i) {
    const float index = static_cast<float>(group.first + i * threads_x());
    // The quotient's whole part, as the nearest to half less; half a pixel keeps it from the edge.
    const float row = nearest(fused(index + 0.5F, per_width, -0.5F));
    x[i] = fused(row, -width, index);
    y[i] = first_row + row;
    at[i] = locate_inside(grid, x[i], y[i]);
  }
  if (grid.inside == 0) {
#pragma unroll
    for (int i = 0; i < kRefineAtOnce; ++i) clip(image, grid, at[i]);
  }
#pragma unroll
  for (int i = 0; i < kRefineAtOnce; ++i) {
    if (kCubic)
      values[i] = both_at(image, grid, at[i]);
    else
      values[i].bilinear = bilinear_at(image, grid, at[i]);
  }
#pragma unroll
  for (int i = 0; i < kRefineAtOnce; ++i) {
    const RefinePixel& pixel = group.pixels[i];
    const float seen = minimum(pixel.mask, 1.0F) * at[i].visible;
    const float qx = static_cast<float>(refine.first_column) + x[i];
    const float qy = static_cast<float>(refine.first_row) + y[i];
    const float w = (values[i].bilinear - middle) * seen;
    add_products(pixel, qx, qy, w, sums);
    sums[kScoreW] += w;
    sums[kScoreWW] = fused(w, w, sums[kScoreWW]);
    sums[kScoreTW] = fused(pixel.value, w, sums[kScoreTW]);
    if (kCubic) add_products(pixel, qx, qy, (values[i].cubic - middle) * seen, sums + kCubicSums);
  }
}

// Angle and scale where they are free; those of them that are not add nothing.
PATTERND_DEVICE void leave_out_unused(const RefinePattern& refine, float* sums) {
  if (refine.with_angle == 0) sums[kByX + 2] = sums[kByX + 3];
  if (refine.with_angle == 0 && refine.with_scale == 0) sums[kByX + 2] = 0;
  if (refine.with_angle == 0 || refine.with_scale == 0) sums[kByX + 3] = 0;
}

// The block's sum over a piece that belongs to this lane.
PATTERND_DEVICE float piece_total(int piece) {
  const float(&sums)[kPoseWarps][kPieceSums] = refine_memory().pieces[piece];
  double even = 0;
  double odd = 0;
#pragma unroll 2
  for (int warp = 0; warp < threads_x() / kWarpSize; warp += 2) {
    even += static_cast<double>(sums[warp][thread_x()]);
    if (warp + 1 < threads_x() / kWarpSize) odd += static_cast<double>(sums[warp + 1][thread_x()]);
  }
  return static_cast<float>(even + odd);
}

// The sums over all pieces from those of each warp, into shared memory; one warp.
PATTERND_DEVICE void take_totals(int pieces) {
  const Team& team = team_memory();
  double total = 0;
  if (team.size == 1) {
    for (int piece = 0; piece < pieces; ++piece) total += static_cast<double>(piece_total(piece));
  } else {
    for (int piece = team.member; piece < pieces; piece += team.size)
      give_sum(piece, piece_total(piece));
    total = team_total(pieces);
  }
  refine_memory().totals[thread_x()] = total;
  warp_barrier();
}

// One pass over the picture at a grid; the totals stand in the first warp's memory. `group` is the
// first of this block's, before and after.
template <bool kCubic>
PATTERND_DEVICE void sum_picture(const RefinePattern& refine, const TracePattern& pattern,
                                 const TraceImage& image, const SamplingGrid& grid,
                                 RefineGroup& group) {
  const Team& team = team_memory();
  const int pixels = refine.piece_rows * pattern.width;
  const int step = kRefineAtOnce * threads_x();
  const Located centre = locate(image, grid, pattern.width / 2, pattern.height / 2);
  const float middle = bilinear_at(image, grid, centre) * centre.visible;
#pragma unroll 1
  for (int piece = team.member; piece < refine.pieces; piece += team.size) {
    float sums[kPieceSums] = {};
#pragma unroll 1
    for (int first = 0; first < pixels; first += step) {
      sum_group<kCubic>(refine, pattern, image, grid, middle, group, sums);
      const bool goes_on = first + step < pixels;
      const int after = piece + team.size < refine.pieces ? piece + team.size : team.member;
      if (goes_on || first > 0 || after != piece)
        fetch_group(refine, pattern, goes_on ? piece : after, goes_on ? first + step : 0, group);
    }
    leave_out_unused(refine, sums);
    if (kCubic) leave_out_unused(refine, sums + kCubicSums);
    refine_memory().pieces[piece][thread_x() / kWarpSize][thread_x() % kWarpSize] =
        kCubic ? warp_totals(sums) : half_warp_totals(sums);
  }
  block_barrier();
  if (thread_x() < kWarpSize) take_totals(refine.pieces);
}

// The hidden pixels' share of what is known of the whole pattern.
PATTERND_DEVICE_CALL void sum_hidden(const RefinePattern& refine, const TracePattern& pattern,
                                     const TraceImage& image, const SamplingGrid& grid) {
  RefineMemory& memory = refine_memory();
  static_assert(kHiddenSums <= 2 * kWarpSize);
  float sums[2][kWarpSize] = {};
  for_each_place<1>(
      {thread_x(), threads_x()}, pattern.width, pattern.height,
      [&](const int(&x)[1], const int(&y)[1]) {
        const RefinePixel pixel =
            pixel_at(refine, y[0] * pattern.width + x[0], pattern.width * pattern.height);
        if (pixel.mask == 0.0F || locate(image, grid, x[0], y[0]).visible != 0.0F) return;
        float r[kRegressors];
        regressors_of(refine, pixel, x[0], y[0], r);
#pragma unroll
        for (int i = 0; i < kRegressors; ++i) {
#pragma unroll
          for (int j = 0; j < kRegressors; ++j) {
            if (j > i) continue;
            float& sum = sums[(i * (i + 1) / 2 + j) / kWarpSize][(i * (i + 1) / 2 + j) % kWarpSize];
            sum = fused(r[i], r[j], sum);
          }
        }
        const auto add = [&](int sum, float value) {
          sums[sum / kWarpSize][sum % kWarpSize] += value;
        };
        add(kHiddenPixels, r[1]);
        add(kHiddenN, 1.0F);
        add(kHiddenT, pixel.value);
        add(kHiddenTT, pixel.value * pixel.value);
      });
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const double total = block_totals(sums[half], half);
    const int sum = half * kWarpSize + thread_x();
    if (thread_x() < kWarpSize && sum < kHiddenSums) memory.hidden[sum] = total;
  }
}

// Inverts the shared memory's symmetric `matrix` by Cholesky's method, a lane a row, then a lane a
// column; one warp. False where it is singular to working precision.
PATTERND_DEVICE bool invert() {
  RefineMemory& memory = refine_memory();
  constexpr int n = kRegressors;
  const int lane = thread_x();
  const double diagonal = lane < n ? memory.matrix[lane][lane] : 1;
  bool good = diagonal > 0;
  // To a unit diagonal first: the regressors have very different sizes.
  const double scale = 1 / root(good ? diagonal : 1);
  if (lane < n) memory.scale[lane] = scale;
  warp_barrier();
  for (int j = 0; j < n; ++j) {
    double sum = 1;
    if (lane >= j && lane < n) {
      sum = memory.matrix[lane][j] * scale * memory.scale[j];
      for (int k = 0; k < j; ++k) sum -= memory.lower[lane][k] * memory.lower[j][k];
    }
    if (lane == j) {
      good = good && sum > 1e-9;
      memory.lower[j][j] = root(good ? sum : 1);
    }
    warp_barrier();
    if (lane > j && lane < n) memory.lower[lane][j] = sum / memory.lower[j][j];
    warp_barrier();
  }
  double x[n];
#pragma unroll
  for (int i = 0; i < n; ++i) {
    double sum = i == lane ? 1 : 0;
#pragma unroll
    for (int k = 0; k < n; ++k)
      if (k < i) sum -= memory.lower[i][k] * x[k];
    x[i] = sum / memory.lower[i][i];
  }
#pragma unroll
  for (int i = n - 1; i >= 0; --i) {
    double sum = x[i];
#pragma unroll
    for (int k = 0; k < n; ++k)
      if (k > i) sum -= memory.lower[k][i] * x[k];
    x[i] = sum / memory.lower[i][i];
  }
#pragma unroll
  for (int i = 0; i < n; ++i)
    if (lane < n) memory.matrix[i][lane] = x[i] * scale * memory.scale[i];
  warp_barrier();
  return warp_sum(good ? 0 : 1) == 0;
}

// The visible pixels' Gram matrix: that of all less that of the hidden ones, mostly few. One warp.
PATTERND_DEVICE void take_visible_gram(const RefinePattern& refine) {
  RefineMemory& memory = refine_memory();
  const double* all = global<const double>(refine.gram);
  for (int i = thread_x(); i < kRegressors * kRegressors; i += kWarpSize) {
    const int row = maximum(i / kRegressors, i % kRegressors);
    const int column = minimum(i / kRegressors, i % kRegressors);
    // Regressors that are not in use: a unit matrix.
    const double unused = row == column ? 1 : 0;
    memory.matrix[row][column] = memory.matrix[column][row] =
        row < refine.regressors
            ? all[row * kRegressors + column] - memory.hidden[row * (row + 1) / 2 + column]
            : unused;
  }
  warp_barrier();
}

// Into `matrix` the inverse Gram matrix of the visible pixels; one warp. False where it is
// singular.
PATTERND_DEVICE_CALL bool invert_visible(const RefinePattern& refine) {
  take_visible_gram(refine);
  return invert();
}

// The inverse Gram matrix of the pixels that are visible.
PATTERND_DEVICE const double (&inverse_in_use())[kRegressors][kRegressors] {
  RefineMemory& memory = refine_memory();
  return memory.grid.inside != 0 ? memory.inverse : memory.matrix;
}

// The regressions' coefficients, half a warp each; one warp. False where it cannot be done.
PATTERND_DEVICE bool solve(const RefinePattern& refine) {
  RefineMemory& memory = refine_memory();
  if (memory.grid.inside == 0 && !invert_visible(refine)) return false;
  const int kind = thread_x() / kCubicSums;
  const int number = thread_x() % kCubicSums;
  const double* totals = memory.totals + kind * kCubicSums;
  const double(&row)[kRegressors] = inverse_in_use()[minimum(number, kRegressors - 1)];
  double even = 0;
  double odd = 0;
  static_assert(kRegressors % 2 == 0);
#pragma unroll
  for (int i = 0; i < kRegressors; i += 2) {
    even = fused(row[i], totals[i], even);
    odd = fused(row[i + 1], totals[i + 1], odd);
  }
  if (number < kRegressors) memory.coefficients[kind][number] = even + odd;
  warp_barrier();
  return true;
}

// What the regression leaves, a pixel and degree of freedom.
PATTERND_DEVICE double residual_of(const RefinePattern& refine, int kind) {
  const RefineMemory& memory = refine_memory();
  const double* totals = memory.totals + kind * kCubicSums;
  const double pixels =
      refine.counted - (memory.grid.inside != 0 ? 0 : memory.hidden[kHiddenPixels]);
  double left = totals[kSumSquare];
#pragma unroll
  for (int i = 0; i < kRegressors; ++i)
    left = fused(-memory.coefficients[kind][i], totals[i], left);
  const double freedom = pixels - refine.regressors;
  return (left > 0 ? left : 0) * inverse_of(freedom > 1 ? freedom : 1);
}

// What a regression finds the pose to be off by, in pixels of the pattern and radians. It is small,
// so floats do: it is this that others wait for.
struct PoseStep {
  float x, y, turn, growth;
};

// A share of the step found by a kind of samples; false where the pattern is not to be seen.
PATTERND_DEVICE bool step_of(const RefinePattern& refine, int kind, float share, PoseStep& step) {
  const double(&from)[kRegressors] = refine_memory().coefficients[kind];
  const float gain = static_cast<float>(from[0]);
  const float per_gain = share * reciprocal(gain);
  const float sixth = static_cast<float>(from[kByX + 2]) * per_gain;
  const float seventh = static_cast<float>(from[kByX + 3]) * per_gain;
  step = {static_cast<float>(from[kByX]) * per_gain, static_cast<float>(from[kByX + 1]) * per_gain,
          refine.with_angle != 0 ? sixth : 0,
          refine.with_scale == 0 ? 0 : (refine.with_angle != 0 ? seventh : sixth)};
  return gain > 1e-6F || gain < -1e-6F;
}

// By how many pixels of the pattern its centre and farthest pixel move.
PATTERND_DEVICE float reach_of(const PoseStep& step) {
  return length_of(step.x, step.y) +
         (size_of(step.turn) + size_of(step.growth)) * refine_memory().radius;
}

// The pose without what it is off by; directions are those of its grid.
PATTERND_DEVICE TracedPose moved_by(const RefinePattern& refine, const TracePattern& pattern,
                                    const PoseStep& step, TracedPose at) {
  const SamplingGrid& grid = refine_memory().grid;
  const float pixel = static_cast<float>(1 << pattern.image_level);
  at.x -= static_cast<double>(pixel * (grid.ux * step.x - grid.uy * step.y));
  at.y -= static_cast<double>(pixel * (grid.uy * step.x + grid.ux * step.y));
  at.angle_deg -= static_cast<double>(step.turn) * (1 / kRadPerDeg);
  if (refine.with_scale != 0)
    at.scale *= static_cast<double>(reciprocal(1 + maximum(step.growth, -0.5F)));
  return at;
}

// Whether the pose is no farther from where it started than a step of the search may be off.
PATTERND_DEVICE bool is_near(const TracePattern& pattern, const TracedPose& start,
                             const TracedPose& at) {
  const float spacing = static_cast<float>(pattern.spacing);
  const float pixel = spacing * static_cast<float>(start.scale);
  const float grown = size_of(static_cast<float>(at.scale - start.scale)) * spacing;
  const float turned =
      size_of(static_cast<float>(at.angle_deg - start.angle_deg)) * static_cast<float>(kRadPerDeg);
  return length_of(static_cast<float>(at.x - start.x), static_cast<float>(at.y - start.y)) +
             refine_memory().radius * fused(turned, pixel, grown) <
         kRunawayPx * pixel;
}

// Score, visible share and polarity from the sums of the last pass, into shared memory; one thread.
PATTERND_DEVICE void take_score(const TracePattern& pattern) {
  RefineMemory& memory = refine_memory();
  const bool complete = memory.grid.inside != 0;
  const double n = pattern.counted - (complete ? 0 : memory.hidden[kHiddenN]);
  const double t = complete ? 0 : -memory.hidden[kHiddenT];
  const double tt = pattern.energy - (complete ? 0 : memory.hidden[kHiddenTT]);
  const double score = score_of(n, t, tt, memory.totals[kScoreW], memory.totals[kScoreWW],
                                memory.totals[kScoreTW], pattern.least_contrast);
  memory.visible = complete ? 1 : n * inverse_of(pattern.counted > 1 ? pattern.counted : 1);
  memory.inverted = pattern.any_polarity != 0 && score < 0 ? 1 : 0;
  // A sample more or less by rounding is not a question of visibility.
  const bool seen = n + 0.5 >= pattern.least_visible * pattern.counted;
  memory.score = !seen ? 0 : (memory.inverted != 0 ? -score : score);
}

PATTERND_DEVICE void give_score(TracedCandidate& candidate) {
  const RefineMemory& memory = refine_memory();
  candidate.score = memory.score;
  candidate.visible = memory.visible;
  candidate.inverted = memory.inverted;
}

// The pose converged; one thread.
PATTERND_DEVICE int settle_pose(const RefinePattern& refine, int kind, const TracedPose& at,
                                TracedCandidate& candidate) {
  const double(&inverse)[kRegressors][kRegressors] = inverse_in_use();
  give_score(candidate);
  candidate.pose = at;
  candidate.residual = residual_of(refine, kind);
  candidate.gain = refine_memory().coefficients[kind][0];
  candidate.inverse[0] = inverse[kByX][kByX];
  candidate.inverse[1] = inverse[kByX + 1][kByX + 1];
  candidate.inverse[2] = inverse[kByX][kByX + 1];
  candidate.inverse[3] = inverse[kByX + 2][kByX + 2];
  return kConverged;
}

// The step that the bilinear samples of a pass say, and whether it is the last; one thread.
PATTERND_DEVICE int step_by_bilinear(const RefinePattern& refine, const TracePattern& pattern,
                                     const RefineLimits& limits, const TracedPose& start,
                                     PoseStep& step, TracedPose& at) {
  RefineMemory& memory = refine_memory();
  const float share = memory.share;
  if (!step_of(refine, 0, share, step)) return kLost;
  const float moved = reach_of(step);
  at = moved_by(refine, pattern, step, at);
  if (!is_near(pattern, start, at)) return kLost;
  // Steps that don't shrink overshoot: shorter ones settle.
  if (moved > 0.5F * memory.previous) memory.share = maximum(0.5F * share, 0.25F);
  memory.previous = moved;
  const bool last = ++memory.iteration == limits.iterations;
  if (moved <= (last ? limits.nearly_px : limits.still_px)) return kConverged;
  return last ? kLost : kRefining;
}

// The CPU takes the first cubic step from where the bilinear samples' last one leads. Taken from
// where that starts, by the cubic samples of the same pass, it ends elsewhere by the share of the
// bilinear step that a second one would find again: hardly any where the pattern looks as it
// should, most of it where it does not. So a pass is saved where the part of the score that is
// missing, times the bilinear step, is this share of what counts as still. Over 300 scenes the two
// ends were 0.003 px apart at most, 0.0002 where the score was over 0.95.
inline constexpr float kAsGoodAsThere = 0.1F;

// A step of the regression, its sums being known: moves the pose and says how it goes on; one
// thread. First by bilinear samples, then some by cubic ones.
template <bool kCubic>
PATTERND_DEVICE int step_pose(const RefinePattern& refine, const TracePattern& pattern,
                              const RefineLimits& limits, TracedCandidate& candidate,
                              TracedPose& at) {
  RefineMemory& memory = refine_memory();
  const TracedPose here = at;
  PoseStep step = {};
  if (memory.cubic_steps < 0) {
    const int status = step_by_bilinear(refine, pattern, limits, candidate.pose, step, at);
    if (status != kConverged) return status;
    take_score(pattern);
    if (!kCubic) return settle_pose(refine, 0, at, candidate);
    memory.cubic_steps = 0;
    if ((1.0F - static_cast<float>(memory.score)) * reach_of(step) >
        kAsGoodAsThere * limits.still_px)
      return kRefining;
  }
  PoseStep cubic;
  if (!step_of(refine, 1, 1, cubic)) return kLost;
  at = moved_by(refine, pattern, cubic, here);
  if (!is_near(pattern, candidate.pose, at)) return kLost;
  const PoseStep rest = {cubic.x - step.x, cubic.y - step.y, cubic.turn - step.turn,
                         cubic.growth - step.growth};
  if (++memory.cubic_steps == limits.cubic_steps || reach_of(rest) <= limits.still_px)
    return settle_pose(refine, 1, at, candidate);
  return kRefining;
}

// From the sums of a pass to the next pose and grid, or the end; the first warp.
template <bool kCubic>
PATTERND_DEVICE void go_on(const RefinePattern& refine, const TracePattern& pattern,
                           const TraceImage& image, const RefineLimits& limits,
                           TracedCandidate& candidate) {
  RefineMemory& memory = refine_memory();
  if (limits.iterations == 0) {
    if (thread_x() != 0) return;
    take_score(pattern);
    give_score(candidate);
    memory.status = kConverged;
    return;
  }
  const bool solved = solve(refine);
  if (thread_x() != 0) return;
  TracedPose at = memory.at;
  const int status = solved ? step_pose<kCubic>(refine, pattern, limits, candidate, at) : kLost;
  memory.status = status;
  if (status != kRefining) return;
  memory.at = at;
  memory.grid = grid_of(pattern, image, at, 0);
}

// Before the first pass at a pose: its grid, the team and the first pixels, each by other threads.
PATTERND_DEVICE void start_at(const RefinePattern& refine, const TracePattern& pattern,
                              const TraceImage& image, const TracedPose& pose, RefineGroup& group) {
  RefineMemory& memory = refine_memory();
  fetch_group(refine, pattern, team_memory().member, 0, group);
  if (thread_x() >= kWarpSize) {
    for (int i = thread_x() - kWarpSize; i < kRegressors * kRegressors;
         i += threads_x() - kWarpSize)
      memory.inverse[i / kRegressors][i % kRegressors] = refine.inverse_gram[i];
    if (thread_x() == kWarpSize) learn_size();
  }
  if (thread_x() != 0) return;
  memory.at = pose;
  memory.radius =
      0.5F * length_of(static_cast<float>(pattern.width), static_cast<float>(pattern.height));
  memory.share = 1;
  memory.previous = 1e30F;
  memory.iteration = 0;
  memory.cubic_steps = -1;
  memory.status = kRefining;
  memory.grid = grid_of(pattern, image, pose, 0);
}

// All sums at the grid in shared memory; the first warp has them.
template <bool kCubic>
PATTERND_DEVICE void sum_all(const RefinePattern& refine, const TracePattern& pattern,
                             const TraceImage& image, RefineGroup& group) {
  // A copy: the first warp goes on to the next grid while others still ask this one.
  const SamplingGrid grid = refine_memory().grid;
  sum_picture<kCubic>(refine, pattern, image, grid, group);
  if (grid.inside == 0) {
    block_barrier();
    sum_hidden(refine, pattern, image, grid);
    warp_barrier();
  }
}

// Refines the candidate (in shared memory) and scores it there; true where it converged, else it
// stays as it was. Without an iteration it is scored as it stands. kCubic: ends
// with cubic steps.
template <bool kCubic>
PATTERND_DEVICE bool refine_pose(const RefinePattern& refine, const TracePattern& pattern,
                                 const TraceImage& image, TracedCandidate& candidate,
                                 const RefineLimits& limits) {
  if (refine.used == 0 && limits.iterations > 0) return false;
  RefineGroup group;
  block_barrier();
  start_at(refine, pattern, image, candidate.pose, group);
  block_barrier();
  while (refine_memory().status == kRefining) {
    sum_all<kCubic>(refine, pattern, image, group);
    if (thread_x() < kWarpSize) go_on<kCubic>(refine, pattern, image, limits, candidate);
    block_barrier();
  }
  const bool converged = refine_memory().status == kConverged;
  block_barrier();
  return converged;
}

// Puts a pose that left the allowed angles or scales back to the nearest allowed one; whether it
// had to.
PATTERND_DEVICE bool bring_inside(const AllowedPoses& allowed, TracedPose& pose) {
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

}  // namespace patternd::cuda
