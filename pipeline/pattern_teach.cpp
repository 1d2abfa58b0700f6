// Teaching: is this a pattern that can be found, and from which level, in which angle steps?
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "pipeline/pattern.h"
#include "pipeline/pattern_pyramid.h"
#include "pipeline/pyramid.h"

namespace patternd {
namespace {

constexpr int kLeastSide = 8;
constexpr int kLargestSide = 4096;
constexpr int kLeastPixels = 64;
constexpr double kLeastContrast = 2;

// A level still has structure when enough pixels are left, they keep a share of the contrast, and
// a search there, worst between two samples, still sees most of its own pattern.
constexpr int kLeastTopPixels = 56;
constexpr double kLeastContrastShare = 0.5;
constexpr double kLeastTopScore = 0.62;

// Above this a turned copy of the pattern is the pattern.
constexpr double kSameScore = 0.98;
// Of the two principal sums of squared gradients, the smaller over the larger; below this the place
// along the other direction is told by noise alone.
constexpr double kLeastStructureRatio = 0.004;

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", value);
  return buffer;
}

Result<void> check_picture(const std::string& name, const ImageView& picture,
                           const ImageView& mask) {
  const std::string what = "pattern " + name;
  if (auto ok = check_view(picture, what); !ok) return ok;
  if (picture.format != PixelFormat::kGray8 && picture.format != PixelFormat::kGray16) {
    return fail(ErrorCode::kInvalidArgument,
                what + ": picture is " + name_of(picture.format) + "; gray8 or gray16 is needed");
  }
  const std::string size = std::to_string(picture.width) + "x" + std::to_string(picture.height);
  if (std::min(picture.width, picture.height) < kLeastSide ||
      std::max(picture.width, picture.height) > kLargestSide) {
    return fail(ErrorCode::kInvalidArgument, what + ": size is " + size + "; sides must be " +
                                                 std::to_string(kLeastSide) + " to " +
                                                 std::to_string(kLargestSide) + " pixels");
  }
  if (mask.data == nullptr) return {};
  if (auto ok = check_view(mask, what + ": mask"); !ok) return ok;
  if (mask.format != PixelFormat::kGray8 || mask.width != picture.width ||
      mask.height != picture.height) {
    return fail(ErrorCode::kInvalidArgument,
                what + ": mask is " + std::to_string(mask.width) + "x" +
                    std::to_string(mask.height) + " " + name_of(mask.format) +
                    "; it must be gray8 and as large as the picture, " + size);
  }
  return {};
}

Result<void> check_options(const std::string& name, const TeachOptions& options) {
  const std::string what = "pattern " + name;
  for (const auto& ref : {options.ref_x, options.ref_y}) {
    if (ref && !(std::abs(*ref) <= kMaxImageSide)) {
      return fail(ErrorCode::kInvalidArgument,
                  what + ": reference point " + text(*ref) + "; it must be within " +
                      std::to_string(kMaxImageSide) + " pixels of the pattern's corner");
    }
  }
  if (options.angle_step_deg && !(*options.angle_step_deg >= kAngleStepLimits.low &&
                                  *options.angle_step_deg <= kAngleStepLimits.high))
    return fail(
        ErrorCode::kInvalidArgument,
        what + ": angle step " + text(*options.angle_step_deg) + "; it must be 0.01 to 60 degrees");
  return {};
}

bool has_structure(const std::vector<PatternLevel>& pyramid, const PatternLevel& level) {
  return counting_pixels(level) >= kLeastTopPixels &&
         contrast_of(level) >= kLeastContrastShare * contrast_of(pyramid[0]) &&
         worst_self_score(pyramid, level.level, one_pixel_turn_deg(level), Sampling::kQuincunx) >=
             kLeastTopScore;
}

// The coarsest level that still has structure, with no unsuitable one below it.
int choose_levels(const std::vector<PatternLevel>& pyramid) {
  int best = 0;
  while (best + 1 < static_cast<int>(pyramid.size()) &&
         has_structure(pyramid, pyramid[static_cast<std::size_t>(best) + 1]))
    ++best;
  return best;
}

// Smaller over larger eigenvalue of the summed gradient products.
double structure_ratio(const PatternLevel& level) {
  double xx = 0;
  double yy = 0;
  double xy = 0;
  const auto counts = [&](int x, int y) {
    return level.coverage[level.index(x, y)] >= kLeastCoverage;
  };
  for (int y = 1; y + 1 < level.height; ++y) {
    for (int x = 1; x + 1 < level.width; ++x) {
      if (!counts(x - 1, y) || !counts(x + 1, y) || !counts(x, y - 1) || !counts(x, y + 1))
        continue;
      const auto at = [&](int px, int py) {
        return static_cast<double>(level.value[level.index(px, py)]);
      };
      const double gx = at(x + 1, y) - at(x - 1, y);
      const double gy = at(x, y + 1) - at(x, y - 1);
      xx += gx * gx;
      yy += gy * gy;
      xy += gx * gy;
    }
  }
  const double middle = (xx + yy) / 2;
  const double spread = std::hypot((xx - yy) / 2, xy);
  return middle + spread > 0 ? std::max(0.0, middle - spread) / (middle + spread) : 0;
}

bool looks_the_same_turned(const std::vector<PatternLevel>& pyramid, int level) {
  const TurnedPattern upright = render_turned(pyramid, level, {0, 1, 0, 0});
  for (double angle : {17.0, 45.0, 77.0, 90.0, 128.0, 180.0, 211.0}) {
    if (score_between(upright, render_turned(pyramid, level, {angle, 1, 0, 0})) < kSameScore)
      return false;
  }
  return true;
}

Result<void> check_content(const std::string& name, const PatternLevel& full, double contrast) {
  const int pixels = counting_pixels(full);
  if (pixels < kLeastPixels) {
    return fail(ErrorCode::kInvalidArgument, "pattern " + name + ": the mask leaves " +
                                                 std::to_string(pixels) + " pixels; at least " +
                                                 std::to_string(kLeastPixels) + " are needed");
  }
  if (contrast < kLeastContrast) {
    return fail(ErrorCode::kInvalidArgument,
                "pattern " + name + ": flat, its contrast is " + text(contrast) +
                    " grey levels (standard deviation); at least " + text(kLeastContrast) +
                    " are needed: choose a part with more structure");
  }
  return {};
}

}  // namespace

