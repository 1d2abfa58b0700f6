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

// What one pass over the pattern sums up: the picture's products with the regressors, its square,
// and the NCC's sums over the whole mask.
enum PictureSum { kSumSquare = kRegressors, kScoreW, kScoreWW, kScoreTW, kPictureSums };
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
  double totals[kPictureSums];
  double hidden[kHiddenSums];
  double matrix[kRegressors][kRegressors];
  double lower[kRegressors][kRegressors];
  double scale[kRegressors];
  double coefficients[kRegressors];
  double information[kRegressors];  // the diagonal of the inverse Gram matrix
  double xy;                        // and its entry of the two shifts
  TracedPose at;
  SamplingGrid grid;
  float radius;    // of the pattern, pixels
  float share;     // of a step that is taken
  float previous;  // pixels moved by the step before
  int iteration;
  int cubic_step;  // counting from 1; 0: samples are bilinear still
  int status;
  double score;  // at the last bilinear pose
  double visible;
  int inverted;
  float middle;  // a grey value near the window's
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

PATTERND_DEVICE RefinePixel pixel_at(const RefinePattern& refine, const TracePattern& pattern,
                                     int x, int y) {
  if (y >= pattern.height) return {0.0F, 0.0F, 0.0F, 0.0F};
  const Float4 p = load_float4(global<const Float4>(refine.pixels) + y * pattern.width + x);
  return {p.x, p.y, p.z, p.w};
}

// The sums over one piece of the pattern at a grid.
template <bool kCubic>
PATTERND_DEVICE void sum_piece(const RefinePattern& refine, const TracePattern& pattern,
                               const TraceImage& image, const SamplingGrid& grid, int piece,
                               float (&sums)[kPieceSums]) {
  constexpr int kAtOnce = kCubic ? 2 : 4;
  const float middle = refine_memory().middle;
  const int first_row = piece * refine.piece_rows;
  const int rows = minimum(refine.piece_rows, pattern.height - first_row);
  for_each_place<kAtOnce>(
      {thread_x(), threads_x()}, pattern.width, rows,
      [&](const int(&x)[kAtOnce], const int(&row)[kAtOnce]) {
        RefinePixel pixels[kAtOnce];
        Located at[kAtOnce];
        float values[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          pixels[i] =
              pixel_at(refine, pattern, x[i], row[i] < rows ? first_row + row[i] : pattern.height);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) at[i] = locate(image, grid, x[i], first_row + row[i]);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          values[i] = kCubic ? cubic_at(image, grid, at[i]) : bilinear_at(image, grid, at[i]);
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const float seen = pixels[i].mask > 0.5F ? at[i].visible : 0.0F;
          const float w = (values[i] - middle) * seen;
          float r[kRegressors];
          regressors_of(refine, pixels[i], x[i], first_row + row[i], r);
#pragma unroll
          for (int k = 0; k < kRegressors; ++k) sums[k] = fused(r[k], w, sums[k]);
          const float ww = w * w;
          sums[kSumSquare] = fused(r[1], ww, sums[kSumSquare]);
          sums[kScoreW] += w;
          sums[kScoreWW] += ww;
          sums[kScoreTW] = fused(pixels[i].value, w, sums[kScoreTW]);
        }
      });
}

// The block's sums over a piece; one warp, a lane a sum.
PATTERND_DEVICE double piece_total(int piece) {
  double total = 0;
  if (thread_x() < kPieceSums)
    for (int warp = 0; warp < threads_x() / kWarpSize; ++warp)
      total += static_cast<double>(refine_memory().pieces[piece][warp][thread_x()]);
  return total;
}

