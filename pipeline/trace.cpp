#include "pipeline/trace.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "pipeline/match_angles.h"
#include "pipeline/pyramid.h"
#include "pipeline/row_major.h"

namespace patternd {
namespace {

constexpr int kRim = 1;
constexpr int kSide = 2 * kRim + 1;
// Moves along one of shift, angle, scale before the trace settles.
constexpr int kMostMoves = 4;

// The scores of a candidate's 3×3 shifts and the best of them.
struct Neighbourhood {
  std::array<double, kSide * kSide> scores{};
  int best = kSide * kRim + kRim;
  double visible = 1;

  [[nodiscard]] double score() const { return scores[static_cast<std::size_t>(best)]; }
  [[nodiscard]] int dx() const { return best % kSide - kRim; }
  [[nodiscard]] int dy() const { return best / kSide - kRim; }
  [[nodiscard]] double at(int x, int y) const {
    return scores[row_major(y + kRim, x + kRim, kSide)];
  }
};

Neighbourhood look_around(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                          const Candidate& at) {
  const UprightPattern& pattern = level.pattern;
  const Patch patch = scratch.patch(pattern.width + 2 * kRim, pattern.height + 2 * kRim);
  const bool complete = sample_candidate(level, image, at, kRim, patch);
  const double sign = at.inverted ? -1 : 1;
  Neighbourhood out;
  double best = -2;
  for (int i = 0; i < kSide * kSide; ++i) {
    double visible = pattern.pixels;
    const int dx = i % kSide;
    const int dy = i / kSide;
    double score = complete
                       ? score_at(pattern, patch, dx, dy, image.least_contrast)
                       : score_partly_at(pattern, patch, dx, dy, image.least_contrast, visible);
    if (visible < image.least_visible * pattern.pixels) score = 0;
    score *= sign;
    out.scores[static_cast<std::size_t>(i)] = score;
    if (score > best) {
      best = score;
      out.best = i;
      out.visible = visible / pattern.pixels;
    }
  }
  return out;
}

// Shifts by (dx, dy) pixels of the pattern's level, in the pattern's frame.
void shift(const TraceLevel& level, Candidate& candidate, double dx, double dy) {
  const double c = std::cos(candidate.angle_deg * kDegToRad) * level.spacing * candidate.scale;
  const double s = std::sin(candidate.angle_deg * kDegToRad) * level.spacing * candidate.scale;
  candidate.x += c * dx - s * dy;
  candidate.y += s * dx + c * dy;
}

// Where the parabola through three equally spaced scores has its top, in steps from the middle.
double parabola_top(double before, double middle, double after) {
  const double curvature = before - 2 * middle + after;
  if (!(curvature < -1e-9)) return 0;
  return std::clamp(0.5 * (before - after) / curvature, -0.5, 0.5);
}

// Follows the best shift of what is seen around a candidate until it is in the middle.
Neighbourhood settle(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                     Candidate& candidate, Neighbourhood around) {
  for (int move = 0; move < kMostMoves && (around.dx() != 0 || around.dy() != 0); ++move) {
    Candidate moved = candidate;
    shift(level, moved, around.dx(), around.dy());
    const Neighbourhood next = look_around(level, image, scratch, moved);
    // Resampled half-way positions can differ by rounding: go on only where it gets better.
    if (next.score() < around.score()) break;
    candidate = moved;
    around = next;
  }
  return around;
}

Candidate turned(const TraceLevel& level, Candidate candidate, double steps) {
  candidate.angle_deg += steps * level.angle_step_deg;
  return candidate;
}

// Whether neither what is seen around the candidate nor around it turned by one step scores enough
// to be followed; `best` is what it scores.
bool is_hopeless(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                 const Candidate& candidate, double around, double& best) {
  best = around;
  for (const double steps : {-1.0, 1.0}) {
    if (best >= image.hopeless_score || !(level.angle_step_deg > 0)) break;
    best = std::max(best, score_around(level, image, scratch, turned(level, candidate, steps)));
  }
  return best < image.hopeless_score;
}

// Steps `value` of the candidate (its angle or scale) to the best score and leaves it at the
// parabola's top.
template <class Stepped>
void follow(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
            Candidate& candidate, Neighbourhood& middle, const Stepped& stepped) {
  Candidate low = stepped(candidate, -1.0);
  Candidate high = stepped(candidate, 1.0);
  Neighbourhood before = look_around(level, image, scratch, low);
  Neighbourhood after = look_around(level, image, scratch, high);
  for (int move = 0; move < kMostMoves; ++move) {
    if (before.score() > middle.score() && before.score() >= after.score()) {
      high = candidate;
      candidate = low;
      after = middle;
      middle = before;
      low = stepped(candidate, -1.0);
      before = look_around(level, image, scratch, low);
    } else if (after.score() > middle.score()) {
      low = candidate;
      candidate = high;
      before = middle;
      middle = after;
      high = stepped(candidate, 1.0);
      after = look_around(level, image, scratch, high);
    } else {
      break;
    }
  }
  const double top = parabola_top(before.score(), middle.score(), after.score());
  candidate = stepped(candidate, top);
}

}  // namespace

TraceLevel make_trace_level(const PatternLevel& level, int image_level) {
  TraceLevel out;
  out.image_level = image_level;
  out.origin_x = level.origin_x;
  out.origin_y = level.origin_y;
  out.spacing = level.spacing();
  UprightPattern& pattern = out.pattern;
  pattern.width = level.width;
  pattern.height = level.height;
  pattern.stride = patch_stride(level.width);
  const std::size_t size =
      static_cast<std::size_t>(pattern.stride) * static_cast<std::size_t>(level.height);
  pattern.values.assign(size, 0.0F);
  pattern.mask.assign(size, 0.0F);
  double sum = 0;
  for (std::size_t i = 0; i < level.value.size(); ++i) {
    if (level.coverage[i] < kLeastCoverage) continue;
    sum += static_cast<double>(level.value[i]);
    pattern.pixels += 1;
  }
  const double mean = pattern.pixels > 0 ? sum / pattern.pixels : 0;
  for (int y = 0; y < level.height; ++y) {
    for (int x = 0; x < level.width; ++x) {
      if (level.coverage[level.index(x, y)] < kLeastCoverage) continue;
      const std::size_t at =
          static_cast<std::size_t>(y * pattern.stride) + static_cast<std::size_t>(x);
      const double value = static_cast<double>(level.value[level.index(x, y)]) - mean;
      pattern.values[at] = static_cast<float>(value);
      pattern.mask[at] = 1.0F;
      pattern.energy += value * value;
    }
  }
  return out;
}

TraceScratch::TraceScratch(int width, int height) {
  // Shifted rows are read a rim and a vector past their end.
  const std::size_t size = static_cast<std::size_t>(patch_stride(width + 2 * kRim)) *
                               static_cast<std::size_t>(height + 2 * kRim) +
                           2 * kPatchLanes;
  values_.assign(size, 0.0F);
  visible_.assign(size, 0.0F);
}

Patch TraceScratch::patch(int width, int height) {
  return {values_.data(), visible_.data(), patch_stride(width), width, height};
}

SamplingGrid grid_of(const TraceLevel& level, const Candidate& at, int rim) {
  const double c = std::cos(at.angle_deg * kDegToRad) * at.scale;
  const double s = std::sin(at.angle_deg * kDegToRad) * at.scale;
  const double first_x = level.origin_x - rim * level.spacing;
  const double first_y = level.origin_y - rim * level.spacing;
  const double step = level.spacing / static_cast<double>(1 << level.image_level);
  return {level_coordinate(at.x + c * first_x - s * first_y, level.image_level),
          level_coordinate(at.y + s * first_x + c * first_y, level.image_level),
          c * step,
          s * step,
          -s * step,
          c * step};
}

bool sample_candidate(const TraceLevel& level, const TraceImage& image, const Candidate& at,
                      int rim, const Patch& patch) {
  const SamplingGrid grid = grid_of(level, at, rim);
  if (image.valid.data == nullptr && grid_is_inside(image.image, grid, patch.width, patch.height)) {
    sample_inside(image.image, grid, patch);
    return true;
  }
  sample_partly(image.image, image.valid, grid, patch);
  return false;
}

double score_around(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                    const Candidate& at) {
  return look_around(level, image, scratch, at).score();
}

void trace_step(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                Candidate& candidate) {
  Neighbourhood around = look_around(level, image, scratch, candidate);
  if (is_hopeless(level, image, scratch, candidate, around.score(), candidate.score)) return;
  Candidate best = candidate;
  around = settle(level, image, scratch, best, around);
  if (level.angle_step_deg > 0) {
    follow(level, image, scratch, best, around,
           [&](const Candidate& c, double steps) { return turned(level, c, steps); });
  }
  if (level.scale_step > 0) {
    follow(level, image, scratch, best, around, [&](Candidate c, double steps) {
      c.scale *= 1 + steps * level.scale_step;
      return c;
    });
  }
  // At the new angle another shift may be best.
  if (!image.regressed_next && (around.dx() != 0 || around.dy() != 0)) {
    shift(level, best, around.dx(), around.dy());
    around = settle(level, image, scratch, best, look_around(level, image, scratch, best));
  }
  if (around.dx() == 0 && around.dy() == 0) {
    const double middle = around.score();
    shift(level, best, parabola_top(around.at(-1, 0), middle, around.at(1, 0)),
          parabola_top(around.at(0, -1), middle, around.at(0, 1)));
  } else {
    shift(level, best, around.dx(), around.dy());
  }
  candidate = best;
  candidate.score = around.score();
  candidate.visible = around.visible;
}

}  // namespace patternd
