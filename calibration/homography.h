// A plane's homography from pairs of points.
//
// Sources: R. Hartley, A. Zisserman, Multiple View Geometry, 2nd ed., 4.1 (normalised direct linear
// transform), 4.7 (robust estimation); P. Rousseeuw 1984 (least median of squares).
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/camera_model.h"
#include "calibration/dense.h"
#include "calibration/matrix3.h"
#include "pipeline/result.h"

namespace patternd {

// `from` seen at `to`, e.g. millimetres on the plane and pixels of the undistorted picture.
struct PointPair {
  Point2 from;
  Point2 to;
};

struct HomographyFit {
  Matrix3 homography = kIdentity3;  // from -> to, last number 1 where it can be
  double rms = 0;                   // distance of the mapped points to theirs, in units of `to`
  std::vector<bool> used;           // by pair: false for outliers
  std::vector<double> distances;    // by pair, outliers included
};

// Fits all pairs: exactly four, or more in the least-squares sense of distances in `to`. Refused
// (kInvalidArgument): fewer than four, points that lie on a line or nearly so, pairs that
// contradict each other (crossed corners).
[[nodiscard]] Result<HomographyFit> fit_homography(const std::vector<PointPair>& pairs);

// The same with outliers among more than four pairs: the four whose homography has the least median
// distance decide which pairs take part (within 2.5 robust standard deviations, at least
// `least_limit`). All choices of four up to 12 pairs, 2000 drawn with a fixed seed beyond: the same
// pairs give the same result.
[[nodiscard]] Result<HomographyFit> fit_homography_robust(const std::vector<PointPair>& pairs,
                                                          double least_limit);

// The share of the spread of `points` that lies across their main direction: 0 on a line, 1 for a
// round cloud.
[[nodiscard]] double spread_ratio(const std::vector<Point2>& points);

}  // namespace patternd
