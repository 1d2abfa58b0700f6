// Angles and turned rectangles: the circle's arithmetic in one place.
#pragma once

#include <vector>

#include "pipeline/match.h"
#include "pipeline/result.h"

namespace patternd {

inline constexpr double kDegToRad = 3.14159265358979323846 / 180;

// The angle's representative in [−period/2, period/2): 0 and 360 are one, +180 is −180.
[[nodiscard]] double wrap_deg(double angle_deg, double period_deg = 360);

// The angles that a search covers: ranges [low, high] with low in [−period/2, period/2), disjoint,
// rising; `high` may pass +period/2. A full circle is one range as long as the period.
struct AngleRanges {
  double period_deg = 360;  // 360 over the symmetry
  std::vector<Range> ranges;

  [[nodiscard]] bool full() const {
    return ranges.size() == 1 && ranges[0].high - ranges[0].low >= period_deg;
  }
  // The nearest angle that lies inside, wrapped.
  [[nodiscard]] double nearest(double angle_deg) const;
  [[nodiscard]] bool contains(double angle_deg) const { return distance(angle_deg) == 0; }
  // How far outside the angle lies, in degrees.
  [[nodiscard]] double distance(double angle_deg) const;
};

// Folds ranges into one period, merges those that touch. Empty: everything. `symmetry` is 1..360.
[[nodiscard]] AngleRanges normalise_angles(const std::vector<Range>& ranges, int symmetry);

// A rectangle turned about its centre.
struct TurnedRectangle {
  double center_x = 0;
  double center_y = 0;
  double width = 0;
  double height = 0;
  double angle_deg = 0;
};

// Area of the intersection over the smaller one's area, 0..1.
[[nodiscard]] double overlap_of(const TurnedRectangle& a, const TurnedRectangle& b);

// Whether that is more than `share`. Mostly circles around the rectangles, or within them, tell.
[[nodiscard]] bool overlap_by_more(const TurnedRectangle& a, const TurnedRectangle& b,
                                   double share);

}  // namespace patternd
