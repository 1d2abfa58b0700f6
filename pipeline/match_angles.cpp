#include "pipeline/match_angles.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace patternd {
namespace {

struct Point {
  double x;
  double y;
};

// A convex polygon of at most eight corners: what two rectangles can have in common.
struct Polygon {
  std::array<Point, 16> corners;  // the first `count` of them; no time is spent on the others
  std::size_t count = 0;
  void add(Point p) {
    if (count < corners.size()) corners[count++] = p;
  }
};

Polygon corners_of(const TurnedRectangle& r) {
  const double c = std::cos(r.angle_deg * kDegToRad);
  const double s = std::sin(r.angle_deg * kDegToRad);
  Polygon out;
  for (const auto& [sx, sy] : {std::array{-0.5, -0.5}, std::array{0.5, -0.5}, std::array{0.5, 0.5},
                               std::array{-0.5, 0.5}}) {
    const double x = sx * r.width;
    const double y = sy * r.height;
    out.add({r.center_x + c * x - s * y, r.center_y + s * x + c * y});
  }
  return out;
}

double side(const Point& a, const Point& b, const Point& p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

// The part of a polygon on the inner side of the line a→b (Sutherland and Hodgman, 1974).
Polygon clipped(const Polygon& polygon, const Point& a, const Point& b) {
  Polygon out;
  for (std::size_t i = 0; i < polygon.count; ++i) {
    const Point& p = polygon.corners[i];
    const Point& q = polygon.corners[(i + 1) % polygon.count];
    const double at_p = side(a, b, p);
    const double at_q = side(a, b, q);
    if (at_p >= 0) out.add(p);
    if ((at_p > 0 && at_q < 0) || (at_p < 0 && at_q > 0)) {
      const double t = at_p / (at_p - at_q);
      out.add({p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)});
    }
  }
  return out;
}

double diagonal_of(const TurnedRectangle& r) {
  return std::sqrt(r.width * r.width + r.height * r.height);
}

double square_distance(const TurnedRectangle& a, const TurnedRectangle& b) {
  const double dx = a.center_x - b.center_x;
  const double dy = a.center_y - b.center_y;
  return dx * dx + dy * dy;
}

double smaller_area(const TurnedRectangle& a, const TurnedRectangle& b) {
  return std::min(a.width * a.height, b.width * b.height);
}

// Whether circles around them don't meet: most pairs.
bool are_apart(const TurnedRectangle& a, const TurnedRectangle& b) {
  const double reach = (diagonal_of(a) + diagonal_of(b)) / 2;
  return square_distance(a, b) >= reach * reach;
}

// An area that they have in common however they are turned: of two circles of radius r within
// them, d apart. It is πr² for d = 0 and shrinks by no more than 2r for each unit of d.
double common_at_least(const TurnedRectangle& a, const TurnedRectangle& b) {
  const double r =
      std::max(0.0, std::min(std::min(a.width, a.height), std::min(b.width, b.height)) / 2);
  constexpr double kPi = 180 * kDegToRad;
  return r * (kPi * r - 2 * std::sqrt(square_distance(a, b)));
}

double area_of(const Polygon& polygon) {
  double twice = 0;
  for (std::size_t i = 0; i < polygon.count; ++i) {
    const Point& p = polygon.corners[i];
    const Point& q = polygon.corners[(i + 1) % polygon.count];
    twice += p.x * q.y - q.x * p.y;
  }
  return std::abs(twice) / 2;
}

}  // namespace

double wrap_deg(double angle_deg, double period_deg) {
  const double wrapped =
      angle_deg - period_deg * std::floor((angle_deg + period_deg / 2) / period_deg);
  // Rounding can reach the upper end, which belongs to the lower one.
  return wrapped >= period_deg / 2 ? wrapped - period_deg : wrapped;
}

double AngleRanges::distance(double angle_deg) const {
  return std::abs(wrap_deg(nearest(angle_deg) - angle_deg, period_deg));
}

double AngleRanges::nearest(double angle_deg) const {
  const double angle = wrap_deg(angle_deg, period_deg);
  double best = angle;
  double best_distance = std::numeric_limits<double>::infinity();
  for (const Range& range : ranges) {
    for (double turn : {0.0, period_deg}) {
      if (angle + turn >= range.low && angle + turn <= range.high) return angle;
    }
    for (double end : {range.low, range.high}) {
      const double distance = std::abs(wrap_deg(angle - end, period_deg));
      if (distance < best_distance) {
        best_distance = distance;
        best = wrap_deg(end, period_deg);
      }
    }
  }
  return best;
}

AngleRanges normalise_angles(const std::vector<Range>& ranges, int symmetry) {
  AngleRanges out;
  out.period_deg = 360.0 / symmetry;
  const double half = out.period_deg / 2;
  std::vector<Range> folded;
  for (const Range& range : ranges) {
    const double low = wrap_deg(range.low, out.period_deg);
    folded.push_back({low, low + (range.high - range.low)});
    if (range.high - range.low >= out.period_deg) folded.assign(1, {-half, half});
    if (range.high - range.low >= out.period_deg) break;
  }
  if (folded.empty()) folded.push_back({-half, half});
  std::sort(folded.begin(), folded.end(),
            [](const Range& a, const Range& b) { return a.low < b.low; });
  for (const Range& range : folded) {
    if (!out.ranges.empty() && range.low <= out.ranges.back().high)
      out.ranges.back().high = std::max(out.ranges.back().high, range.high);
    else
      out.ranges.push_back(range);
  }
  // The last range may pass the end of the circle and swallow ranges at its beginning.
  while (out.ranges.size() > 1 &&
         out.ranges.back().high - out.period_deg >= out.ranges.front().low) {
    out.ranges.back().high =
        std::max(out.ranges.back().high, out.ranges.front().high + out.period_deg);
    out.ranges.erase(out.ranges.begin());
  }
  if (out.ranges.size() == 1 && out.ranges[0].high - out.ranges[0].low >= out.period_deg)
    out.ranges[0] = {-half, half};
  return out;
}

double overlap_of(const TurnedRectangle& a, const TurnedRectangle& b) {
  const double smaller = smaller_area(a, b);
  if (!(smaller > 0) || are_apart(a, b)) return 0;
  // From a's centre, so that places far from the origin cost no digits.
  TurnedRectangle own = a;
  TurnedRectangle other = b;
  other.center_x -= a.center_x;
  other.center_y -= a.center_y;
  own.center_x = own.center_y = 0;
  Polygon common = corners_of(own);
  const Polygon frame = corners_of(other);
  for (std::size_t i = 0; i < frame.count && common.count > 0; ++i)
    common = clipped(common, frame.corners[i], frame.corners[(i + 1) % frame.count]);
  return std::min(1.0, area_of(common) / smaller);
}

bool overlap_by_more(const TurnedRectangle& a, const TurnedRectangle& b, double share) {
  const double smaller = smaller_area(a, b);
  if (!(smaller > 0) || are_apart(a, b)) return share < 0;
  // What is left to rounding is worked out.
  constexpr double kCertainly = 1 + 1e-9;
  return common_at_least(a, b) > kCertainly * share * smaller || overlap_of(a, b) > share;
}

}  // namespace patternd
