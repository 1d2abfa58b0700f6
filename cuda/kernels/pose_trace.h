// One step of the trace at one level (T14, T15): a pose is followed to the best of its neighbours
// in shift, angle and scale. The GPU's version of pipeline/trace.cpp, with its steps.
//
// A block works on one candidate, and looks at up to three poses at a time: the one that it stands
// at and those one step to either side, which it wants next unless the first look moves it. These
// share the warps, which sample the picture in the pattern's upright frame, a strip with a rim of
// one pixel at a time in shared memory. A thread goes down a run of a column with the samples of
// three rows in its registers, and nine scores (3 × 3 shifts) come out of one pass. The first warp
// decides from the scores where to look next.
#pragma once

#include "cuda/kernels/atomics.h"
#include "cuda/kernels/pose_sampling.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {

inline constexpr int kPoses = 3;
inline constexpr int kSide = 3;  // shifts across and down
inline constexpr int kShifts = kSide * kSide;
// Energy a pixel of what has no contrast at most.
inline constexpr float kFlat = 1e-6F;
// Of a look over a pose's samples: the sums over those that are visible, then over those that are
// not.
enum TracePass { kSeen, kHidden, kPasses };
// Moves along one of shift, angle, scale before the trace settles.
inline constexpr int kMostMoves = 4;

// What a look at a pose and its eight shifts shows.
struct alignas(16) Look {
  float score;  // the best
  float visible;
  float left, right, up, down;  // the scores beside the middle one
  int dx, dy;                   // of the best
};

template <class T>
PATTERND_DEVICE T one_of(bool first, T a, T b) {
  return first ? a : b;
}
// Number by number: a choice between places would put both into memory.
PATTERND_DEVICE Look one_of(bool first, const Look& a, const Look& b) {
  return {one_of(first, a.score, b.score), one_of(first, a.visible, b.visible),
          one_of(first, a.left, b.left),   one_of(first, a.right, b.right),
          one_of(first, a.up, b.up),       one_of(first, a.down, b.down),
          one_of(first, a.dx, b.dx),       one_of(first, a.dy, b.dy)};
}

enum TracePhase { kSettling, kFollowing, kResettling };
enum TraceAxis { kAngle, kScale, kNoAxis };
enum TraceSide { kMiddle, kBefore, kAfter };

// Where the trace of a candidate stands. All lanes of the first warp decide alike, each in its own
// registers, for one alone would wait for every number that it fetches or leaves; while all look,
// it waits in shared memory.
struct TraceState {
  TracedPose at;
  TracedPose trial;  // where settling looks now, at the same angle
  Turn turn;         // of both
  Look around;       // of `at`
  Look before;       // of the poses one step of the axis to either side
  Look after;
  int phase;
  int axis;
  int moves;
  int first;   // the first look of settling
  int wanted;  // bits of the poses to look at; 0: done
};

// What looking and deciding ask of a pattern again and again.
struct TraceTerms {
  float counted, per_counted;
  float energy, per_length;  // ΣT², 1 / √ΣT² or 0 where the pattern has no contrast
  float least_energy;        // a pixel, of a window that scores
  float least_counted;
  Turn step;  // of the angle
};

struct TraceMemory {
  float tile[kPoses][kTileFloats];
  float sums[kPasses][kPoseWarps][kWarpSize];
  float scores[kPoses][kShifts];
  float visible[kPoses][kShifts];
  SamplingGrid grid[kPoses];
  Look look[kPoses];
  TraceState state;
  TraceTerms terms;
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
  const int others = poses & (poses - 1);
  const int last = others & (others - 1);
  const int left = place == 0 ? poses : (place == 1 ? others : (place == 2 ? last : 0));
  return {left == 0 ? -1 : lowest_bit(static_cast<u32>(left)),
          {thread_x() - place * warps * kWarpSize, warps * kWarpSize}};
}

// A strip of the pattern, whose first pixel is (x, y).
struct Strip {
  int x, y, width, height;
  __device__ int pitch() const { return width + 2; }
};

