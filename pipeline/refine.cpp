#include "pipeline/refine.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "pipeline/cubic_sampling.h"
#include "pipeline/match_angles.h"
#include "pipeline/refine_kernel.h"
#include "pipeline/row_major.h"

namespace patternd {
namespace {

// Farther than this from where it started (in pixels, of its centre or its farthest pixel) it has
// run away.
constexpr double kRunawayPx = 3;
// A mask that would lose more than this share of its pixels with its rim keeps it.
constexpr double kLeastLeft = 0.6;

// Uneven light changes the gain by such a share, and adds so many grey levels, between a pattern's
// centre and its edge (standard deviations), where the picture's noise is of so many grey levels.
constexpr double kLightShare = 0.3;
constexpr double kLightGreys = 30;
constexpr double kUsualNoise = 3;

constexpr int kByX = kNuisances;
constexpr int kByY = kNuisances + 1;
constexpr int kByTurn = kNuisances + 2;  // where the angle is free

using Matrix = std::array<double, kMostRegressors * kMostRegressors>;
using Vector = std::array<double, kMostRegressors>;

std::size_t cell(int row, int column) { return row_major(row, column, kMostRegressors); }

// Inverts a symmetric positive definite matrix of order n in place by Cholesky's method; false
// where it is singular to working precision.
bool invert(Matrix& m, int n) {
  // Scaled to a unit diagonal first: the regressors have very different sizes.
  Vector scale{};
  for (int i = 0; i < n; ++i) {
    if (!(m[cell(i, i)] > 0)) return false;
    scale[static_cast<std::size_t>(i)] = 1 / std::sqrt(m[cell(i, i)]);
  }
  Matrix lower{};
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum =
          m[cell(i, j)] * scale[static_cast<std::size_t>(i)] * scale[static_cast<std::size_t>(j)];
      for (int k = 0; k < j; ++k) sum -= lower[cell(i, k)] * lower[cell(j, k)];
      if (i != j) {
        lower[cell(i, j)] = sum / lower[cell(j, j)];
      } else {
        if (!(sum > 1e-9)) return false;
        lower[cell(i, i)] = std::sqrt(sum);
      }
    }
  }
  for (int column = 0; column < n; ++column) {
    Vector x{};
    for (int i = 0; i < n; ++i) {
      double sum = i == column ? 1 : 0;
      for (int k = 0; k < i; ++k) sum -= lower[cell(i, k)] * x[static_cast<std::size_t>(k)];
      x[static_cast<std::size_t>(i)] = sum / lower[cell(i, i)];
    }
    for (int i = n - 1; i >= 0; --i) {
      double sum = x[static_cast<std::size_t>(i)];
      for (int k = i + 1; k < n; ++k) sum -= lower[cell(k, i)] * x[static_cast<std::size_t>(k)];
      x[static_cast<std::size_t>(i)] = sum / lower[cell(i, i)];
    }
    for (int i = 0; i < n; ++i)
      m[cell(i, column)] = x[static_cast<std::size_t>(i)] * scale[static_cast<std::size_t>(i)] *
                           scale[static_cast<std::size_t>(column)];
  }
  return true;
}

// From the pattern's frame to the picture's directions, pattern pixels to level-0 pixels.
struct Directions {
  double cosine = 1;
  double sine = 0;
  [[nodiscard]] double x(double dx, double dy) const { return cosine * dx - sine * dy; }
  [[nodiscard]] double y(double dx, double dy) const { return sine * dx + cosine * dy; }
};
Directions at_angle(const Candidate& at, const TraceLevel& level) {
  const double size = level.spacing * at.scale;
  return {std::cos(at.angle_deg * kDegToRad) * size, std::sin(at.angle_deg * kDegToRad) * size};
}

