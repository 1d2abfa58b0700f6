// One step of the trace at one level (T14, T15): a pose is followed to the best of its neighbours
// in shift, angle and scale. The GPU's version of pipeline/trace.cpp, with its steps.
//
// A block works on one candidate, and looks at up to three poses at a time: the one that it stands
// at and those one step to either side, which it wants next unless the first look moves it. These
// share the warps, which sample the picture in the pattern's upright frame, a strip with a rim of
// one pixel at a time in shared memory, and nine scores (3 × 3 shifts) come out of one pass over
// it. One thread decides from the scores where to look next.
#pragma once

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/pose_sampling.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

inline constexpr int kPoses = 3;
inline constexpr int kShifts = 9;
inline constexpr int kMiddleShift = kShifts / 2;
// Moves along one of shift, angle, scale before the trace settles.
inline constexpr int kMostMoves = 4;

// What a look at a pose and its eight shifts shows.
struct alignas(16) Look {
  float score;  // the best
  float visible;
  float left, right, up, down;  // the scores beside the middle one
  int dx, dy;                   // of the best
};

enum TracePhase { kSettling, kFollowing, kResettling };
enum TraceAxis { kAngle, kScale, kNoAxis };
enum TraceSide { kMiddle, kBefore, kAfter };

// Where the trace of a candidate stands. All lanes of the first warp decide alike, each in its own
// registers, for one alone would wait for every number that it fetches or leaves; while all look,
// it waits in shared memory.
struct TraceState {
  TracedPose at;
  TracedPose trial;  // where settling looks now
  Look around;       // of `at`
  Look before;       // of the poses one step of the axis to either side
  Look after;
  int phase;
  int axis;
  int moves;
  int first;   // the first look of settling
  int wanted;  // bits of the poses to look at; 0: done
};

struct TraceMemory {
  float tile[kPoses][kTileFloats];
  float scratch[kPoseWarps][kWarpSize];
  float scores[kPoses][kShifts];
  float visible[kPoses][kShifts];
  SamplingGrid grid[kPoses];
  Look look[kPoses];
  TraceState state;
  float middle;    // a grey value near the window's, which keeps the sums of squares small
  int wanted;      // bits of the poses to look at; 0: done
  int incomplete;  // bits of the poses that see only a part of the pattern
};

PATTERND_DEVICE TraceMemory& trace_memory() { return pose_memory<TraceMemory>(); }

// ---- Looking ------------------------------------------------------------------------------------

// Which of the poses of a mask this thread works on (−1: none), and with which others.
struct PoseThread {
  int pose;
  PixelThreads threads;
};
// Warps that each of the poses of a mask has.
PATTERND_DEVICE int warps_of_each(int poses) {
  static_assert(kPoses == 3);
  const int warps = threads_x() / kWarpSize;
  const int count = population(static_cast<u32>(poses));
  return count == 1 ? warps : (count == 2 ? warps / 2 : warps / 3);
}
PATTERND_DEVICE PoseThread pose_thread(int poses) {
  const int warps = warps_of_each(poses);
  const int warp = thread_x() / kWarpSize;
  const int place =
      (warp >= warps ? 1 : 0) + (warp >= 2 * warps ? 1 : 0) + (warp >= 3 * warps ? 1 : 0);
  int left = poses;
  for (int i = 0; i < place; ++i) left &= left - 1;
  return {left == 0 ? -1 : lowest_bit(static_cast<u32>(left)),
          {thread_x() - place * warps * kWarpSize, warps * kWarpSize}};
}

// A strip of the pattern, whose first pixel is (x, y).
struct Strip {
  int x, y, width, height;
  __device__ int pitch() const { return width + 2; }
};

// A sample that there is none of: it adds nothing to a sum, and no other is ever negative and 0.
inline constexpr float kHiddenSample = -0.0F;
PATTERND_DEVICE bool is_hidden(float sample) {
  union {
    float f;
    u32 bits;
  } of{sample};
  return of.bits == 0x80000000U;
}

