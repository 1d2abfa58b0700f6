#include "pipeline/pattern_pyramid.h"

#include <algorithm>
#include <cmath>

#include "pipeline/match_angles.h"
#include "pipeline/pyramid.h"

namespace patternd {
namespace {

// Turned patterns are sampled from up to so many levels finer: as far apart as that level's pixels,
// so that a pixel is the mean of the samples that the picture's pyramid averages.
constexpr int kSourceLevelsFiner = 2;

PatternLevel level_zero(const Pattern& pattern) {
  PatternLevel out;
  const ImageView picture = pattern.picture.view();
  out.width = picture.width;
  out.height = picture.height;
  out.origin_x = 0.5 - picture.width / 2.0;
  out.origin_y = 0.5 - picture.height / 2.0;
  out.value.resize(out.index(0, out.height));
  out.coverage.assign(out.value.size(), 1.0F);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      const std::size_t i = out.index(x, y);
      out.value[i] = picture.format == PixelFormat::kGray16
                         ? static_cast<float>(picture.row<std::uint16_t>(y)[x]) / 257.0F
                         : static_cast<float>(picture.row<std::uint8_t>(y)[x]);
      if (!pattern.mask.empty() && pattern.mask.row<std::uint8_t>(y)[x] == 0)
        out.coverage[i] = 0.0F;
    }
  }
  return out;
}

PatternLevel halved(const PatternLevel& fine) {
  PatternLevel out;
  out.level = fine.level + 1;
  out.width = fine.width / 2;
  out.height = fine.height / 2;
  out.origin_x = fine.origin_x + fine.spacing() / 2;
  out.origin_y = fine.origin_y + fine.spacing() / 2;
  out.value.resize(out.index(0, out.height));
  out.coverage.resize(out.value.size());
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      float sum = 0;
      float weight = 0;
      for (int k = 0; k < 4; ++k) {
        const std::size_t i = fine.index(2 * x + (k & 1), 2 * y + (k >> 1));
        sum += fine.value[i] * fine.coverage[i];
        weight += fine.coverage[i];
      }
      out.value[out.index(x, y)] = weight > 0 ? sum / weight : 0.0F;
      out.coverage[out.index(x, y)] = weight / 4;
    }
  }
  return out;
}

struct Sample {
  float weighted_value = 0;
  float coverage = 0;
};

// Samples a level bilinearly.
class LevelSampler {
 public:
  explicit LevelSampler(const PatternLevel& level)
      : level_(level),
        right_(level.width > 1 ? 1 : 0),
        down_(level.height > 1 ? level.index(0, 1) : 0),
        opaque_(std::all_of(level.coverage.begin(), level.coverage.end(),
                            [](float c) { return c == 1.0F; })) {}

  // Adds value·coverage and coverage at a place in pixels; nothing outside the pixels' squares, nor
  // on their edge.
  void add(double x, double y, Sample& sum) const {
    constexpr double kInside = 0.5 - 1e-6;
    if (x < -kInside || y < -kInside || x > level_.width - 1 + kInside ||
        y > level_.height - 1 + kInside)
      return;
    x = std::clamp(x, 0.0, level_.width - 1.0);
    y = std::clamp(y, 0.0, level_.height - 1.0);
    const int x0 = std::min(static_cast<int>(x), std::max(level_.width - 2, 0));
    const int y0 = std::min(static_cast<int>(y), std::max(level_.height - 2, 0));
    const auto fx = static_cast<float>(x - x0);
    const auto fy = static_cast<float>(y - y0);
    const std::size_t at = level_.index(x0, y0);
    const std::size_t places[4] = {at, at + right_, at + down_, at + down_ + right_};
    const float weights[4] = {(1 - fx) * (1 - fy), fx * (1 - fy), (1 - fx) * fy, fx * fy};
    Sample one;
    for (int k = 0; k < 4; ++k) {
      const float value = weights[k] * level_.value[places[k]];
      const float coverage = opaque_ ? 1.0F : level_.coverage[places[k]];
      one.weighted_value += value * coverage;
      one.coverage += weights[k] * coverage;
    }
    sum.weighted_value += one.weighted_value;
    sum.coverage += one.coverage;
  }