// One pass over the picture at a grid; the totals stand in the first warp's memory.
template <bool kCubic>
PATTERND_DEVICE void sum_picture(const RefinePattern& refine, const TracePattern& pattern,
                                 const TraceImage& image, const SamplingGrid& grid) {
  static_assert(kPictureSums <= kPieceSums);
  RefineMemory& memory = refine_memory();
  const Team& team = team_memory();
  const int lane = thread_x() % kWarpSize;
#pragma unroll 1
  for (int piece = team.member; piece < refine.pieces; piece += team.size) {
    float sums[kPieceSums] = {};
    sum_piece<kCubic>(refine, pattern, image, grid, piece, sums);
    const float total = half_warp_totals(sums);
    if (lane < kPieceSums) memory.pieces[piece][thread_x() / kWarpSize][lane] = total;
  }
  block_barrier();
  if (thread_x() >= kWarpSize) return;
  double total = 0;
  if (team.size == 1) {
    for (int piece = 0; piece < refine.pieces; ++piece) total += as_given(piece_total(piece));
  } else {
    for (int piece = team.member; piece < refine.pieces; piece += team.size)
      give_sum(piece, piece_total(piece));
    total = team_total(refine.pieces);
  }
  if (lane < kPictureSums) memory.totals[lane] = total;
}