// The picture's samples less `middle`.
PATTERND_DEVICE void fill_strip(const TraceImage& image, const PoseThread& own,
                                const Strip& strip) {
  constexpr int kAtOnce = 5;
  const SamplingGrid grid = trace_memory().grid[own.pose];
  float* tile = trace_memory().tile[own.pose];
  const float middle = trace_memory().middle;
  const int pitch = strip.pitch();
  const int rows = strip.height + 2;
  for_each_place<kAtOnce>(
      own.threads, pitch, rows, [&](const int(&x)[kAtOnce], const int(&y)[kAtOnce]) {
        Located at[kAtOnce];
        float values[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          at[i] = locate(image, grid, strip.x + x[i], strip.y + minimum(y[i], rows - 1));
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) values[i] = bilinear_at(image, grid, at[i]) - middle;
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (y[i] < rows)
            tile[y[i] * pitch + x[i]] = at[i].visible != 0.0F ? values[i] : kHiddenSample;
      });
}

struct alignas(8) TracePixel {
  float value, mask;
};

// Sums of nine shifts: ΣTW, ΣW, ΣW² over the mask; or of the hidden pixels ΣT, number, ΣT².
template <bool kHidden>
PATTERND_DEVICE void add_strip(const TracePattern& pattern, const PoseThread& own,
                               const Strip& strip, float (&sums)[kWarpSize]) {
  constexpr int kAtOnce = 4;
  const float* tile = trace_memory().tile[own.pose];
  const TracePixel* pixels =
      global<const TracePixel>(pattern.pixels) + strip.y * pattern.width + strip.x;
  const int pitch = strip.pitch();
  for_each_place<kAtOnce>(
      own.threads, strip.width, strip.height, [&](const int(&x)[kAtOnce], const int(&y)[kAtOnce]) {
        TracePixel p[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          p[i] = {0.0F, 0.0F};
          if (y[i] < strip.height) p[i] = pixels[y[i] * pattern.width + x[i]];
        }
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i) {
          const float* corner = tile + minimum(y[i], strip.height - 1) * pitch + x[i];
#pragma unroll
          for (int k = 0; k < kShifts; ++k) {
            const float sample = corner[k / 3 * pitch + k % 3];
            const float w = !kHidden ? sample : (is_hidden(sample) ? 1.0F : 0.0F);
            sums[k] = fused(p[i].value, w, sums[k]);
            sums[kShifts + k] = fused(p[i].mask, w, sums[kShifts + k]);
            sums[2 * kShifts + k] =
                fused(kHidden ? p[i].value * p[i].value : p[i].mask * w, w, sums[2 * kShifts + k]);
          }
        }
      });
}

// The sums over the whole pattern for the poses of a mask, as add_strip numbers them: those of each
// warp in `scratch`. For the hidden ones those of the visible pixels have been summed before. Ends
// at a barrier.
template <bool kHidden>
PATTERND_DEVICE_CALL void pattern_sums(const TracePattern& pattern, const TraceImage& image,
                                       int poses) {
  const PoseThread own = pose_thread(poses);
  float sums[kWarpSize] = {};
  const int most_width = pattern.strip_width;
  const int rows = pattern.strip_rows;
  // A pattern in one strip has its samples in shared memory still.
  const bool kept = kHidden && most_width >= pattern.width && rows >= pattern.height;
  for (int y = 0; y < pattern.height; y += rows) {
    for (int x = 0; x < pattern.width; x += most_width) {
      const Strip strip = {x, y, minimum(most_width, pattern.width - x),
                           minimum(rows, pattern.height - y)};
      if (!kept) {
        // The strip before has been read.
        if (x + y > 0) block_barrier();
        if (own.pose >= 0) fill_strip(image, own, strip);
        block_barrier();
      }
      if (own.pose >= 0) add_strip<kHidden>(pattern, own, strip, sums);
    }
  }
  trace_memory().scratch[thread_x() / kWarpSize][thread_x() % kWarpSize] = warp_totals(sums);
  block_barrier();
}