// The regressors of one pixel, in the order of the header.
Vector regressors_at(const RefinePattern& p, int x, int y) {
  const auto i = static_cast<std::size_t>(y * p.level.pattern.stride + x);
  const double qx = static_cast<double>(p.columns[static_cast<std::size_t>(x)]);
  const double qy = p.first_row + y;
  const double m = static_cast<double>(p.mask[i]);
  const double gx = static_cast<double>(p.gradient_x[i]);
  const double gy = static_cast<double>(p.gradient_y[i]);
  const double t = static_cast<double>(p.values[i]);
  Vector out{t, m, m * qx, m * qy, t * qx, t * qy, gx, gy};
  std::size_t next = kByTurn;
  if (p.with_angle) out[next++] = gy * qx - gx * qy;
  if (p.with_scale) out[next] = gx * qx + gy * qy;
  return out;
}

// Gram matrix over the mask's pixels for which `counts(x, y)`, and their number.
template <class Counts>
Matrix gram_of(const RefinePattern& p, const Counts& counts, double& pixels) {
  Matrix gram{};
  pixels = 0;
  const int n = p.regressors();
  for (int y = 0; y < p.level.pattern.height; ++y) {
    for (int x = 0; x < p.level.pattern.width; ++x) {
      if (p.mask[static_cast<std::size_t>(y * p.level.pattern.stride + x)] == 0.0F || !counts(x, y))
        continue;
      const Vector r = regressors_at(p, x, y);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j <= i; ++j)
          gram[cell(i, j)] += r[static_cast<std::size_t>(i)] * r[static_cast<std::size_t>(j)];
      pixels += 1;
    }
  }
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) gram[cell(i, j)] = gram[cell(j, i)];
  return gram;
}

// The Gram matrix of the visible pixels is that of all less that of the hidden ones, mostly few.
Matrix visible_gram(const RefinePattern& p, const Patch& patch, double& pixels) {
  double hidden_pixels = 0;
  const Matrix hidden = gram_of(
      p, [&](int x, int y) { return patch.visible[y * patch.stride + x] == 0.0F; }, hidden_pixels);
  Matrix out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = p.gram[i] - hidden[i];
  pixels = p.pixels - hidden_pixels;
  return out;
}

// Ridge terms: the noise's variance over the ramp's.
void set_light_prior(RefinePattern& p) {
  const double half_width = p.level.pattern.width / 2.0;
  const double half_height = p.level.pattern.height / 2.0;
  const auto term = [](double reach, double most) {
    const double per = kUsualNoise * reach / most;
    return per * per;
  };
  p.light_prior = {term(half_width, kLightGreys), term(half_height, kLightGreys),
                   term(half_width, kLightShare), term(half_height, kLightShare)};
}

void add_light_prior(const RefinePattern& p, Matrix& gram) {
  for (int i = kFirstRamp; i < kNuisances; ++i)
    gram[cell(i, i)] += p.light_prior[static_cast<std::size_t>(i - kFirstRamp)];
}

// A prior that holds the ramps of the gain to 0.
void pin_gain_ramps(RefinePattern& p) {
  constexpr double kPinned = 1e3;
  for (int i = kNuisances - 2; i < kNuisances; ++i)
    p.light_prior[static_cast<std::size_t>(i - kFirstRamp)] = kPinned * p.gram[cell(i, i)];
}

// Whether the pattern tells uneven light from a shift or turn: regressing the gain's ramps away
// does not cost most of what it knows of its pose. In a smooth round blob T·q is the derivative.
bool light_can_be_told(const RefinePattern& p) {
  constexpr double kMostInflation = 3;
  const auto variances = [](const RefinePattern& pattern, Matrix& inverse) {
    std::copy(pattern.gram.begin(), pattern.gram.end(), inverse.begin());
    add_light_prior(pattern, inverse);
    return invert(inverse, pattern.regressors());
  };
  RefinePattern without = p;
  pin_gain_ramps(without);
  Matrix with_ramps;
  Matrix pinned;
  if (!variances(p, with_ramps)) return false;
  if (!variances(without, pinned)) return true;
  for (int i = kNuisances; i < p.regressors(); ++i)
    if (with_ramps[cell(i, i)] > kMostInflation * pinned[cell(i, i)]) return false;
  return true;
}