// A quotient of small numbers, given 1 / the divisor; half a unit keeps rounding away from whole
// ones.
PATTERND_DEVICE int quotient(int value, float per) {
  return floor_to_int((static_cast<float>(value) + 0.5F) * per);
}

// A sample that there is none of: it adds nothing to a sum, and no other is ever negative and 0.
inline constexpr float kHiddenSample = -0.0F;
PATTERND_DEVICE bool is_hidden(float sample) {
  union {
    float f;
    u32 bits;
  } of{sample};
  return of.bits == 0x80000000U;
}

// From sample to sample of a rectangle row by row, as far apart as there are threads.
struct Walk {
  float width;
  float step_x, step_y;
  float end;  // column behind the last
  __device__ Walk(const PixelThreads& threads, int first, int columns)
      : width(static_cast<float>(columns)), end(static_cast<float>(first + columns)) {
    const int rows = quotient(threads.count, reciprocal(width));
    step_y = static_cast<float>(rows);
    step_x = static_cast<float>(threads.count - rows * columns);
  }
  __device__ void step(float& x, float& y) const {
    x += step_x;
    y += step_y;
    if (x >= end) {
      x -= width;
      y += 1.0F;
    }
  }
};

// The picture's samples less `middle`, a strip and its rim.
PATTERND_DEVICE void fill_strip(const TraceImage& image, const PoseThread& own,
                                const SamplingGrid& grid, float middle, const Strip& strip) {
  constexpr int kAtOnce = 5;
  const int pitch = strip.pitch();
  const int samples = pitch * (strip.height + 2);
  const int count = own.threads.count;
  const Walk walk(own.threads, strip.x, pitch);
  const int row = quotient(own.threads.index, reciprocal(walk.width));
  float x = static_cast<float>(own.threads.index - row * pitch + strip.x);
  float y = static_cast<float>(row + strip.y);
  float* out = trace_memory().tile[own.pose] + own.threads.index;
#pragma unroll 1
  for (int left = samples - own.threads.index; left > 0; left -= kAtOnce * count) {
    Located at[kAtOnce];
    Neighbours around[kAtOnce];
    float values[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      at[i] = locate_inside(grid, x, y);
      walk.step(x, y);
    }
    if (grid.inside == 0) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) clip(image, grid, at[i]);
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) around[i] = neighbours_of(image, grid, at[i]);
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) values[i] = fused(between(around[i]), kGreyScale, -middle);
    if (grid.inside == 0) {
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        if (at[i].visible == 0.0F) values[i] = kHiddenSample;
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (i * count < left) *out = values[i];
      out += count;
    }
  }
}

struct alignas(8) TracePixel {
  float value, mask;
};

// Rows of a strip that a thread goes down in one column, its samples kept at hand.
inline constexpr int kRunRows = 8;

// The first pixel of a strip's run, counting runs row by row; no rows: there is none.
struct Run {
  int x, y, rows;
};
PATTERND_DEVICE Run run_of(int number, const Strip& strip, float per_width) {
  const int down = quotient(number, per_width);
  const int y = down * kRunRows;
  return {number - down * strip.width, y, minimum(kRunRows, strip.height - y)};
}

// Some pixels of the pattern, one below the other.
PATTERND_DEVICE void load_run(const TracePixel* pixels, int width, int rows,
                              TracePixel (&run)[kRunRows]) {
#pragma unroll
  for (int r = 0; r < kRunRows; ++r) {
    run[r] = {0.0F, 0.0F};
    if (r < rows) run[r] = pixels[r * width];
  }
}