// The three sums of a pose's shift, all 0 where the pose is not among those that were summed.
struct ShiftSums {
  float first, second, third;
};
PATTERND_DEVICE ShiftSums shift_sums(int poses, int pose, int shift) {
  ShiftSums out = {};
  if ((poses >> pose & 1) == 0) return out;
  const int warps = warps_of_each(poses);
  const int first = warps * population(static_cast<u32>(poses) & ((1U << pose) - 1U));
#pragma unroll 4
  for (int warp = first; warp < first + warps; ++warp) {
    const float(&sums)[kWarpSize] = trace_memory().scratch[warp];
    out.first += sums[shift];
    out.second += sums[kShifts + shift];
    out.third += sums[2 * kShifts + shift];
  }
  return out;
}

// What nine scores show. `best` counts from the top left, row by row.
PATTERND_DEVICE Look look_of(const float (&scores)[kShifts], const float (&visible)[kShifts]) {
  float most = scores[0];
  int best = 0;
#pragma unroll
  for (int k = 1; k < kShifts; ++k) {
    const float score = scores[k];
    if (score > most) best = k;
    most = maximum(score, most);
  }
  return {most,
          visible[best],
          scores[kMiddleShift - 1],
          scores[kMiddleShift + 1],
          scores[1],
          scores[7],
          best % 3 - 1,
          best / 3 - 1};
}

// What the sums of the wanted poses show; one warp, a lane a shift of a pose.
PATTERND_DEVICE void judge(const TracePattern& pattern, int wanted, const ShiftSums& seen,
                           const ShiftSums& hidden, int inverted) {
  TraceMemory& memory = trace_memory();
  const int lane = thread_x();
  const int pose = lane / kShifts;
  if (pose < kPoses && (wanted >> pose & 1) != 0) {
    const float counted = static_cast<float>(pattern.counted);
    const float n = counted - hidden.second;
    const float tt = static_cast<float>(pattern.energy) - hidden.third;
    float score = score_of(n, -hidden.first, tt, seen.second, seen.third, seen.first,
                           static_cast<float>(pattern.least_contrast));
    if (n < static_cast<float>(pattern.least_visible) * counted) score = 0;
    memory.scores[pose][lane % kShifts] = inverted != 0 ? -score : score;
    memory.visible[pose][lane % kShifts] = hidden.second == 0 ? 1.0F : n / counted;
  }
  warp_barrier();
  if (lane < kPoses && (wanted >> lane & 1) != 0)
    memory.look[lane] = look_of(memory.scores[lane], memory.visible[lane]);
  warp_barrier();
}

// Looks at the wanted poses, whose grids stand in shared memory; the first warp sees what they
// show.
PATTERND_DEVICE void look_around(const TracePattern& pattern, const TraceImage& image, int wanted,
                                 int incomplete, int inverted) {
  const bool judges = thread_x() < kWarpSize;
  const int pose = minimum(thread_x() / kShifts, kPoses - 1);
  const int shift = thread_x() % kShifts;
  ShiftSums seen = {};
  ShiftSums hidden = {};
  pattern_sums<false>(pattern, image, wanted);
  if (judges) seen = shift_sums(wanted, pose, shift);
  if (incomplete != 0) {
    block_barrier();
    pattern_sums<true>(pattern, image, incomplete);
    if (judges) hidden = shift_sums(incomplete, pose, shift);
  }
  if (judges) judge(pattern, wanted, seen, hidden, inverted);
}

// ---- Deciding -----------------------------------------------------------------------------------

// By (dx, dy) pixels of the pattern's level, in the pattern's frame.
PATTERND_DEVICE_CALL TracedPose shifted(const TracePattern& pattern, TracedPose pose, float dx,
                                        float dy) {
  const Turn turn = turn_of(pose.angle_deg);
  const float size = static_cast<float>(pattern.spacing) * static_cast<float>(pose.scale);
  pose.x += static_cast<double>(size * (turn.cosine * dx - turn.sine * dy));
  pose.y += static_cast<double>(size * (turn.sine * dx + turn.cosine * dy));
  return pose;
}

// Where the parabola through three equally spaced scores has its top, in steps from the middle.
PATTERND_DEVICE float parabola_top(float before, float middle, float after) {
  const float curvature = before - 2 * middle + after;
  if (!(curvature < -1e-6F)) return 0;
  const float top = 0.5F * (before - after) / curvature;
  return top > 0.5F ? 0.5F : (top < -0.5F ? -0.5F : top);
}