RegressorSums sum_all(const RefinePattern& p, const Patch& patch, const float* visible,
                      float middle) {
  RegressorSums out;
  const std::ptrdiff_t stride = p.level.pattern.stride;
  for (int y = 0; y < p.level.pattern.height; ++y) {
    const std::ptrdiff_t at = y * stride;
    RowSums row;
    sum_regressors({p.mask.data() + at, p.values.data() + at, p.gradient_x.data() + at,
                    p.gradient_y.data() + at, p.columns.data()},
                   patch.values + y * patch.stride,
                   visible == nullptr ? nullptr : visible + y * patch.stride, middle, stride, row);
    const double qy = p.first_row + y;
    const auto d = [](float v) { return static_cast<double>(v); };
    out.square += d(row.square);
    out.with_picture[0] += d(row.values);
    out.with_picture[1] += d(row.mask);
    out.with_picture[2] += d(row.column);
    out.with_picture[3] += d(row.mask) * qy;
    out.with_picture[4] += d(row.values_x);
    out.with_picture[5] += d(row.values) * qy;
    out.with_picture[kByX] += d(row.gradient_x);
    out.with_picture[kByY] += d(row.gradient_y);
    std::size_t next = kByTurn;
    if (p.with_angle) out.with_picture[next++] += d(row.gradient_y_x) - d(row.gradient_x) * qy;
    if (p.with_scale) out.with_picture[next] += d(row.gradient_x_x) + d(row.gradient_y) * qy;
  }
  return out;
}

enum class Samples { kBilinear, kCubic };

// A regression's outcome: coefficients, the inverse Gram matrix used, and the mean squared
// residual.
struct Regression {
  Patch patch;
  bool complete = true;
  bool good = false;
  Vector coefficients{};
  Matrix inverse{};
  double residual = 0;
};

Regression regress(const RefinePattern& p, const TraceImage& image, TraceScratch& scratch,
                   const Candidate& at, Samples how) {
  Regression out;
  const Patch patch = scratch.patch(p.level.pattern.width, p.level.pattern.height);
  const bool complete = sample_candidate(p.level, image, at, 0, patch);
  if (how == Samples::kCubic) sample_cubic(image.image, grid_of(p.level, at, 0), patch);
  const float middle = patch.values[(patch.height / 2) * patch.stride + patch.width / 2];
  out.patch = patch;
  out.complete = complete;
  double pixels = p.pixels;
  const int n = p.regressors();
  const RegressorSums sums = sum_all(p, patch, complete ? nullptr : patch.visible, middle);
  if (complete) {
    std::copy(p.inverse_gram.begin(), p.inverse_gram.end(), out.inverse.begin());
  } else {
    out.inverse = visible_gram(p, patch, pixels);
    add_light_prior(p, out.inverse);
    if (!invert(out.inverse, n)) return out;
  }
  double explained = 0;
  for (int i = 0; i < n; ++i) {
    double sum = 0;
    for (int j = 0; j < n; ++j)
      sum += out.inverse[cell(i, j)] * sums.with_picture[static_cast<std::size_t>(j)];
    out.coefficients[static_cast<std::size_t>(i)] = sum;
    explained += sum * sums.with_picture[static_cast<std::size_t>(i)];
  }
  out.residual = std::max(0.0, sums.square - explained) / std::max(1.0, pixels - n);
  out.good = std::abs(out.coefficients[0]) > 1e-6;
  return out;
}

// Sum of the squared weights of a cubic sample at x along one axis: with u = t·(1 − t), t the place
// between two pixels, those of cubic_weights(t) give this polynomial. It is the same at equal
// distances left and right of a pixel: so rounding towards zero does, which takes no call.
double squared_weights(double x) {
  const double t = x - static_cast<double>(static_cast<std::int32_t>(x));
  const double u = std::abs(t) * (1 - std::abs(t));
  return 1 - u * (1 + u * (29.0 / 18 + u * (5.0 / 9)));
}