// Adds them up with the samples from `corner` on, the first pixel's upper left neighbour; of the
// samples `rows` + 2 rows exist.
template <bool kOfHidden>
PATTERND_DEVICE void add_run(const TracePixel (&run)[kRunRows], const float* corner, int pitch,
                             int rows, float (&sums)[kWarpSize]) {
  float samples[kSide][kSide];
  float squares[kSide][kSide];
#pragma unroll
  for (int r = 0; r < kRunRows + 2; ++r) {
#pragma unroll
    for (int x = 0; x < kSide; ++x) {
      float sample = corner[x];
      if (kOfHidden) sample = is_hidden(sample) ? 1.0F : 0.0F;
      samples[r % kSide][x] = sample;
      squares[r % kSide][x] = sample * sample;
    }
    // The last row again where there is none: its pixels are 0.
    if (r < rows + 1) corner += pitch;
    if (r < 2) continue;
    const TracePixel& pixel = run[r - 2];
    const float by_square = kOfHidden ? pixel.value * pixel.value : pixel.mask;
#pragma unroll
    for (int k = 0; k < kShifts; ++k) {
      const float sample = samples[(r - 2 + k / kSide) % kSide][k % kSide];
      const float square = squares[(r - 2 + k / kSide) % kSide][k % kSide];
      sums[k] = fused(pixel.value, sample, sums[k]);
      sums[kShifts + k] = fused(pixel.mask, sample, sums[kShifts + k]);
      sums[2 * kShifts + k] = fused(by_square, square, sums[2 * kShifts + k]);
    }
  }
}

// The sums over the whole pattern of nine shifts: ΣTW, ΣW, ΣW² over the mask, or of the hidden
// pixels ΣT, number, ΣT²; those of each warp in shared memory. Where a warp has no part in a pose
// it waits with the others.
template <bool kOfHidden>
PATTERND_DEVICE void sum_pose(const TracePattern& pattern, const TraceImage& image,
                              const PoseThread& own) {
  TraceMemory& memory = trace_memory();
  // All asked for at once.
  const int width = pattern.width;
  const int height = pattern.height;
  const int most_width = pattern.strip_width;
  const int most_rows = pattern.strip_rows;
  const TracePixel* all = global<const TracePixel>(pattern.pixels);
  // A pattern in one strip has its samples in shared memory still.
  const bool kept = kOfHidden && most_width >= width && most_rows >= height;
  const SamplingGrid grid = memory.grid[maximum(own.pose, 0)];
  const bool works = own.pose >= 0 && (!kOfHidden || grid.inside == 0);
  const float middle = memory.middle;
  float sums[kWarpSize] = {};
#pragma unroll 1
  for (int y = 0; y < height; y += most_rows) {
#pragma unroll 1
    for (int x = 0; x < width; x += most_width) {
      const Strip strip = {x, y, minimum(most_width, width - x), minimum(most_rows, height - y)};
      const TracePixel* pixels = all + y * width + x;
      const float* tile = memory.tile[maximum(own.pose, 0)];
      const float per_width = reciprocal(static_cast<float>(strip.width));
      const int runs = (strip.height + kRunRows - 1) / kRunRows * strip.width;
      if (!kept) {
        // The strip before has been read.
        if (x + y > 0) block_barrier();
        if (works) fill_strip(image, own, grid, middle, strip);
      }
      bool filled = kept;
#pragma unroll 1
      for (int number = own.threads.index; number - own.threads.index < runs;
           number += own.threads.count) {
        const Run at = run_of(number, strip, per_width);
        const int rows = works ? at.rows : 0;
        TracePixel run[kRunRows];
        load_run(pixels + at.y * width + at.x, width, rows, run);
        // On their way while the picture's last samples come.
        if (!filled) block_barrier();
        filled = true;
        if (rows > 0)
          add_run<kOfHidden>(run, tile + at.y * strip.pitch() + at.x, strip.pitch(), rows, sums);
      }
    }
  }
  memory.sums[kOfHidden ? kHidden : kSeen][thread_x() / kWarpSize][thread_x() % kWarpSize] =
      warp_totals(sums);
}

// The three sums of a pose's shift.
struct ShiftSums {
  float first, second, third;
};
PATTERND_DEVICE ShiftSums shift_sums(int poses, int pose, int shift, int pass) {
  constexpr int kAtOnce = 4;
  const int warps = warps_of_each(poses);
  const int first = warps * population(static_cast<u32>(poses) & ((1U << pose) - 1U));
  const float* sums = trace_memory().sums[pass][first] + shift;
  ShiftSums out = {};
#pragma unroll 1
  for (int left = warps; left > 0; left -= kAtOnce) {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i, sums += kWarpSize) {
      if (i >= left) continue;
      out.first += sums[0];
      out.second += sums[kShifts];
      out.third += sums[2 * kShifts];
    }
  }
  return out;
}