PATTERND_DEVICE TracedPose stepped(const TracePattern& pattern, TracedPose pose, int axis,
                                   double steps) {
  if (axis == kAngle) pose.angle_deg += steps * pattern.angle_step_deg;
  if (axis == kScale) pose.scale *= 1 + steps * pattern.scale_step;
  return pose;
}

PATTERND_DEVICE int axis_after(const TracePattern& pattern, int axis) {
  if (axis < kAngle && pattern.angle_step_deg > 0) return kAngle;
  if (axis < kScale && pattern.scale_step > 0) return kScale;
  return kNoAxis;
}

// The pose of a side that is wanted.
PATTERND_DEVICE TracedPose pose_beside(const TracePattern& pattern, const TraceState& state,
                                       int side) {
  TracedPose pose = state.trial;
  if (state.phase == kFollowing) pose = state.at;
  const double steps = side == kMiddle ? 0 : (side == kBefore ? -1 : 1);
  return stepped(pattern, pose, state.axis, steps);
}

PATTERND_DEVICE void want_sides(TraceState& state) {
  if (state.axis != kNoAxis) state.wanted |= 1 << kBefore | 1 << kAfter;
}

PATTERND_DEVICE void settle_from(const TracedPose& pose, int phase, TraceState& state) {
  state.phase = phase;
  state.trial = pose;
  state.first = 1;
  state.moves = 0;
  state.wanted = 1 << kMiddle;
}

// To the best shift of a look.
PATTERND_DEVICE TracedPose shifted_to(const TracePattern& pattern, const TracedPose& pose,
                                      const Look& look) {
  return shifted(pattern, pose, static_cast<float>(look.dx), static_cast<float>(look.dy));
}

// The end: at the top between the shifts, or at the best of them.
PATTERND_DEVICE void finish(const TracePattern& pattern, const TraceState& state,
                            TracedCandidate& candidate) {
  const Look& around = state.around;
  float dx = static_cast<float>(around.dx);
  float dy = static_cast<float>(around.dy);
  if (around.dx == 0 && around.dy == 0) {
    dx = parabola_top(around.left, around.score, around.right);
    dy = parabola_top(around.up, around.score, around.down);
  }
  const TracedPose pose = shifted(pattern, state.at, dx, dy);
  if (thread_x() != 0) return;
  candidate.pose = pose;
  candidate.score = static_cast<double>(around.score);
  candidate.visible = static_cast<double>(around.visible);
}

// All axes followed: at the new angle another shift may be best.
PATTERND_DEVICE void end_axes(const TracePattern& pattern, TraceState& state,
                              TracedCandidate& candidate) {
  if (state.around.dx != 0 || state.around.dy != 0)
    settle_from(shifted_to(pattern, state.at, state.around), kResettling, state);
  else
    finish(pattern, state, candidate);
}

// With the looks to either side known: one step on to the better one, or the top between them and
// on to the next axis.
PATTERND_DEVICE void follow_on(const TracePattern& pattern, TraceState& state,
                               TracedCandidate& candidate) {
  const bool lower =
      state.before.score > state.around.score && state.before.score >= state.after.score;
  if (state.moves < kMostMoves && (lower || state.after.score > state.around.score)) {
    ++state.moves;
    state.at = stepped(pattern, state.at, state.axis, lower ? -1 : 1);
    const Look left = state.around;
    if (lower) {
      state.around = state.before;
      state.after = left;
    } else {
      state.around = state.after;
      state.before = left;
    }
    state.wanted = 1 << (lower ? kBefore : kAfter);
    return;
  }
  const float top = parabola_top(state.before.score, state.around.score, state.after.score);
  state.at = stepped(pattern, state.at, state.axis, static_cast<double>(top));
  state.axis = axis_after(pattern, state.axis);
  state.moves = 0;
  if (state.axis != kNoAxis)
    want_sides(state);
  else
    end_axes(pattern, state, candidate);
}