// By how much cubic sampling lowers the variance of white noise, over the grid's phases: 1 where
// samples fall on pixels, 0.63 on average where they fall anywhere.
double noise_gain(const TraceLevel& level, const Candidate& at) {
  const double c = std::cos(at.angle_deg * kDegToRad) * at.scale;
  const double s = std::sin(at.angle_deg * kDegToRad) * at.scale;
  constexpr int kSide = 8;
  const double step_x = level.spacing * level.pattern.width / kSide;
  const double step_y = level.spacing * level.pattern.height / kSide;
  // A sum a column, so that columns are summed side by side.
  std::array<double, kSide> sums{};
  for (int j = 0; j < kSide; ++j) {
    const double qy = level.origin_y + step_y * j;
    const double x = at.x + c * level.origin_x - s * qy;
    const double y = at.y + s * level.origin_x + c * qy;
    for (int i = 0; i < kSide; ++i) {
      const double qx = step_x * i;
      sums[static_cast<std::size_t>(i)] +=
          squared_weights(x + c * qx) * squared_weights(y + s * qx);
    }
  }
  double sum = 0;
  for (const double column : sums) sum += column;
  return sum / (kSide * kSide);
}

PoseInformation information_of(const RefinePattern& p, const Regression& last) {
  PoseInformation out;
  out.residual = last.residual;
  out.gain = last.coefficients[0];
  out.xx = last.inverse[cell(kByX, kByX)];
  out.yy = last.inverse[cell(kByY, kByY)];
  out.xy = last.inverse[cell(kByX, kByY)];
  if (p.with_angle) out.angle = last.inverse[cell(kByTurn, kByTurn)];
  return out;
}

// Five-point derivative from the differences one and two pixels to either side. The three-point one
// sees fine texture's slope too small, and steps would overshoot.
float derivative(float near, float far) { return (8 * near - far) / 12; }

// Moves the pose by `share` of what the regression found. Returns by how many pixels of the pattern
// its centre and farthest pixel move.
double move_pose(const RefinePattern& pattern, const Regression& last, double radius, double share,
                 Candidate& at) {
  const double gain = last.coefficients[0] / share;
  const double dx = last.coefficients[kByX] / gain;
  const double dy = last.coefficients[kByY] / gain;
  std::size_t next = kByTurn;
  const double turn = pattern.with_angle ? last.coefficients[next++] / gain : 0;
  const double growth = pattern.with_scale ? last.coefficients[next] / gain : 0;
  const Directions directions = at_angle(at, pattern.level);
  at.x -= directions.x(dx, dy);
  at.y -= directions.y(dx, dy);
  at.angle_deg -= turn / kDegToRad;
  at.scale /= 1 + std::max(growth, -0.5);
  return std::hypot(dx, dy) + (std::abs(turn) + std::abs(growth)) * radius;
}

// How far the pose is from where it started, in pixels of the pattern.
double distance_moved(const RefinePattern& pattern, double radius, const Candidate& start,
                      const Candidate& at) {
  return std::hypot(at.x - start.x, at.y - start.y) / (pattern.level.spacing * start.scale) +
         radius * (std::abs(at.angle_deg - start.angle_deg) * kDegToRad +
                   std::abs(at.scale / start.scale - 1));
}