// Places of the scores around the middle one.
enum ShiftPlace { kUp = 1, kLeft = 3, kRight = 5, kDown = 7 };

// The first of the larger.
struct BestShift {
  float score;
  int shift;
};
PATTERND_DEVICE BestShift better_of(const BestShift& a, const BestShift& b) {
  return b.score > a.score ? b : a;
}

// What nine scores show. Shifts count from the top left, row by row.
PATTERND_DEVICE Look look_of(const float (&scores)[kShifts], const float (&visible)[kShifts]) {
  BestShift best[kShifts];
#pragma unroll
  for (int k = 0; k < kShifts; ++k) best[k] = {scores[k], k};
#pragma unroll
  for (int step = 1; step < kShifts; step *= 2) {
#pragma unroll
    for (int k = 0; k + step < kShifts; k += 2 * step) best[k] = better_of(best[k], best[k + step]);
  }
  const int shift = best[0].shift;
  return {best[0].score, visible[shift], scores[kLeft],     scores[kRight],
          scores[kUp],   scores[kDown],  shift % kSide - 1, shift / kSide - 1};
}

// 1 / √(the pattern's energy), 0 where it has no contrast.
PATTERND_DEVICE float per_length(float energy, float pixels) {
  return energy > kFlat * pixels ? inverse_root(energy) : 0.0F;
}

// One thread, once a trace.
PATTERND_DEVICE void lay_terms(const TracePattern& pattern) {
  const float counted = static_cast<float>(pattern.counted);
  const float energy = static_cast<float>(pattern.energy);
  const float contrast = static_cast<float>(pattern.least_contrast);
  trace_memory().terms = {counted,
                          reciprocal(counted),
                          energy,
                          per_length(energy, counted),
                          maximum(contrast * contrast, kFlat),
                          static_cast<float>(pattern.least_visible) * counted,
                          turn_of(pattern.angle_step_deg)};
}

// The NCC of a shift and the share of the pattern that it sees. As score_of, but that what the
// whole pattern gives is known.
struct ShiftScore {
  float score, visible;
};
PATTERND_DEVICE ShiftScore score_shift(const TraceTerms& terms, const ShiftSums& seen) {
  const float energy = seen.third - seen.second * seen.second * terms.per_counted;
  const float score = seen.first * inverse_root(energy) * terms.per_length;
  const bool scores = energy >= terms.least_energy * terms.counted && terms.counted >= 2;
  return {scores ? minimum(maximum(score, -1.0F), 1.0F) : 0.0F, 1.0F};
}
PATTERND_DEVICE ShiftScore score_shift(const TraceTerms& terms, const ShiftSums& seen,
                                       const ShiftSums& hidden) {
  const float n = terms.counted - hidden.second;
  const float per = reciprocal(n);
  const float energy = seen.third - seen.second * seen.second * per;
  const float pattern = terms.energy - hidden.third - hidden.first * hidden.first * per;
  const float score = (seen.first + hidden.first * seen.second * per) * inverse_root(energy) *
                      per_length(pattern, n);
  const bool scores = energy >= terms.least_energy * n && n >= maximum(terms.least_counted, 2.0F);
  return {scores ? minimum(maximum(score, -1.0F), 1.0F) : 0.0F, n * terms.per_counted};
}

// What the sums of the wanted poses show; one warp, a lane a shift of a pose.
PATTERND_DEVICE void judge(int wanted, int incomplete, int inverted) {
  TraceMemory& memory = trace_memory();
  const int lane = thread_x();
  const int pose = lane / kShifts;
  const int shift = lane % kShifts;
  if (pose < kPoses && (wanted >> pose & 1) != 0) {
    const ShiftSums seen = shift_sums(wanted, pose, shift, kSeen);
    const ShiftScore found =
        (incomplete >> pose & 1) != 0
            ? score_shift(memory.terms, seen, shift_sums(wanted, pose, shift, kHidden))
            : score_shift(memory.terms, seen);
    memory.scores[pose][shift] = inverted != 0 ? -found.score : found.score;
    memory.visible[pose][shift] = found.visible;
  }
  warp_barrier();
  if (lane < kPoses && (wanted >> lane & 1) != 0)
    memory.look[lane] = look_of(memory.scores[lane], memory.visible[lane]);
  warp_barrier();
}