// Takes in a look while settling; true where it is the last: in the middle, no better than the one
// before (half-way positions can differ by rounding), or one too many.
PATTERND_DEVICE bool settled(const TracePattern& pattern, TraceState& state) {
  const TraceMemory& memory = trace_memory();
  if (state.first == 0 && memory.look[kMiddle].score < state.around.score) return true;
  state.first = 0;
  state.at = state.trial;
  state.around = memory.look[kMiddle];
  state.before = memory.look[kBefore];
  state.after = memory.look[kAfter];
  if ((state.around.dx == 0 && state.around.dy == 0) || state.moves == kMostMoves) return true;
  ++state.moves;
  state.trial = shifted_to(pattern, state.at, state.around);
  state.wanted = 1 << kMiddle;
  if (state.phase == kSettling) want_sides(state);
  return false;
}

// From what the last looks showed to the poses that are wanted next; the first warp.
PATTERND_DEVICE void go_on(const TracePattern& pattern, TraceState& state,
                           TracedCandidate& candidate) {
  const TraceMemory& memory = trace_memory();
  const int looked = state.wanted;
  state.wanted = 0;
  if (state.phase == kFollowing) {
    if ((looked & 1 << kBefore) != 0) state.before = memory.look[kBefore];
    if ((looked & 1 << kAfter) != 0) state.after = memory.look[kAfter];
  } else {
    if (!settled(pattern, state)) return;
    if (state.phase == kResettling) {
      finish(pattern, state, candidate);
      return;
    }
    if (static_cast<double>(state.around.score) < pattern.hopeless_score) {
      if (thread_x() == 0) {
        candidate.pose = state.at;
        candidate.score = static_cast<double>(state.around.score);
      }
      return;
    }
    if (state.axis == kNoAxis) {
      end_axes(pattern, state, candidate);
      return;
    }
    state.phase = kFollowing;
    state.moves = 0;
  }
  follow_on(pattern, state, candidate);
}

PATTERND_DEVICE void begin(const TracePattern& pattern, const TracedPose& pose, TraceState& state) {
  state.axis = axis_after(pattern, -1);
  settle_from(pose, kSettling, state);
  want_sides(state);
}

// The wanted poses' grids, a lane a pose, and at first the middle; one warp.
PATTERND_DEVICE void lay_grids(const TracePattern& pattern, const TraceImage& image,
                               const TracedPose& pose, int wanted, bool first) {
  TraceMemory& memory = trace_memory();
  const int side = thread_x();
  bool partly = false;
  if (side < kPoses && (wanted >> side & 1) != 0) {
    const SamplingGrid grid = grid_of(pattern, image, pose, 1);
    memory.grid[side] = grid;
    partly = grid.inside == 0;
    if (side == kMiddle && first) {
      const Located centre = locate(image, grid, pattern.width / 2 + 1, pattern.height / 2 + 1);
      memory.middle = bilinear_at(image, grid, centre) * centre.visible;
    }
  }
  const u32 incomplete = warp_ballot(partly);
  if (side != 0) return;
  memory.wanted = wanted;
  memory.incomplete = static_cast<int>(incomplete);
}

// One level: the candidate (in shared memory) goes to the best place near by, with its score.
PATTERND_DEVICE_CALL void trace_step(const TracePattern& pattern, const TraceImage& image,
                                     TracedCandidate& candidate) {
  TraceMemory& memory = trace_memory();
  block_barrier();
  for (bool first = true;; first = false) {
    if (thread_x() < kWarpSize) {
      TraceState state = {};
      if (first) {
        begin(pattern, candidate.pose, state);
      } else {
        state = memory.state;
        go_on(pattern, state, candidate);
      }
      lay_grids(pattern, image, pose_beside(pattern, state, thread_x()), state.wanted, first);
      warp_barrier();
      if (thread_x() == 0) memory.state = state;
    }
    block_barrier();
    // Read before the first warp goes on to the next.
    const int wanted = memory.wanted;
    if (wanted == 0) break;
    look_around(pattern, image, wanted, memory.incomplete, candidate.inverted);
  }
  block_barrier();
}

}  // namespace patternd::cuda
