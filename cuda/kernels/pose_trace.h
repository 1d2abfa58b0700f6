// One step of the trace at one level (T14, T15): a pose is followed to the best of its neighbours
// in shift, angle and scale. The GPU's version of pipeline/trace.cpp, with its steps.
//
// A block works on one pose. The picture is sampled in the pattern's upright frame, a tile with a
// rim of one pixel at a time in shared memory, and nine scores (3 × 3 shifts) come out of one pass
// over it. Every thread follows the same decisions, from scores in shared memory.
#pragma once

#include "cuda/kernels/pose_sampling.h"

namespace patternd::cuda {

inline constexpr int kTileWidth = 128;  // of samples, rim included
inline constexpr int kTileHeight = 16;
inline constexpr int kShifts = 9;
// A sample that has no source; no grey value less a middle comes near.
inline constexpr float kInvisible = -1e6F;
// Moves along one of shift, angle, scale before the trace settles.
inline constexpr int kMostMoves = 4;

struct TraceMemory {
  float tile[kTileHeight][kTileWidth + 1];
  double scratch[(kPoseWarps + 1) * 3 * kShifts];
  double scores[kShifts];
  double visible[kShifts];
  SamplingGrid grid;
  float middle;
};

PATTERND_DEVICE TraceMemory& trace_memory() { return pose_memory<TraceMemory>(); }

// What a look at a pose and its eight shifts shows.
struct Look {
  double score;  // the best
  double visible;
  double left, right, up, down;  // the scores beside the middle one
  int dx, dy;                    // of the best
};

// Samples a tile whose first pattern pixel is (x0, y0), rim included.
PATTERND_DEVICE void fill_tile(const TraceImage& image, int x0, int y0, int width, int height) {
  const int lane = thread_x() % kWarpSize;
  for (int y = thread_x() / kWarpSize; y < height; y += threads_x() / kWarpSize) {
    for (int x = lane; x < width; x += kWarpSize) {
      const Sampled s = sample_pose(image, trace_memory().grid, x0 + x, y0 + y);
      trace_memory().tile[y][x] = s.visible != 0.0F ? s.value - trace_memory().middle : kInvisible;
    }
  }
}

// Walks the pattern tile by tile: visit(tile_x, tile_y, x, y, T, mask) for each pixel that this
// thread has.
template <class Visit>
PATTERND_DEVICE void for_each_pixel(const TracePattern& pattern, const TraceImage& image,
                                    const Visit& visit) {
  constexpr int kInnerWidth = kTileWidth - 2;
  constexpr int kInnerHeight = kTileHeight - 2;
  const int lane = thread_x() % kWarpSize;
  const float* pixels = global<const float>(pattern.pixels);
  for (int y0 = 0; y0 < pattern.height; y0 += kInnerHeight) {
    for (int x0 = 0; x0 < pattern.width; x0 += kInnerWidth) {
      const int width = minimum(kInnerWidth, pattern.width - x0);
      const int height = minimum(kInnerHeight, pattern.height - y0);
      block_barrier();
      fill_tile(image, x0, y0, width + 2, height + 2);
      block_barrier();
      for (int y = thread_x() / kWarpSize; y < height; y += threads_x() / kWarpSize) {
        for (int x = lane; x < width; x += kWarpSize) {
          const float* pixel = pixels + 2 * ((y0 + y) * pattern.width + x0 + x);
          visit(x, y, pixel[0], pixel[1]);
        }
      }
    }
  }
}

// Nine scores where every sample is visible.
PATTERND_DEVICE void look_complete(const TracePattern& pattern, const TraceImage& image) {
  float sums[3 * kShifts] = {};
  for_each_pixel(pattern, image, [&](int x, int y, float t, float m) {
#pragma unroll
    for (int k = 0; k < kShifts; ++k) {
      const float w = trace_memory().tile[y + k / 3][x + k % 3];
      const float mw = m * w;
      sums[3 * k] = fused(t, w, sums[3 * k]);
      sums[3 * k + 1] += mw;
      sums[3 * k + 2] = fused(mw, w, sums[3 * k + 2]);
    }
  });
  const double* totals = block_sums(sums, trace_memory().scratch);
  const int k = thread_x();
  if (k < kShifts) {
    trace_memory().scores[k] = score_of(pattern.counted, 0, pattern.energy, totals[3 * k + 1],
                                        totals[3 * k + 2], totals[3 * k], pattern.least_contrast);
    trace_memory().visible[k] = pattern.counted;
  }
  block_barrier();
}

// The same over the visible samples, one shift after the other.
PATTERND_DEVICE void look_partly(const TracePattern& pattern, const TraceImage& image) {
  for (int k = 0; k < kShifts; ++k) {
    float sums[kVisibleSums] = {};
    for_each_pixel(pattern, image, [&](int x, int y, float t, float m) {
      const float w = trace_memory().tile[y + k / 3][x + k % 3];
      if (m == 0.0F || w == kInvisible) return;
      sums[kSumN] += 1.0F;
      sums[kSumT] += t;
      sums[kSumTT] = fused(t, t, sums[kSumTT]);
      sums[kSumW] += w;
      sums[kSumWW] = fused(w, w, sums[kSumWW]);
      sums[kSumTW] = fused(t, w, sums[kSumTW]);
    });
    const double* totals = block_sums(sums, trace_memory().scratch);
    if (thread_x() == 0) {
      trace_memory().visible[k] = totals[kSumN];
      trace_memory().scores[k] =
          score_of(totals[kSumN], totals[kSumT], totals[kSumTT], totals[kSumW], totals[kSumWW],
                   totals[kSumTW], pattern.least_contrast);
    }
  }
  block_barrier();
}

PATTERND_DEVICE_CALL Look look_around(const TracePattern& pattern, const TraceImage& image,
                                      const TracedPose& pose, int inverted) {
  block_barrier();
  if (thread_x() == 0) {
    trace_memory().grid = grid_of(pattern, image, pose, 1);
    // Any grey value near the window's will do: it keeps the sums of squares small.
    const Sampled s =
        sample_pose(image, trace_memory().grid, pattern.width / 2 + 1, pattern.height / 2 + 1);
    trace_memory().middle = s.visible != 0.0F ? s.value : 0.0F;
  }
  block_barrier();
  if (trace_memory().grid.inside != 0)
    look_complete(pattern, image);
  else
    look_partly(pattern, image);

  double scores[kShifts];
  Look out = {};
  double best = -2;
#pragma unroll
  for (int k = 0; k < kShifts; ++k) {
    double score = trace_memory().scores[k];
    if (trace_memory().visible[k] < pattern.least_visible * pattern.counted) score = 0;
    if (inverted != 0) score = -score;
    scores[k] = score;
    if (score > best) {
      best = score;
      out.dx = k % 3 - 1;
      out.dy = k / 3 - 1;
      out.visible = trace_memory().visible[k] / pattern.counted;
    }
  }
  out.score = best;
  out.up = scores[1];
  out.left = scores[3];
  out.right = scores[5];
  out.down = scores[7];
  return out;
}

// By (dx, dy) pixels of the pattern's level, in the pattern's frame.
PATTERND_DEVICE TracedPose shifted(const TracePattern& pattern, TracedPose pose, double dx,
                                   double dy) {
  const Turn turn = turn_of(pose.angle_deg);
  const double c = turn.cosine * pattern.spacing * pose.scale;
  const double s = turn.sine * pattern.spacing * pose.scale;
  pose.x += c * dx - s * dy;
  pose.y += s * dx + c * dy;
  return pose;
}

// Where the parabola through three equally spaced scores has its top, in steps from the middle.
PATTERND_DEVICE double parabola_top(double before, double middle, double after) {
  const double curvature = before - 2 * middle + after;
  if (!(curvature < -1e-9)) return 0;
  const double top = 0.5 * (before - after) / curvature;
  return top > 0.5 ? 0.5 : (top < -0.5 ? -0.5 : top);
}

enum Axis { kAngle, kScale };

PATTERND_DEVICE TracedPose stepped(const TracePattern& pattern, TracedPose pose, Axis axis,
                                   double steps) {
  if (axis == kAngle)
    pose.angle_deg += steps * pattern.angle_step_deg;
  else
    pose.scale *= 1 + steps * pattern.scale_step;
  return pose;
}

// Steps the pose along one axis to the best score and leaves it at the parabola's top.
PATTERND_DEVICE_CALL void follow(const TracePattern& pattern, const TraceImage& image, int inverted,
                                 Axis axis, TracedPose& pose, Look& middle) {
  TracedPose low = stepped(pattern, pose, axis, -1);
  TracedPose high = stepped(pattern, pose, axis, 1);
  Look before = look_around(pattern, image, low, inverted);
  Look after = look_around(pattern, image, high, inverted);
  for (int move = 0; move < kMostMoves; ++move) {
    if (before.score > middle.score && before.score >= after.score) {
      high = pose;
      pose = low;
      after = middle;
      middle = before;
      low = stepped(pattern, pose, axis, -1);
      before = look_around(pattern, image, low, inverted);
    } else if (after.score > middle.score) {
      low = pose;
      pose = high;
      before = middle;
      middle = after;
      high = stepped(pattern, pose, axis, 1);
      after = look_around(pattern, image, high, inverted);
    } else {
      break;
    }
  }
  pose = stepped(pattern, pose, axis, parabola_top(before.score, middle.score, after.score));
}

// Follows the best shift until it is in the middle.
PATTERND_DEVICE Look settle(const TracePattern& pattern, const TraceImage& image, int inverted,
                            TracedPose& pose) {
  Look around = look_around(pattern, image, pose, inverted);
  for (int move = 0; move < kMostMoves && (around.dx != 0 || around.dy != 0); ++move) {
    const TracedPose moved = shifted(pattern, pose, around.dx, around.dy);
    const Look next = look_around(pattern, image, moved, inverted);
    // Resampled half-way positions can differ by rounding: go on only where it gets better.
    if (next.score < around.score) break;
    pose = moved;
    around = next;
  }
  return around;
}

// One level: to the best place near by, with its score.
PATTERND_DEVICE_CALL void trace_step(const TracePattern& pattern, const TraceImage& image,
                                     TracedCandidate& candidate) {
  TracedPose best = candidate.pose;
  Look around = settle(pattern, image, candidate.inverted, best);
  if (pattern.angle_step_deg > 0) follow(pattern, image, candidate.inverted, kAngle, best, around);
  if (pattern.scale_step > 0) follow(pattern, image, candidate.inverted, kScale, best, around);
  if (around.dx == 0 && around.dy == 0) {
    best = shifted(pattern, best, parabola_top(around.left, around.score, around.right),
                   parabola_top(around.up, around.score, around.down));
  } else {
    best = shifted(pattern, best, around.dx, around.dy);
  }
  candidate.pose = best;
  candidate.score = around.score;
  candidate.visible = around.visible;
}

}  // namespace patternd::cuda