// Steps with bilinear samples until they are small; false where they don't get there or run away.
// `last` is the last step's regression, its patch still in the scratch memory.
bool approach(const RefinePattern& pattern, const TraceImage& image, TraceScratch& scratch,
              const RefineLimits& limits, double radius, Regression& last, Candidate& at) {
  const Candidate start = at;
  double share = 1;
  double previous = std::numeric_limits<double>::infinity();
  for (int i = 0; i < limits.iterations; ++i) {
    last = regress(pattern, image, scratch, at, Samples::kBilinear);
    if (!last.good) return false;
    const double moved = move_pose(pattern, last, radius, share, at);
    // Steps that don't shrink overshoot: shorter ones settle.
    if (moved > 0.5 * previous) share = std::max(0.5 * share, 0.25);
    previous = moved;
    if (!(distance_moved(pattern, radius, start, at) < kRunawayPx)) return false;
    const bool final_round = i + 1 == limits.iterations;
    if (moved <= (final_round ? limits.nearly_px : limits.still_px)) return true;
  }
  return false;
}

// How far the farthest pixel lies from the pattern's centre, in pixels of the level.
double radius_of(const RefinePattern& p) {
  return std::hypot(p.level.pattern.width, p.level.pattern.height) / 2;
}

// Scores a patch sampled at the candidate's pose. Two passes: with the mean taken off first nothing
// cancels.
void score_patch(const TraceLevel& level, const TraceImage& image, const Patch& patch,
                 bool complete, Candidate& candidate) {
  double visible = level.pattern.pixels;
  const double score = complete ? score_whole(level.pattern, patch, image.least_contrast)
                                : score_partly_at(level.pattern, patch, 0, 0, image.least_contrast,
                                                  visible, mean_of(level.pattern, patch));
  candidate.visible = visible / std::max(level.pattern.pixels, 1.0);
  // A sample more or less by rounding is not a question of visibility.
  const bool seen = visible + 0.5 >= image.least_visible * level.pattern.pixels;
  candidate.inverted = image.any_polarity && score < 0;
  candidate.score = !seen ? 0 : image.any_polarity ? std::abs(score) : score;
}

std::size_t index_of(const UprightPattern& p, int x, int y) {
  return static_cast<std::size_t>(y * p.stride) + static_cast<std::size_t>(x);
}

bool is_counted(const UprightPattern& p, int x, int y) {
  return x >= 0 && y >= 0 && x < p.width && y < p.height && p.mask[index_of(p, x, y)] != 0.0F;
}

// The pixels whose four neighbours count too; all, where few would be left.
void leave_out_rim(const UprightPattern& full, RefinePattern& out) {
  out.mask.assign(full.mask.size(), 0.0F);
  for (int y = 0; y < full.height; ++y) {
    for (int x = 0; x < full.width; ++x) {
      if (!is_counted(full, x, y) || !is_counted(full, x - 1, y) || !is_counted(full, x + 1, y) ||
          !is_counted(full, x, y - 1) || !is_counted(full, x, y + 1))
        continue;
      out.mask[index_of(full, x, y)] = 1.0F;
      out.pixels += 1;
    }
  }
  if (out.pixels >= kLeastLeft * full.pixels) return;
  out.mask = full.mask;
  out.pixels = full.pixels;
}

// The slope at a pixel along (dx, dy), from two neighbours or four; 0 where it has none.
float slope(const UprightPattern& p, int x, int y, int dx, int dy) {
  if (!is_counted(p, x - dx, y - dy) || !is_counted(p, x + dx, y + dy)) return 0.0F;
  const auto difference = [&](int n) {
    return p.values[index_of(p, x + n * dx, y + n * dy)] -
           p.values[index_of(p, x - n * dx, y - n * dy)];
  };
  const bool wide = is_counted(p, x - 2 * dx, y - 2 * dy) && is_counted(p, x + 2 * dx, y + 2 * dy);
  return wide ? derivative(difference(1), difference(2)) : difference(1) / 2;
}

void take_gradients(const UprightPattern& full, RefinePattern& out) {
  out.values.assign(full.mask.size(), 0.0F);
  out.gradient_x.assign(full.mask.size(), 0.0F);
  out.gradient_y.assign(full.mask.size(), 0.0F);
  for (int y = 0; y < full.height; ++y) {
    for (int x = 0; x < full.width; ++x) {
      const std::size_t i = index_of(full, x, y);
      if (out.mask[i] == 0.0F) continue;
      out.values[i] = full.values[i];
      out.gradient_x[i] = slope(full, x, y, 1, 0);
      out.gradient_y[i] = slope(full, x, y, 0, 1);
    }
  }
}

}  // namespace