 private:
  const PatternLevel& level_;
  std::size_t right_;
  std::size_t down_;
  bool opaque_;  // all of it covered
};

// How far the samples of a row or column of pixels lie from the pattern's centre, `side` a pixel,
// times the turn's cosine and sine.
struct TurnedSamples {
  std::vector<double> by_cosine;
  std::vector<double> by_sine;

  TurnedSamples(int first, int pixels, double phase, int side, double cosine, double sine) {
    for (int i = 0; i < pixels * side; ++i) {
      const double distance = first + i / side - phase - 0.5 + (i % side + 0.5) / side;
      by_cosine.push_back(cosine * distance);
      by_sine.push_back(sine * distance);
    }
  }
};

// Half the extent of the turned rectangle along x and y, in pixels of the picture's level.
struct Extent {
  double x = 0;
  double y = 0;
};
Extent turned_extent(const PatternLevel& base, double spacing, const TurnedPose& pose) {
  const double c = std::abs(std::cos(pose.angle_deg * kDegToRad));
  const double s = std::abs(std::sin(pose.angle_deg * kDegToRad));
  const double half_width = base.width * pose.scale / (2 * spacing);
  const double half_height = base.height * pose.scale / (2 * spacing);
  return {c * half_width + s * half_height, s * half_width + c * half_height};
}

}  // namespace

int TurnedPattern::pixels() const {
  return static_cast<int>(std::count(counts.begin(), counts.end(), std::uint8_t{1}));
}

std::vector<PatternLevel> make_pattern_pyramid(const Pattern& pattern, int levels) {
  std::vector<PatternLevel> out{level_zero(pattern)};
  const int deepest = deepest_level(pattern.picture.width(), pattern.picture.height());
  for (int l = 1; l <= std::min(levels, deepest); ++l) out.push_back(halved(out.back()));
  return out;
}

TurnedPattern render_turned(const std::vector<PatternLevel>& pyramid, int level,
                            const TurnedPose& pose) {
  const int finest = std::max(0, level - kSourceLevelsFiner);
  const PatternLevel& source =
      pyramid[static_cast<std::size_t>(std::min(finest, static_cast<int>(pyramid.size()) - 1))];
  const double spacing = static_cast<double>(1 << level);
  const Extent extent = turned_extent(pyramid[0], spacing, pose);
  TurnedPattern out;
  out.left = static_cast<int>(std::floor(pose.phase_x - extent.x));
  out.top = static_cast<int>(std::floor(pose.phase_y - extent.y));
  out.width = static_cast<int>(std::ceil(pose.phase_x + extent.x)) - out.left + 1;
  out.height = static_cast<int>(std::ceil(pose.phase_y + extent.y)) - out.top + 1;
  out.value.assign(out.index(0, out.height), 0.0F);
  out.counts.assign(out.value.size(), 0);

  const int side = 1 << (level - source.level);
  const int samples = side * side;
  // From the picture's level to the source's pixels: turned back, scaled back.
  const double c = std::cos(pose.angle_deg * kDegToRad) * spacing / pose.scale / source.spacing();
  const double s = std::sin(pose.angle_deg * kDegToRad) * spacing / pose.scale / source.spacing();
  const TurnedSamples across(out.left, out.width, pose.phase_x, side, c, s);
  const TurnedSamples down(out.top, out.height, pose.phase_y, side, c, s);
  const double origin_x = source.origin_x / source.spacing();
  const double origin_y = source.origin_y / source.spacing();
  const LevelSampler sampler(source);
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      Sample sum;
      for (int k = 0; k < samples; ++k) {
        const int column = x * side + k % side;
        const int row = y * side + k / side;
        const auto i = static_cast<std::size_t>(column);
        const auto j = static_cast<std::size_t>(row);
        sampler.add(across.by_cosine[i] + down.by_sine[j] - origin_x,
                    down.by_cosine[j] - across.by_sine[i] - origin_y, sum);
      }
      if (sum.coverage < kLeastCoverage * static_cast<float>(samples)) continue;
      out.value[out.index(x, y)] = sum.weighted_value / sum.coverage;
      out.counts[out.index(x, y)] = 1;
    }
  }
  return out;
}

