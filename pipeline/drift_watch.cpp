#include "pipeline/drift_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace patternd {
namespace {

constexpr double kDegreesPerRadian = 180 / 3.14159265358979323846;

// The best match of a pattern: they come sorted by score.
const Match* best_of(const std::vector<Match>& matches, int pattern) {
  const auto found = std::find_if(matches.begin(), matches.end(), [pattern](const Match& match) {
    return match.pattern == pattern && match.has_mm;
  });
  return found == matches.end() ? nullptr : &*found;
}

// Sums over the fiducials seen, each about the known middle of those seen.
struct Sums {
  int count = 0;
  Point2 known, seen;
  double worst_mm = 0;
};

}  // namespace

Result<DriftWatch> DriftWatch::create(const FiducialParams& params, std::size_t pattern_count) {
  if (params.patterns.empty() || params.patterns.size() != params.places_mm.size()) {
    return fail(ErrorCode::kInvalidArgument,
                "fiducials: " + std::to_string(params.patterns.size()) + " patterns and " +
                    std::to_string(params.places_mm.size()) +
                    " places; as many places as patterns, at least one, are expected");
  }
  std::vector<int> sorted = params.patterns;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end() || sorted.front() < 0 ||
      static_cast<std::size_t>(sorted.back()) >= pattern_count) {
    return fail(ErrorCode::kInvalidArgument,
                "fiducials: each names one of the configured patterns, once");
  }
  if (!(params.limit_mm > 0) || params.every < 1) {
    return fail(ErrorCode::kInvalidArgument,
                "fiducials: limit_mm must be above 0 and every at least 1");
  }
  return DriftWatch(params);
}

bool DriftWatch::feed(const std::vector<Match>& matches) {
  if (++frames_ < params_.every) return false;
  frames_ = 0;
  return compare(matches);
}

bool DriftWatch::compare(const std::vector<Match>& matches) {
  Sums sums;
  for (std::size_t i = 0; i < params_.patterns.size(); ++i) {
    const Match* match = best_of(matches, params_.patterns[i]);
    if (match == nullptr) continue;
    const Point2 place = params_.places_mm[i];
    ++sums.count;
    sums.known = {sums.known.x + place.x, sums.known.y + place.y};
    sums.seen = {sums.seen.x + match->x_mm, sums.seen.y + match->y_mm};
    sums.worst_mm =
        std::max(sums.worst_mm, std::hypot(match->x_mm - place.x, match->y_mm - place.y));
  }
  if (sums.count == 0) return false;

  const Point2 known_middle{sums.known.x / sums.count, sums.known.y / sums.count};
  const Point2 seen_middle{sums.seen.x / sums.count, sums.seen.y / sums.count};
  double cross = 0;
  double dot = 0;
  for (std::size_t i = 0; i < params_.patterns.size(); ++i) {
    const Match* match = best_of(matches, params_.patterns[i]);
    if (match == nullptr) continue;
    const Point2 a{params_.places_mm[i].x - known_middle.x,
                   params_.places_mm[i].y - known_middle.y};
    const Point2 b{match->x_mm - seen_middle.x, match->y_mm - seen_middle.y};
    cross += a.x * b.y - a.y * b.x;
    dot += a.x * b.x + a.y * b.y;
  }
  drift_.found = sums.count;
  drift_.worst_mm = sums.worst_mm;
  drift_.shift_x_mm = seen_middle.x - known_middle.x;
  drift_.shift_y_mm = seen_middle.y - known_middle.y;
  drift_.turn_deg = sums.count > 1 ? std::atan2(cross, dot) * kDegreesPerRadian : 0;
  ++drift_.compared;

  const bool over = sums.worst_mm > params_.limit_mm;
  votes_ = over == drift_.moved ? 0 : votes_ + 1;
  if (votes_ < kDriftVotes) return false;
  votes_ = 0;
  drift_.moved = over;
  return true;
}

}  // namespace patternd