RefinePattern make_refine_pattern(const TraceLevel& level, bool with_angle, bool with_scale,
                                  LightModel light) {
  RefinePattern out;
  out.level = level;
  out.with_angle = with_angle;
  out.with_scale = with_scale;
  const UprightPattern& full = level.pattern;
  leave_out_rim(full, out);
  take_gradients(full, out);
  out.columns.assign(static_cast<std::size_t>(full.stride), 0.0F);
  for (int x = 0; x < full.width; ++x)
    out.columns[static_cast<std::size_t>(x)] =
        static_cast<float>(level.origin_x / level.spacing + x);
  out.first_row = level.origin_y / level.spacing;
  double pixels = 0;
  Matrix gram = gram_of(
      out, [](int, int) { return true; }, pixels);
  out.gram.assign(gram.begin(), gram.end());
  set_light_prior(out);
  if (light == LightModel::kRough || !light_can_be_told(out)) pin_gain_ramps(out);
  add_light_prior(out, gram);
  if (invert(gram, out.regressors())) out.inverse_gram.assign(gram.begin(), gram.end());
  return out;
}

Refinement standard_deviations(const RefinePattern& p, const Candidate& at,
                               const PoseInformation& information) {
  Refinement out;
  out.converged = true;
  const double pixel = p.level.spacing * at.scale;  // in level-0 pixels of the picture
  const double noise = information.residual / noise_gain(p.level, at);
  const double per = noise / (information.gain * information.gain);
  const double xx = information.xx * per;
  const double yy = information.yy * per;
  const double xy = information.xy * per;
  const double c = std::cos(at.angle_deg * kDegToRad);
  const double s = std::sin(at.angle_deg * kDegToRad);
  out.x_std_px = pixel * std::sqrt(std::max(0.0, c * c * xx - 2 * c * s * xy + s * s * yy));
  out.y_std_px = pixel * std::sqrt(std::max(0.0, s * s * xx + 2 * c * s * xy + c * c * yy));
  if (p.with_angle) out.angle_std_deg = std::sqrt(information.angle * per) / kDegToRad;
  return out;
}

Refinement unsettled(const RefinePattern& pattern, const Candidate& at) {
  Refinement out;
  out.x_std_px = out.y_std_px = pattern.level.spacing * at.scale;
  if (pattern.with_angle) out.angle_std_deg = 1 / (radius_of(pattern) * kDegToRad);
  return out;
}

Refinement refine(const RefinePattern& pattern, const TraceImage& image, TraceScratch& scratch,
                  Candidate& candidate, const RefineLimits& limits) {
  const Refinement out = unsettled(pattern, candidate);
  if (pattern.inverse_gram.empty()) return out;
  Candidate at = candidate;
  const double radius = radius_of(pattern);
  Regression last;
  if (!approach(pattern, image, scratch, limits, radius, last, at)) return out;
  score_patch(pattern.level, image, last.patch, last.complete, at);
  for (int i = 0; i < limits.cubic_steps; ++i) {
    last = regress(pattern, image, scratch, at, Samples::kCubic);
    if (!last.good) return out;
    const double moved = move_pose(pattern, last, radius, 1, at);
    if (!(distance_moved(pattern, radius, candidate, at) < kRunawayPx)) return out;
    if (moved <= limits.still_px) break;
  }
  candidate = at;
  return standard_deviations(pattern, at, information_of(pattern, last));
}

void score_candidate(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                     Candidate& candidate) {
  const Patch patch = scratch.patch(level.pattern.width, level.pattern.height);
  const bool complete = sample_candidate(level, image, candidate, 0, patch);
  score_patch(level, image, patch, complete, candidate);
}

}  // namespace patternd