double score_between(const TurnedPattern& a, const TurnedPattern& b) {
  double n = 0;
  double sum_a = 0;
  double sum_b = 0;
  double sum_aa = 0;
  double sum_bb = 0;
  double sum_ab = 0;
  for (int y = 0; y < a.height; ++y) {
    for (int x = 0; x < a.width; ++x) {
      const int bx = a.left + x - b.left;
      const int by = a.top + y - b.top;
      if (bx < 0 || by < 0 || bx >= b.width || by >= b.height) continue;
      if (a.counts[a.index(x, y)] == 0 || b.counts[b.index(bx, by)] == 0) continue;
      const double va = static_cast<double>(a.value[a.index(x, y)]);
      const double vb = static_cast<double>(b.value[b.index(bx, by)]);
      n += 1;
      sum_a += va;
      sum_b += vb;
      sum_aa += va * va;
      sum_bb += vb * vb;
      sum_ab += va * vb;
    }
  }
  if (n < 2) return 0;
  const double var_a = sum_aa - sum_a * sum_a / n;
  const double var_b = sum_bb - sum_b * sum_b / n;
  // A hundredth of a grey level: flat.
  if (var_a < 1e-4 * n || var_b < 1e-4 * n) return 0;
  return std::clamp((sum_ab - sum_a * sum_b / n) / std::sqrt(var_a * var_b), -1.0, 1.0);
}

double worst_self_score(const std::vector<PatternLevel>& pyramid, int level, double angle_step_deg,
                        Sampling sampling) {
  struct Offset {
    double x, y;
  };
  const std::vector<Offset> offsets = sampling == Sampling::kPixels
                                          ? std::vector<Offset>{{0.5, 0.5}}
                                          : std::vector<Offset>{{0.5, 0}, {0, 0.5}};
  double worst = 1;
  // The loss depends on how the structure lies to the grid: three turns a third of a quarter apart.
  for (double angle : {0.0, 30.0, 60.0}) {
    const TurnedPattern sample = render_turned(pyramid, level, {angle, 1, 0, 0});
    for (const Offset& offset : offsets) {
      const TurnedPattern truth =
          render_turned(pyramid, level, {angle + angle_step_deg / 2, 1, offset.x, offset.y});
      worst = std::min(worst, score_between(sample, truth));
    }
  }
  return worst;
}

double farthest_pixel(const PatternLevel& level) {
  double farthest = 0;
  for (int y = 0; y < level.height; ++y) {
    for (int x = 0; x < level.width; ++x) {
      if (level.coverage[level.index(x, y)] < kLeastCoverage) continue;
      farthest = std::max(farthest, std::hypot(level.origin_x + x * level.spacing(),
                                               level.origin_y + y * level.spacing()));
    }
  }
  return farthest;
}

double one_pixel_turn_deg(const PatternLevel& level) {
  const double radius = std::max(farthest_pixel(level) / level.spacing(), 0.5);
  return std::min(1 / radius / kDegToRad, 60.0);
}

int counting_pixels(const PatternLevel& level) {
  return static_cast<int>(std::count_if(level.coverage.begin(), level.coverage.end(),
                                        [](float c) { return c >= kLeastCoverage; }));
}

double contrast_of(const PatternLevel& level) {
  double n = 0;
  double mean = 0;
  double squares = 0;  // Welford's running sums: nothing cancels
  for (std::size_t i = 0; i < level.value.size(); ++i) {
    if (level.coverage[i] < kLeastCoverage) continue;
    n += 1;
    const double value = static_cast<double>(level.value[i]);
    const double before = value - mean;
    mean += before / n;
    squares += before * (value - mean);
  }
  return n > 0 ? std::sqrt(squares / n) : 0;
}

}  // namespace patternd
