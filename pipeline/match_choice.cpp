#include "pipeline/match_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "pipeline/match_angles.h"

namespace patternd {
namespace {

TurnedRectangle rectangle_of(const PatternPlan& plan, const Candidate& c) {
  const ImageView picture = plan.search.pattern->picture.view();
  return {c.x, c.y, picture.width * c.scale, picture.height * c.scale, c.angle_deg};
}

Match match_of(const PatternPlan& plan, int pattern, const Candidate& c, const Refinement& r) {
  Match out;
  out.pattern = pattern;
  const double cosine = std::cos(c.angle_deg * kDegToRad) * c.scale;
  const double sine = std::sin(c.angle_deg * kDegToRad) * c.scale;
  out.x_px = c.x - (cosine * plan.center_dx - sine * plan.center_dy);
  out.y_px = c.y - (sine * plan.center_dx + cosine * plan.center_dy);
  out.angle_deg = wrap_deg(c.angle_deg, plan.angles.period_deg);
  out.scale = c.scale;
  out.score = c.score;
  out.visible = c.visible;
  out.inverted = c.inverted;
  out.x_std_px = r.x_std_px;
  out.y_std_px = r.y_std_px;
  out.angle_std_deg = r.angle_std_deg;
  return out;
}

// Who came farther down is the likelier runner-up: up there all scores are higher.
bool better_rival(const Candidate& a, const Candidate& b) {
  return a.level != b.level ? a.level < b.level : better_candidate(a, b);
}

bool in_roi(const std::optional<Roi>& roi, const Match& match) {
  // Results give thousandths of a pixel: a match that is reported at the rim is inside.
  constexpr double kRounding = 0.0005;
  const auto within = [](double at, double low, double extent) {
    return at >= low - kRounding && at <= low + extent + kRounding;
  };
  return !roi ||
         (within(match.x_px, roi->x, roi->width) && within(match.y_px, roi->y, roi->height));
}

}  // namespace

std::size_t most_coarse(const SearchParams& params) {
  return static_cast<std::size_t>(std::clamp(40 * params.max_matches, 100, kMostCoarse));
}

std::size_t most_followed(const SearchParams& params) {
  return 40 + 6 * static_cast<std::size_t>(params.max_matches);
}

bool better_candidate(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.y != b.y) return a.y < b.y;
  if (a.x != b.x) return a.x < b.x;
  return a.angle_deg < b.angle_deg;
}

bool same_pose(const PatternPlan& plan, const TraceStep& step, const Candidate& a,
               const Candidate& b) {
  const double pixel = static_cast<double>(1 << step.level.image_level);
  if (std::abs(a.x - b.x) > pixel || std::abs(a.y - b.y) > pixel) return false;
  if (step.level.angle_step_deg > 0 &&
      std::abs(wrap_deg(a.angle_deg - b.angle_deg, plan.angles.period_deg)) >
          step.level.angle_step_deg)
    return false;
  return !(step.level.scale_step > 0 && std::abs(a.scale / b.scale - 1) > step.level.scale_step);
}

std::size_t rivals_of(const PatternPlan& plan, const Candidate& match,
                      const std::vector<Candidate>& losers, Rivals& rivals, std::size_t most) {
  const TraceStep& top = plan.steps.front();
  const ImageView picture = plan.search.pattern->picture.view();
  const double half_diagonal = 0.5 * std::hypot(picture.width, picture.height);
  std::size_t count = 0;
  for (const Candidate& loser : losers) {
    // Circles that don't meet, rectangles within them that don't overlap: most losers.
    const double reach = half_diagonal * (match.scale + loser.scale);
    const double dx = match.x - loser.x;
    const double dy = match.y - loser.y;
    if (dx * dx + dy * dy >= reach * reach || !(loser.score > 0)) continue;
    if (count == most && !better_rival(loser, rivals[count - 1])) continue;
    if (same_pose(plan, top, match, loser)) continue;
    if (!overlap_by_more(rectangle_of(plan, match), rectangle_of(plan, loser),
                         plan.search.params.max_overlap))
      continue;
    std::size_t place = count < most ? count++ : count - 1;
    for (; place > 0 && better_rival(loser, rivals[place - 1]); --place)
      rivals[place] = rivals[place - 1];
    rivals[place] = loser;
  }
  return count;
}

void choose_matches(const PatternPlan& plan, int pattern, std::vector<Candidate>& candidates,
                    std::vector<Refinement>& refinements, std::vector<Candidate>& losers,
                    std::vector<Match>& matches) {
  const SearchParams& params = plan.search.params;
  auto& all = candidates;
  for (std::size_t i = 0; i < all.size(); ++i) {
    // Insertion keeps candidates and their refinements side by side.
    for (std::size_t k = i; k > 0 && better_candidate(all[k], all[k - 1]); --k) {
      std::swap(all[k], all[k - 1]);
      std::swap(refinements[k], refinements[k - 1]);
    }
  }
  const std::size_t first = matches.size();
  std::size_t taken = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Match match = match_of(plan, pattern, all[i], refinements[i]);
    const bool overlaps = std::any_of(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(taken), [&](const Candidate& other) {
          return overlap_by_more(rectangle_of(plan, other), rectangle_of(plan, all[i]),
                                 params.max_overlap);
        });
    if (overlaps || all[i].score < params.min_score ||
        taken == static_cast<std::size_t>(params.max_matches) || !in_roi(params.roi, match)) {
      if (losers.size() < losers.capacity()) losers.push_back(all[i]);
      continue;
    }
    all[taken++] = all[i];
    matches.push_back(match);
  }
  Rivals rivals;
  for (std::size_t i = 0; i < taken; ++i) {
    if (rivals_of(plan, all[i], losers, rivals, 1) > 0)
      matches[first + i].runner_up = std::min(rivals[0].score, all[i].score);
  }
}

void sort_matches(std::vector<Match>& matches) {
  std::sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
    if (a.score != b.score) return a.score > b.score;
    if (a.pattern != b.pattern) return a.pattern < b.pattern;
    return a.y_px != b.y_px ? a.y_px < b.y_px : a.x_px < b.x_px;
  });
}

}  // namespace patternd