// The hidden pixels' share of what is known of the whole pattern.
PATTERND_DEVICE_CALL void sum_hidden(const RefinePattern& refine, const TracePattern& pattern,
                                     const TraceImage& image, const SamplingGrid& grid) {
  RefineMemory& memory = refine_memory();
  static_assert(kHiddenSums <= 2 * kWarpSize);
  float sums[2][kWarpSize] = {};
  for_each_place<1>({thread_x(), threads_x()}, pattern.width, pattern.height,
                    [&](const int(&x)[1], const int(&y)[1]) {
                      const RefinePixel pixel = pixel_at(refine, pattern, x[0], y[0]);
                      if (pixel.mask == 0.0F || locate(image, grid, x[0], y[0]).visible != 0.0F)
                        return;
                      float r[kRegressors];
                      regressors_of(refine, pixel, x[0], y[0], r);
                      int at = 0;
#pragma unroll
                      for (int i = 0; i < kRegressors; ++i) {
#pragma unroll
                        for (int j = 0; j <= i; ++j, ++at)
                          sums[at / kWarpSize][at % kWarpSize] =
                              fused(r[i], r[j], sums[at / kWarpSize][at % kWarpSize]);
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
PATTERND_DEVICE_CALL bool invert() {
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
    for (int k = 0; k < i; ++k) sum -= memory.lower[i][k] * x[k];
    x[i] = sum / memory.lower[i][i];
  }
#pragma unroll
  for (int i = n - 1; i >= 0; --i) {
    double sum = x[i];
#pragma unroll
    for (int k = i + 1; k < n; ++k) sum -= memory.lower[k][i] * x[k];
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

// The regression's coefficients; one warp. False where it cannot be done.
PATTERND_DEVICE bool solve(const RefinePattern& refine) {
  RefineMemory& memory = refine_memory();
  const int lane = thread_x();
  const bool complete = memory.grid.inside != 0;
  if (!complete) {
    take_visible_gram(refine);
    if (!invert()) return false;
  }
  const double* inverse =
      complete ? global<const double>(refine.inverse_gram) : &memory.matrix[0][0];
  double own = 0;
  if (lane < kRegressors)
    for (int j = 0; j < kRegressors; ++j) own += inverse[lane * kRegressors + j] * memory.totals[j];
  if (lane < kRegressors) {
    memory.coefficients[lane] = own;
    memory.information[lane] = inverse[lane * kRegressors + lane];
  }
  if (lane == 0) memory.xy = inverse[kByX * kRegressors + kByX + 1];
  warp_barrier();
  const double gain = memory.coefficients[0];
  return gain > 1e-6 || gain < -1e-6;
}

// What the regression leaves, a pixel and degree of freedom.
PATTERND_DEVICE double residual_of(const RefinePattern& refine) {
  const RefineMemory& memory = refine_memory();
  const double pixels =
      refine.counted - (memory.grid.inside != 0 ? 0 : memory.hidden[kHiddenPixels]);
  double left = memory.totals[kSumSquare];
#pragma unroll
  for (int i = 0; i < kRegressors; ++i) left -= memory.coefficients[i] * memory.totals[i];
  const double freedom = pixels - refine.regressors;
  return (left > 0 ? left : 0) / (freedom > 1 ? freedom : 1);
}

PATTERND_DEVICE float length_of(float x, float y) { return root(fused(x, x, y * y)); }
PATTERND_DEVICE float size_of(float value) { return value < 0 ? -value : value; }

// Moves the pose by the step that was found. Returns by how many pixels of the pattern its centre
// and farthest pixel move; one thread. The step is small, so floats do: it is they that others wait
// for.
PATTERND_DEVICE float move_pose(const RefinePattern& refine, const TracePattern& pattern) {
  RefineMemory& memory = refine_memory();
  TracedPose& at = memory.at;
  const float per_gain = memory.share / static_cast<float>(memory.coefficients[0]);
  const float dx = static_cast<float>(memory.coefficients[kByX]) * per_gain;
  const float dy = static_cast<float>(memory.coefficients[kByX + 1]) * per_gain;
  const float sixth = static_cast<float>(memory.coefficients[kByX + 2]) * per_gain;
  const float seventh = static_cast<float>(memory.coefficients[kByX + 3]) * per_gain;
  const float turn = refine.with_angle != 0 ? sixth : 0;
  const float growth = refine.with_scale == 0 ? 0 : (refine.with_angle != 0 ? seventh : sixth);
  const Turn direction = turn_of(at.angle_deg);
  const float size = static_cast<float>(pattern.spacing) * static_cast<float>(at.scale);
  at.x -= static_cast<double>(size * (direction.cosine * dx - direction.sine * dy));
  at.y -= static_cast<double>(size * (direction.sine * dx + direction.cosine * dy));
  at.angle_deg -= static_cast<double>(turn) * (1 / kRadPerDeg);
  if (refine.with_scale != 0)
    at.scale /= static_cast<double>(1 + (growth > -0.5F ? growth : -0.5F));
  return length_of(dx, dy) + (size_of(turn) + size_of(growth)) * memory.radius;
}

// How far the pose is from where it started, in pixels of the pattern.
PATTERND_DEVICE float distance_moved(const RefinePattern& refine, const TracePattern& pattern,
                                     const TracedPose& start) {
  const RefineMemory& memory = refine_memory();
  const TracedPose& at = memory.at;
  const float grown =
      refine.with_scale == 0 ? 0.0F : static_cast<float>(at.scale / start.scale - 1);
  const float turned = static_cast<float>(at.angle_deg - start.angle_deg);
  return length_of(static_cast<float>(at.x - start.x), static_cast<float>(at.y - start.y)) /
             (static_cast<float>(pattern.spacing) * static_cast<float>(start.scale)) +
         memory.radius * (size_of(turned) * static_cast<float>(kRadPerDeg) + size_of(grown));
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
  memory.visible = n / (pattern.counted > 1 ? pattern.counted : 1);
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
PATTERND_DEVICE int settle_pose(const RefinePattern& refine, TracedCandidate& candidate) {
  const RefineMemory& memory = refine_memory();
  give_score(candidate);
  candidate.pose = memory.at;
  candidate.residual = residual_of(refine);
  candidate.gain = memory.coefficients[0];
  candidate.inverse[0] = memory.information[kByX];
  candidate.inverse[1] = memory.information[kByX + 1];
  candidate.inverse[2] = memory.xy;
  candidate.inverse[3] = memory.information[kByX + 2];
  return kConverged;
}

// One step of the regression, its sums being known: moves the pose and says how it goes on; one
// thread. First with bilinear samples, then some with cubic ones.
PATTERND_DEVICE int step_pose(const RefinePattern& refine, const TracePattern& pattern,
                              const RefineLimits& limits, TracedCandidate& candidate) {
  RefineMemory& memory = refine_memory();
  if (memory.cubic_step > 0) memory.share = 1;
  const float moved = move_pose(refine, pattern);
  if (!(distance_moved(refine, pattern, candidate.pose) < kRunawayPx)) return kLost;
  if (memory.cubic_step > 0) {
    if (moved <= limits.still_px || memory.cubic_step == limits.cubic_steps)
      return settle_pose(refine, candidate);
    ++memory.cubic_step;
    return kRefining;
  }
  // Steps that don't shrink overshoot: shorter ones settle.
  if (moved > 0.5F * memory.previous) memory.share = maximum(0.5F * memory.share, 0.25F);
  memory.previous = moved;
  const bool last = ++memory.iteration == limits.iterations;
  if (moved > (last ? limits.nearly_px : limits.still_px)) return last ? kLost : kRefining;
  take_score(pattern);
  if (limits.cubic_steps == 0) return settle_pose(refine, candidate);
  memory.cubic_step = 1;
  return kRefining;
}

// The grid at the pose where refinement stands, and at first the middle; one thread.
PATTERND_DEVICE void lay_grid(const TracePattern& pattern, const TraceImage& image, bool first) {
  RefineMemory& memory = refine_memory();
  memory.grid = grid_of(pattern, image, memory.at, 0);
  if (!first) return;
  const Located centre = locate(image, memory.grid, pattern.width / 2, pattern.height / 2);
  memory.middle = bilinear_at(image, memory.grid, centre) * centre.visible;
}

// All sums at the grid in shared memory; the first warp has them.
template <bool kCubicToo>
PATTERND_DEVICE void sum_all(const RefinePattern& refine, const TracePattern& pattern,
                             const TraceImage& image, bool cubic) {
  // A copy: the first warp goes on to the next grid while others still ask this one.
  const SamplingGrid grid = refine_memory().grid;
  if (kCubicToo && cubic)
    sum_picture<true>(refine, pattern, image, grid);
  else
    sum_picture<false>(refine, pattern, image, grid);
  if (grid.inside == 0) {
    block_barrier();
    sum_hidden(refine, pattern, image, grid);
  }
}

// Refines the candidate (in shared memory) and scores it there; true where it converged, else it
// stays as it was. kCubicToo: where limits.cubic_steps may not be 0.
template <bool kCubicToo>
PATTERND_DEVICE_CALL bool refine_pose(const RefinePattern& refine, const TracePattern& pattern,
                                      const TraceImage& image, TracedCandidate& candidate,
                                      const RefineLimits& limits) {
  RefineMemory& memory = refine_memory();
  if (refine.used == 0) return false;
  block_barrier();
  if (thread_x() == 0) {
    memory.at = candidate.pose;
    memory.radius =
        0.5F * length_of(static_cast<float>(pattern.width), static_cast<float>(pattern.height));
    memory.share = 1;
    memory.previous = 1e30F;
    memory.iteration = 0;
    memory.cubic_step = 0;
    memory.status = kRefining;
    lay_grid(pattern, image, true);
  }
  block_barrier();
  while (memory.status == kRefining) {
    sum_all<kCubicToo>(refine, pattern, image, memory.cubic_step > 0);
    if (thread_x() < kWarpSize) {
      warp_barrier();
      const bool solved = solve(refine);
      if (thread_x() == 0) {
        memory.status = solved ? step_pose(refine, pattern, limits, candidate) : kLost;
        if (memory.status == kRefining) lay_grid(pattern, image, false);
      }
    }
    block_barrier();
  }
  const bool converged = memory.status == kConverged;
  block_barrier();
  return converged;
}

// Scores the candidate (in shared memory) at its pose.
PATTERND_DEVICE_CALL void score_candidate(const RefinePattern& refine, const TracePattern& pattern,
                                          const TraceImage& image, TracedCandidate& candidate) {
  block_barrier();
  if (thread_x() == 0) {
    refine_memory().at = candidate.pose;
    lay_grid(pattern, image, true);
  }
  block_barrier();
  sum_all<false>(refine, pattern, image, false);
  warp_barrier();
  if (thread_x() == 0) {
    take_score(pattern);
    give_score(candidate);
  }
  block_barrier();
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
