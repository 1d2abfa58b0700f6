// What is searched for and what is found. Poses: p_image = t + s·R(angle)·(p_pattern − ref), a
// positive angle turns the pattern clockwise on the screen; t is (x_px, y_px).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace patternd {

struct Range {
  double low = 0;
  double high = 0;
};

struct Roi {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

enum class Polarity { kSame, kAny };

// Degrees that angle_step may be, taught or searched with.
inline constexpr Range kAngleStepLimits{0.01, 60};

// How a pattern is searched for: the keys of `patterns[]`, with their defaults.
struct SearchParams {
  double min_score = 0.7;  // (0, 1]
  int max_matches = 10;    // 1..1000
  std::vector<Range>
      angle_deg;      // empty: all; each low <= high, may cross ±180, overlapping ones are merged
  Range scale{1, 1};  // 0.1..10
  double max_overlap =
      0.3;  // [0, 1]: intersection of turned rectangles over the smaller one's area
  double min_visible = 1.0;  // (0, 1]: least share of unmasked pixels inside the valid area
  double min_contrast =
      2;  // grey levels of 8 bit; windows with a smaller standard deviation score 0
  Polarity polarity = Polarity::kSame;
  int symmetry = 1;                      // n-fold, 1..360
  std::optional<int> levels;             // pyramid levels above level 0; absent: as taught
  std::optional<double> angle_step_deg;  // at the coarsest level; absent: as taught
  std::optional<Roi> roi;                // where the reference point may lie
};

struct Match {
  int pattern = 0;  // index into the configured patterns
  double x_px = 0;
  double y_px = 0;
  double angle_deg = 0;  // [−180/n, 180/n)
  double scale = 1;
  double score = 0;  // NCC, [−1, 1]
  // NCC in the picture itself, as `score`, of the best other pose at that place that the search
  // came across: another angle, scale or position, at least a pixel or a step of the coarsest level
  // away, whose rectangle overlaps this one's by more than max_overlap. 0: there was none. Near
  // `score`, the pattern looks much the same there. Above it only where the better pose may not be
  // reported (outside the ROI, or its place already taken). The GPU gives an upper estimate: the
  // score at the pyramid level where the other pose was dropped, at most `score`.
  double runner_up = 0;
  double visible = 1;     // share of unmasked pixels inside the valid area
  bool inverted = false;  // polarity any: found as a negative
  // Standard deviations from the picture's noise and the pattern's slopes. Where the refinement did
  // not settle (no true instance of a thousand made scenes, but look-alikes) a step of the search:
  // one pixel of the finest level, and the angle that moves the pattern's farthest pixel by one.
  double x_std_px = 0;
  double y_std_px = 0;
  double angle_std_deg = 0;
  bool has_mm = false;
  double x_mm = 0;
  double y_mm = 0;
  double x_std_mm = 0;
  double y_std_mm = 0;
};

// A connected component. Coordinates as for matches; `id` counts from 1 in the order sent.
struct Blob {
  std::int64_t id = 0;
  std::int64_t area_px = 0;
  double x_px = 0;  // centroid
  double y_px = 0;
  int left = 0;
  int top = 0;
  int width = 0;
  int height = 0;
  double mean = 0;
  double peak = 0;
  int peak_x = 0;
  int peak_y = 0;
  double angle_deg = 0;  // of the major axis, [−90, 90)
  double major_px = 0;   // full axes of the ellipse with the same second moments
  double minor_px = 0;
  bool touches_border = false;
};

}  // namespace patternd