Result<Pattern> teach_pattern(const std::string& name, const ImageView& picture,
                              const ImageView& mask, const TeachOptions& options) {
  if (auto ok = check_picture(name, picture, mask); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = check_options(name, options); !ok) return tl::make_unexpected(ok.error());
  Pattern pattern;
  pattern.name = name;
  auto copy = Image::copy_of(picture);
  if (!copy) return tl::make_unexpected(copy.error());
  pattern.picture = std::move(*copy);
  if (mask.data != nullptr) {
    auto mask_copy = Image::copy_of(mask);
    if (!mask_copy) return tl::make_unexpected(mask_copy.error());
    pattern.mask = std::move(*mask_copy);
  }
  pattern.ref_x = options.ref_x.value_or((picture.width - 1) / 2.0);
  pattern.ref_y = options.ref_y.value_or((picture.height - 1) / 2.0);
  pattern.calibration = options.calibration;

  const auto pyramid = make_pattern_pyramid(pattern, deepest_level(picture.width, picture.height));
  pattern.contrast = contrast_of(pyramid[0]);
  if (auto ok = check_content(name, pyramid[0], pattern.contrast); !ok)
    return tl::make_unexpected(ok.error());
  const int deepest = static_cast<int>(pyramid.size()) - 1;
  if (options.levels && (*options.levels < 0 || *options.levels > deepest)) {
    return fail(ErrorCode::kInvalidArgument,
                "pattern " + name + ": levels " + std::to_string(*options.levels) +
                    "; a pattern of this size has 0 to " + std::to_string(deepest));
  }
  pattern.levels = options.levels.value_or(choose_levels(pyramid));
  const PatternLevel& top = pyramid[static_cast<std::size_t>(pattern.levels)];
  pattern.angle_step_deg = options.angle_step_deg.value_or(one_pixel_turn_deg(top));
  if (structure_ratio(top) < kLeastStructureRatio) {
    return fail(ErrorCode::kInvalidArgument,
                "pattern " + name +
                    ": structure in one direction only (a stripe or ramp), so its "
                    "place is not defined: choose a part with a corner or an end");
  }
  pattern.round = looks_the_same_turned(pyramid, pattern.levels);
  return pattern;
}

}  // namespace patternd
