#include "pipeline/matcher_plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "pipeline/match_choice.h"
#include "pipeline/pattern_pyramid.h"
#include "pipeline/pyramid.h"

namespace patternd {
namespace {

// Pixels of a turned pattern at the coarsest level: the kernel's integer sums hold that many.
constexpr int kMostTopPixels = 8000;
constexpr int kMostPlanes = 20000;
// Samples of CoarseImage.
constexpr int kMaxSample8 = 128;
constexpr int kMaxSample16 = 512;
// From this many pixels on a level is traced by regression: two samplings of the picture instead of
// four or five.
constexpr int kRegressionPixels = 150;
// Of so few pixels about half lie at the rim and see the background where a place lies off: the
// self-score, which knows of none, says too little of what a search loses (a place worst between
// the samples of 8×10 pixels scored 0.42 where 0.67 was to be expected).
constexpr int kSmallTopPixels = 100;
constexpr double kLeastSmallSelfScore = 0.81;
// A true match may score this much lower at a level than the pattern's own loss there explains
// (noise, background at the rim, light).
constexpr double kCoarseSlack = 0.92;
constexpr double kTraceSlack = 0.96;
// A candidate that scores less than this share of a level's threshold where it comes down is not
// worth following. Of 2,600 that came to a level's threshold from below the coarsest, 2 had less.
// Where the scale is free too, that may be off as well.
constexpr double kHopeless = 0.65;
constexpr double kHopelessWithScale = 0.35;

std::string text(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

bool within(double value, double low, double high) { return value >= low && value <= high; }

tl::unexpected<Error> refuse(const PatternSearch& search, const std::string& key,
                             const std::string& value, const std::string& accepted) {
  return fail(ErrorCode::kInvalidArgument,
              "pattern " + search.pattern->name + ": " + key + " is " + value + "; " + accepted);
}

Result<void> check_params(const PatternSearch& search) {
  const auto fault = find_fault(search.params);
  if (fault) return refuse(search, fault->key, fault->value, fault->accepted);
  return {};
}

Result<void> check_size(const PatternSearch& search, const MatcherConfig& config) {
  const ImageView picture = search.pattern->picture.view();
  const double scale = search.params.scale.low;
  if (picture.width * scale <= config.width && picture.height * scale <= config.height) return {};
  std::string message = "pattern " + search.pattern->name + " is " + std::to_string(picture.width) +
                        "x" + std::to_string(picture.height) + " pixels";
  if (scale != 1) message += " (at scale " + text(scale) + " still)";
  return fail(ErrorCode::kInvalidArgument,
              message + ", larger than the searched picture, " + std::to_string(config.width) +
                  "x" + std::to_string(config.height) +
                  ": it must fit in both directions; teach a smaller part");
}

// Angles of the coarsest level: each range from end to end in equal steps of at most `step`.
std::vector<double> sampled_angles(const AngleRanges& angles, double step) {
  std::vector<double> out;
  for (const Range& range : angles.ranges) {
    const double span = range.high - range.low;
    const int intervals = std::max(0, static_cast<int>(std::ceil(span / step - 1e-9)));
    const int count = angles.full() ? std::max(intervals, 1) : intervals + 1;
    for (int i = 0; i < count; ++i)
      out.push_back(range.low + (intervals > 0 ? span * i / intervals : 0));
  }
  return out;
}

std::vector<double> sampled_scales(const Range& scale, double step) {
  std::vector<double> out;
  const double span = std::log(scale.high / scale.low);
  const int intervals = std::max(0, static_cast<int>(std::ceil(span / std::log1p(step) - 1e-9)));
  for (int i = 0; i <= intervals; ++i)
    out.push_back(scale.low * std::exp(intervals > 0 ? span * i / intervals : 0));
  return out;
}

double mean_of(const PatternLevel& level) {
  double sum = 0;
  double pixels = 0;
  for (std::size_t i = 0; i < level.value.size(); ++i) {
    if (level.coverage[i] < kLeastCoverage) continue;
    sum += static_cast<double>(level.value[i]);
    pixels += 1;
  }
  return pixels > 0 ? sum / pixels : 0;
}

// The share of a pattern of w × h pixels that is still seen when `lost` pixels of each axis are
// not.
double share_without(double w, double h, double lost) {
  return std::max(0.0, 1 - lost / w) * std::max(0.0, 1 - lost / h);
}

const PatternLevel& level_of(const PatternPlan& plan, int level) {
  return plan.pyramid[static_cast<std::size_t>(
      std::clamp(level, 0, static_cast<int>(plan.pyramid.size()) - 1))];
}

// The energy that uneven light adds to a pattern's own at level 0, as a share of it: 15 %, or what
// light of ±40 % from side to side of the picture does to a bright pattern of little contrast. A
// ramp of height h has variance h²/12.
double light_at_level_0(const PatternLevel& full, double contrast, const MatcherConfig& config) {
  constexpr double kLeast = 0.15;
  constexpr double kMost = 1;
  constexpr double kRise = 0.8;
  const double share = std::max(static_cast<double>(full.width) / config.width,
                                static_cast<double>(full.height) / config.height);
  const double ramp = kRise * std::min(share, 1.0) * mean_of(full) / std::sqrt(12.0);
  const double energy = ramp / std::max(contrast, 1e-9);
  return std::clamp(energy * energy, kLeast, kMost);
}

// By how much uneven light lowers scores more at a level than at level 0: light stays while
// contrast is averaged away.
double light_loss(const PatternPlan& plan, const PatternLevel& level) {
  const double share =
      std::clamp(contrast_of(level) / std::max(plan.search.pattern->contrast, 1e-9), 0.1, 1.0);
  return std::sqrt((1 + plan.light) / (1 + plan.light / (share * share)));
}

// Levels of the picture by which a pattern appears larger or smaller than taught.
struct SizeLevels {
  int middle = 0;    // at its middle scale: for the way down
  int smallest = 0;  // at its smallest: for the coarsest level
};

SizeLevels size_levels_of(const Range& scale) {
  return {static_cast<int>(std::lround(std::log2(std::sqrt(scale.low * scale.high)))),
          static_cast<int>(std::floor(std::log2(scale.low) + 0.35))};
}

int taught_levels(const PatternPlan& plan) {
  return plan.search.params.levels.value_or(plan.search.pattern->levels);
}

Result<void> check_levels(const PatternPlan& plan) {
  const int taught = taught_levels(plan);
  const int deepest = static_cast<int>(plan.pyramid.size()) - 1;
  if (taught >= 0 && taught <= deepest) return {};
  return refuse(plan.search, "levels", std::to_string(taught),
                "a pattern of this size has 0 to " + std::to_string(deepest));
}

int top_level_of(const PatternPlan& plan, const SizeLevels& sizes, const MatcherConfig& config) {
  return std::clamp(taught_levels(plan) + std::min(sizes.smallest, sizes.middle),
                    std::max(0, sizes.middle), deepest_level(config.width, config.height));
}

// Which poses the coarsest level tries, and in what picture.
void plan_coarse_poses(PatternPlan& plan, const PatternLevel& top, double step_deg,
                       const MatcherConfig& config) {
  CoarseConfig& coarse = plan.coarse;
  coarse.level = plan.top_level;
  coarse.width = config.width >> plan.top_level;
  coarse.height = config.height >> plan.top_level;
  coarse.max_sample = config.format == PixelFormat::kGray8 ? kMaxSample8 : kMaxSample16;
  coarse.angles_deg = plan.search.pattern->round ? std::vector<double>{plan.angles.nearest(0)}
                                                 : sampled_angles(plan.angles, step_deg);
  coarse.circular = plan.angles.full() && coarse.angles_deg.size() > 2;
  coarse.scales = sampled_scales(plan.search.params.scale, one_pixel_turn_deg(top) * kDegToRad);
  coarse.roi = plan.search.params.roi;
  coarse.ref_dx = -plan.center_dx;
  coarse.ref_dy = -plan.center_dy;
}

Result<void> check_coarse_amount(const PatternPlan& plan) {
  const double planes = static_cast<double>(plan.coarse.angles_deg.size()) *
                        static_cast<double>(plan.coarse.scales.size());
  const double spacing = static_cast<double>(1 << plan.top_level);
  const double largest = plan.search.params.scale.high / spacing;
  const double pixels = counting_pixels(plan.pyramid[0]) * largest * largest;
  if (pixels <= kMostTopPixels && planes <= kMostPlanes) return {};
  return refuse(plan.search, "levels", std::to_string(taught_levels(plan)),
                "the coarsest level would hold " + text(pixels) + " pattern pixels in " +
                    text(planes) + " turned copies; at most " + std::to_string(kMostTopPixels) +
                    " and " + std::to_string(kMostPlanes) +
                    " are searched: use more levels or a larger angle_step");
}

// What a place at the coarsest level must score, and how its pixels are sampled.
void plan_coarse_scores(PatternPlan& plan, const PatternLevel& top, double step_deg) {
  const SearchParams& params = plan.search.params;
  CoarseConfig& coarse = plan.coarse;
  const double whole = worst_self_score(plan.pyramid, top.level, step_deg);
  coarse.quincunx =
      whole < (counting_pixels(top) < kSmallTopPixels ? kLeastSmallSelfScore : kLeastSelfScore);
  const double self = coarse.quincunx
                          ? worst_self_score(plan.pyramid, top.level, step_deg, Sampling::kQuincunx)
                          : whole;
  coarse.threshold = params.min_score * kCoarseSlack * self * light_loss(plan, top);
  coarse.least_visible = params.min_visible * share_without(top.width * 1.0, top.height * 1.0, 1.6);
  coarse.any_polarity = params.polarity == Polarity::kAny;
  coarse.peaks_per_plane = static_cast<std::size_t>(std::clamp(4 * params.max_matches, 64, 2000));
}

void plan_steps(PatternPlan& plan, int size_levels, double step_top_deg, bool with_scale) {
  const SearchParams& params = plan.search.params;
  const auto wanted = static_cast<std::size_t>(params.max_matches);
  for (int l = plan.top_level; l >= std::max(0, size_levels); --l) {
    const PatternLevel& level = level_of(plan, l - size_levels);
    TraceStep step;
    step.level = make_trace_level(level, l);
    const double turn = one_pixel_turn_deg(level);
    if (!plan.fixed_angle)
      step.level.angle_step_deg = l == plan.top_level ? std::min(step_top_deg / 2, turn) : turn;
    if (with_scale) step.level.scale_step = turn * kDegToRad;
    const double worst = worst_self_score(plan.pyramid, level.level, turn);
    step.threshold = params.min_score * kTraceSlack * (1 + worst) / 2 * light_loss(plan, level);
    // The coarsest level's own loss is in its candidates: the next level tells them apart better.
    if (l == plan.top_level) step.threshold = std::min(step.threshold, 0.9 * plan.coarse.threshold);
    step.hopeless_score = step.threshold * (with_scale ? kHopelessWithScale : kHopeless);
    step.least_visible = params.min_visible * share_without(level.width, level.height, 1.1);
    step.most_kept = l + 1 >= plan.top_level ? std::max<std::size_t>(60, 10 * wanted)
                                             : std::max<std::size_t>(24, 3 * wanted);
    // One level below the coarsest a candidate may still be a pixel and a step off.
    step.neighbours_first = l + 1 >= plan.top_level;
    if (l + 1 == plan.top_level) step.most_followed = most_followed(params);
    step.by_regression = l < plan.top_level && counting_pixels(level) >= kRegressionPixels;
    if (step.by_regression) {
      step.regression =
          make_refine_pattern(step.level, !plan.fixed_angle, with_scale, LightModel::kRough);
      step.by_regression = !step.regression.inverse_gram.empty();
    }
    plan.steps.push_back(std::move(step));
  }
}

}  // namespace

std::optional<ParamFault> find_fault(const SearchParams& p) {
  if (!(p.min_score > 0 && p.min_score <= 1))
    return ParamFault{"min_score", text(p.min_score), "it must be over 0 and at most 1"};
  if (p.max_matches < 1 || p.max_matches > 1000)
    return ParamFault{"max_matches", std::to_string(p.max_matches), "it must be 1 to 1000"};
  for (const Range& range : p.angle_deg) {
    if (!within(range.low, -360, 360) || !within(range.high, range.low, 360)) {
      return ParamFault{"angle", "[" + text(range.low) + ", " + text(range.high) + "]",
                        "it must be [low, high] in degrees with -360 <= low <= high <= 360"};
    }
  }
  if (!within(p.scale.low, 0.1, 10) || !within(p.scale.high, p.scale.low, 10)) {
    return ParamFault{"scale", "[" + text(p.scale.low) + ", " + text(p.scale.high) + "]",
                      "it must be [low, high] with 0.1 <= low <= high <= 10"};
  }
  if (!within(p.max_overlap, 0, 1))
    return ParamFault{"max_overlap", text(p.max_overlap), "it must be 0 to 1"};
  if (!(p.min_visible > 0 && p.min_visible <= 1))
    return ParamFault{"min_visible", text(p.min_visible), "it must be over 0 and at most 1"};
  if (!within(p.min_contrast, 0, 255))
    return ParamFault{"min_contrast", text(p.min_contrast), "it must be 0 to 255 grey levels"};
  if (p.symmetry < 1 || p.symmetry > 360)
    return ParamFault{"symmetry", std::to_string(p.symmetry), "it must be 1 to 360"};
  if (p.angle_step_deg && !within(*p.angle_step_deg, kAngleStepLimits.low, kAngleStepLimits.high))
    return ParamFault{"angle_step", text(*p.angle_step_deg), "it must be 0.01 to 60 degrees"};
  if (p.roi && !(within(p.roi->x, -1e6, 1e6) && within(p.roi->y, -1e6, 1e6) &&
                 within(p.roi->width, 0, 1e6) && p.roi->width > 0 &&
                 within(p.roi->height, 0, 1e6) && p.roi->height > 0)) {
    return ParamFault{"roi",
                      "[" + text(p.roi->x) + ", " + text(p.roi->y) + ", " + text(p.roi->width) +
                          ", " + text(p.roi->height) + "]",
                      "it must be [x, y, width, height] in pixels, -1e6 to 1e6, with a width and "
                      "height above 0"};
  }
  return std::nullopt;
}

Result<PatternPlan> plan_pattern(const PatternSearch& search, const MatcherConfig& config) {
  if (!search.pattern || search.pattern->picture.empty())
    return fail(ErrorCode::kInvalidArgument, "a pattern without a picture; teach or load it first");
  if (auto ok = check_params(search); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = check_size(search, config); !ok) return tl::make_unexpected(ok.error());
  const Pattern& pattern = *search.pattern;
  const SearchParams& params = search.params;
  const ImageView picture = pattern.picture.view();
  PatternPlan plan;
  plan.search = search;
  plan.center_dx = (picture.width - 1) / 2.0 - pattern.ref_x;
  plan.center_dy = (picture.height - 1) / 2.0 - pattern.ref_y;
  plan.angles = normalise_angles(params.angle_deg, params.symmetry);
  plan.pyramid = make_pattern_pyramid(pattern, deepest_level(picture.width, picture.height));
  plan.light = light_at_level_0(plan.pyramid[0], pattern.contrast, config);
  if (auto ok = check_levels(plan); !ok) return tl::make_unexpected(ok.error());
  const SizeLevels sizes = size_levels_of(params.scale);
  plan.top_level = top_level_of(plan, sizes, config);
  const PatternLevel& top = level_of(plan, plan.top_level - sizes.smallest);

  const bool one_angle =
      plan.angles.ranges.size() == 1 && plan.angles.ranges[0].high - plan.angles.ranges[0].low <= 0;
  plan.fixed_angle = pattern.round || one_angle;
  const double step = params.angle_step_deg.value_or(params.levels ? one_pixel_turn_deg(top)
                                                                   : pattern.angle_step_deg);
  const bool with_scale = params.scale.high > params.scale.low;
  plan_coarse_poses(plan, top, step, config);
  if (auto ok = check_coarse_amount(plan); !ok) return tl::make_unexpected(ok.error());
  plan_coarse_scores(plan, top, step);
  plan_steps(plan, sizes.middle, step, with_scale);
  plan.refine = make_refine_pattern(plan.steps.back().level, !plan.fixed_angle, with_scale);
  if (!plan.angles.full() && !plan.fixed_angle)
    plan.refine_at_bound = make_refine_pattern(plan.steps.back().level, false, with_scale);
  return plan;
}

}  // namespace patternd