// Looks at the wanted poses, whose grids stand in shared memory with the pattern's terms; the first
// warp sees what they show.
PATTERND_DEVICE_CALL void look_around(const TracePattern& pattern, const TraceImage& of_level,
                                      int wanted, int incomplete, int inverted) {
  const PoseThread own = pose_thread(wanted);
  // A copy, for what is written in between might be it for all that a compiler knows.
  TraceImage image = of_level;
  image.texture = same_in_all(image.texture);
  sum_pose<false>(pattern, image, own);
  block_barrier();
  if (incomplete != 0) {
    sum_pose<true>(pattern, image, own);
    block_barrier();
  }
  if (thread_x() < kWarpSize) judge(wanted, incomplete, inverted);
}

// ---- Deciding -----------------------------------------------------------------------------------

// By (dx, dy) pixels of the pattern's level, in the pattern's frame.
PATTERND_DEVICE TracedPose shifted(const TracePattern& pattern, TracedPose pose, const Turn& turn,
                                   float dx, float dy) {
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

// A pose beside the one where a trace stands, and its direction.
struct PoseBeside {
  TracedPose pose;
  Turn turn;
};
PATTERND_DEVICE PoseBeside pose_beside(const TracePattern& pattern, const TracedPose& pose,
                                       const TraceState& state, int side) {
  if (side == kMiddle) return {pose, state.turn};
  const TracedPose beside = stepped(pattern, pose, state.axis, side == kBefore ? -1 : 1);
  if (state.axis != kAngle) return {beside, state.turn};
  Turn step = trace_memory().terms.step;
  if (side == kBefore) step.sine = -step.sine;
  return {beside, turned(state.turn, step)};
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

// To the best shift around.
PATTERND_DEVICE TracedPose shifted_to_best(const TracePattern& pattern, const TraceState& state) {
  return shifted(pattern, state.at, state.turn, static_cast<float>(state.around.dx),
                 static_cast<float>(state.around.dy));
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
  const TracedPose pose = shifted(pattern, state.at, state.turn, dx, dy);
  if (thread_x() != 0) return;
  candidate.pose = pose;
  candidate.score = static_cast<double>(around.score);
  candidate.visible = static_cast<double>(around.visible);
}

// All axes followed: at the new angle another shift may be best. Where a regression follows it
// finds the place from there.
PATTERND_DEVICE void end_axes(const TracePattern& pattern, TraceState& state,
                              TracedCandidate& candidate) {
  if (pattern.regressed_next == 0 && (state.around.dx != 0 || state.around.dy != 0))
    settle_from(shifted_to_best(pattern, state), kResettling, state);
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
    const PoseBeside beside = pose_beside(pattern, state.at, state, lower ? kBefore : kAfter);
    state.at = beside.pose;
    state.turn = beside.turn;
    const Look left = state.around;
    const Look before = state.before;
    const Look after = state.after;
    state.around = one_of(lower, before, after);
    state.before = one_of(lower, before, left);
    state.after = one_of(lower, left, after);
    state.wanted = 1 << (lower ? kBefore : kAfter);
    return;
  }
  const float top = parabola_top(state.before.score, state.around.score, state.after.score);
  state.at = stepped(pattern, state.at, state.axis, static_cast<double>(top));
  if (state.axis == kAngle)
    state.turn = turned(state.turn, turn_of(static_cast<double>(top) * pattern.angle_step_deg));
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
  state.trial = shifted_to_best(pattern, state);
  state.wanted = 1 << kMiddle;
  if (state.phase == kSettling) want_sides(state);
  return false;
}

// Whether the first looks show too little to follow: neither the pose nor those turned by one step
// score enough. Leaves the best score.
PATTERND_DEVICE bool is_hopeless(const TracePattern& pattern, const TraceState& state,
                                 TracedCandidate& candidate) {
  const TraceMemory& memory = trace_memory();
  float most = memory.look[kMiddle].score;
  if (state.axis == kAngle)
    most = maximum(most, maximum(memory.look[kBefore].score, memory.look[kAfter].score));
  if (static_cast<double>(most) >= pattern.hopeless_score) return false;
  if (thread_x() == 0) candidate.score = static_cast<double>(most);
  return true;
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
    if (state.phase == kSettling && state.first != 0 && is_hopeless(pattern, state, candidate))
      return;
    if (!settled(pattern, state)) return;
    if (state.phase == kResettling) {
      finish(pattern, state, candidate);
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

// A pixel's grey value near a pose, or near the picture's rim where that lies outside.
PATTERND_DEVICE float grey_at(const TracePattern& pattern, const TraceImage& image,
                              const TracedPose& pose) {
  const float x = static_cast<float>((pose.x + 0.5) * pattern.to_level);
  const float y = static_cast<float>((pose.y + 0.5) * pattern.to_level);
  return gather<0>(image.texture, x, y).left_top * kGreyScale;
}

// The wanted poses' grids, a lane a pose; one warp.
PATTERND_DEVICE void lay_grids(const TracePattern& pattern, const TraceImage& image,
                               const PoseBeside& beside, int wanted) {
  TraceMemory& memory = trace_memory();
  const int side = thread_x();
  bool partly = false;
  if (side < kPoses && (wanted >> side & 1) != 0) {
    const SamplingGrid grid = grid_of(pattern, image, beside.pose, beside.turn, 1);
    memory.grid[side] = grid;
    partly = grid.inside == 0;
  }
  const u32 incomplete = warp_ballot(partly);
  if (side != 0) return;
  memory.wanted = wanted;
  memory.incomplete = static_cast<int>(incomplete);
}

// Lays all that a first look asks for; the first warp's lane i has pose i, the next one the terms.
PATTERND_DEVICE Turn prepare_look(const TracePattern& pattern, const TraceImage& image,
                                  const TracedPose& pose, int wanted) {
  TraceMemory& memory = trace_memory();
  if (thread_x() == kWarpSize) lay_terms(pattern);
  if (thread_x() >= kWarpSize) return {};
  // On its way while the grids are laid.
  const float middle = grey_at(pattern, image, pose);
  const Turn turn = turn_of(pose.angle_deg);
  lay_grids(pattern, image, {pose, turn}, wanted);
  if (thread_x() == 0) memory.middle = middle;
  return turn;
}

// The first warp decides from the last looks where to look next.
PATTERND_DEVICE void look_on(const TracePattern& pattern, const TraceImage& image,
                             TracedCandidate& candidate) {
  TraceMemory& memory = trace_memory();
  TraceState state = memory.state;
  go_on(pattern, state, candidate);
  if (state.wanted != 0) {
    const TracedPose& pose = state.phase == kFollowing ? state.at : state.trial;
    lay_grids(pattern, image, pose_beside(pattern, pose, state, thread_x()), state.wanted);
  } else if (thread_x() == 0) {
    memory.wanted = 0;
  }
  warp_barrier();
  if (thread_x() == 0) memory.state = state;
}

// One level: the candidate (in shared memory) goes to the best place near by, with its score.
PATTERND_DEVICE_CALL void trace_step(const TracePattern& pattern, const TraceImage& image,
                                     TracedCandidate& candidate) {
  TraceMemory& memory = trace_memory();
  block_barrier();
  TraceState state = {};
  begin(pattern, candidate.pose, state);
  const int side = minimum(thread_x(), kPoses - 1);
  const double steps = side == kMiddle ? 0 : (side == kBefore ? -1 : 1);
  state.turn =
      prepare_look(pattern, image, stepped(pattern, state.trial, state.axis, steps), state.wanted);
  if (thread_x() == 0) memory.state = state;
  block_barrier();
#pragma unroll 1
  for (;;) {
    // Read before the first warp goes on to the next.
    const int wanted = memory.wanted;
    if (wanted == 0) break;
    look_around(pattern, image, wanted, memory.incomplete, candidate.inverted);
    if (thread_x() < kWarpSize) look_on(pattern, image, candidate);
    block_barrier();
  }
}

}  // namespace patternd::cuda
