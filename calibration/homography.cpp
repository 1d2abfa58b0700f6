#include "calibration/homography.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace patternd {
namespace {

constexpr double kLeastSpread = 1e-3;
constexpr std::size_t kExhaustivePairs = 12;
constexpr int kDraws = 2000;

Point2 centre_of(const std::vector<Point2>& points) {
  Point2 centre;
  for (const Point2& p : points) {
    centre.x += p.x / static_cast<double>(points.size());
    centre.y += p.y / static_cast<double>(points.size());
  }
  return centre;
}

// Moves points to their centre and scales them to a mean distance of √2, so that the numbers of the
// linear system are alike.
Matrix3 normalisation(const std::vector<Point2>& points) {
  const Point2 centre = centre_of(points);
  double distance = 0;
  for (const Point2& p : points) {
    distance += std::hypot(p.x - centre.x, p.y - centre.y) / static_cast<double>(points.size());
  }
  const double s = distance > 0 ? std::sqrt(2.0) / distance : 1;
  return {s, 0, -s * centre.x, 0, s, -s * centre.y, 0, 0, 1};
}

Point2 affine(const Matrix3& m, Point2 p) { return {m[0] * p.x + m[2], m[4] * p.y + m[5]}; }

std::vector<Point2> sources(const std::vector<PointPair>& pairs) {
  std::vector<Point2> points;
  points.reserve(pairs.size());
  for (const PointPair& pair : pairs) points.push_back(pair.from);
  return points;
}
std::vector<Point2> targets(const std::vector<PointPair>& pairs) {
  std::vector<Point2> points;
  points.reserve(pairs.size());
  for (const PointPair& pair : pairs) points.push_back(pair.to);
  return points;
}

// The eigenvector of least value of AᵀA, two rows of A a pair.
Matrix3 linear_fit(const std::vector<PointPair>& pairs) {
  Matrix normal(9, 9);
  for (const PointPair& pair : pairs) {
    const double x = pair.from.x;
    const double y = pair.from.y;
    const double u = pair.to.x;
    const double v = pair.to.y;
    const double rows[2][9] = {{-x, -y, -1, 0, 0, 0, u * x, u * y, u},
                               {0, 0, 0, -x, -y, -1, v * x, v * y, v}};
    for (const auto& row : rows) {
      for (std::size_t i = 0; i < 9; ++i) {
        for (std::size_t j = 0; j < 9; ++j) normal(i, j) += row[i] * row[j];
      }
    }
  }
  const std::vector<double> vector = symmetric_eigenvectors(normal).front().vector;
  Matrix3 h{};
  std::copy(vector.begin(), vector.end(), h.begin());
  return h;
}

Point2 mapped(const Matrix3& h, Point2 p) {
  const double w = third_coordinate(h, p);
  return {(h[0] * p.x + h[1] * p.y + h[2]) / w, (h[3] * p.x + h[4] * p.y + h[5]) / w};
}

double squared_distance(const Matrix3& h, const PointPair& pair) {
  const Point2 p = mapped(h, pair.from);
  const double squared =
      (p.x - pair.to.x) * (p.x - pair.to.x) + (p.y - pair.to.y) * (p.y - pair.to.y);
  return std::isfinite(squared) ? squared : std::numeric_limits<double>::infinity();
}

double squared_sum(const Matrix3& h, const std::vector<PointPair>& pairs) {
  double sum = 0;
  for (const PointPair& pair : pairs) sum += squared_distance(h, pair);
  return sum;
}

Matrix3 scaled_to_one(Matrix3 h) {
  double largest = 0;
  for (const double v : h) largest = std::max(largest, std::abs(v));
  const double divisor = std::abs(h[8]) > 1e-9 * largest ? h[8] : largest;
  for (double& v : h) v /= divisor;
  return h;
}

// One Gauss–Newton step with damping on the eight numbers beside the last; nothing where the system
// is singular.
std::optional<Matrix3> step(const Matrix3& h, const std::vector<PointPair>& pairs, double damping) {
  Matrix normal(8, 8);
  Matrix gradient(8, 1);
  for (const PointPair& pair : pairs) {
    const double x = pair.from.x;
    const double y = pair.from.y;
    const double w = third_coordinate(h, pair.from);
    const Point2 p = mapped(h, pair.from);
    const double rows[2][8] = {{x / w, y / w, 1 / w, 0, 0, 0, -p.x * x / w, -p.x * y / w},
                               {0, 0, 0, x / w, y / w, 1 / w, -p.y * x / w, -p.y * y / w}};
    const double residuals[2] = {p.x - pair.to.x, p.y - pair.to.y};
    for (std::size_t k = 0; k < 2; ++k) {
      for (std::size_t i = 0; i < 8; ++i) {
        gradient(i, 0) -= rows[k][i] * residuals[k];
        for (std::size_t j = 0; j < 8; ++j) normal(i, j) += rows[k][i] * rows[k][j];
      }
    }
  }
  for (std::size_t i = 0; i < 8; ++i) normal(i, i) *= 1 + damping;
  const auto delta = solve_positive_definite(std::move(normal), std::move(gradient));
  if (!delta) return std::nullopt;
  Matrix3 moved = h;
  for (std::size_t i = 0; i < 8; ++i) moved[i] += (*delta)(i, 0);
  return moved;
}

// Levenberg–Marquardt on distances in `to`.
Matrix3 refined(Matrix3 h, const std::vector<PointPair>& pairs) {
  double damping = 1e-4;
  double sum = squared_sum(h, pairs);
  for (int i = 0; i < 60; ++i) {
    const auto moved = step(h, pairs, damping);
    const double moved_sum =
        moved ? squared_sum(*moved, pairs) : std::numeric_limits<double>::infinity();
    if (moved_sum <= sum) {
      const bool settled = sum - moved_sum <= 1e-14 * sum;
      h = *moved;
      sum = moved_sum;
      damping *= 0.1;
      if (settled) break;
    } else {
      damping *= 10;
      if (damping > 1e8) break;
    }
  }
  return h;
}

Matrix3 fit_all(const std::vector<PointPair>& pairs) {
  const Matrix3 from = normalisation(sources(pairs));
  const Matrix3 to = normalisation(targets(pairs));
  std::vector<PointPair> normalised;
  normalised.reserve(pairs.size());
  for (const PointPair& pair : pairs) {
    normalised.push_back({affine(from, pair.from), affine(to, pair.to)});
  }
  const Matrix3 h = refined(scaled_to_one(linear_fit(normalised)), normalised);
  Matrix3 result = product(inverse(to).value_or(kIdentity3), product(h, from));
  // The sign for which the points lie in front.
  double depth = 0;
  for (const PointPair& pair : pairs) depth += third_coordinate(result, pair.from) > 0 ? 1 : -1;
  if (depth < 0) {
    for (double& v : result) v = -v;
  }
  const Matrix3 unit = scaled_to_one(result);
  return (unit[8] > 0) == (result[8] > 0) || result[8] == 0 ? unit : result;
}

HomographyFit judged(const Matrix3& h, const std::vector<PointPair>& pairs) {
  HomographyFit fit;
  fit.homography = h;
  for (const PointPair& pair : pairs) fit.distances.push_back(std::sqrt(squared_distance(h, pair)));
  fit.used.assign(pairs.size(), true);
  fit.rms = std::sqrt(squared_sum(h, pairs) / static_cast<double>(pairs.size()));
  return fit;
}

Result<void> check_pairs(const std::vector<PointPair>& pairs) {
  if (pairs.size() < 4) {
    return fail(ErrorCode::kInvalidArgument,
                std::to_string(pairs.size()) + " pairs of points; a plane needs at least 4");
  }
  for (const bool from : {true, false}) {
    const double spread = spread_ratio(from ? sources(pairs) : targets(pairs));
    if (spread >= kLeastSpread) continue;
    return fail(ErrorCode::kInvalidArgument, std::string("the points lie nearly on a line ") +
                                                 (from ? "on the plane" : "in the picture") +
                                                 "; spread them over the plane in both directions");
  }
  return {};
}

// Of four points no three may lie on a line.
Result<void> check_triples(const std::vector<PointPair>& pairs) {
  if (pairs.size() != 4) return {};
  for (std::size_t left_out = 0; left_out < 4; ++left_out) {
    std::vector<PointPair> three = pairs;
    three.erase(three.begin() + static_cast<std::ptrdiff_t>(left_out));
    if (spread_ratio(sources(three)) >= kLeastSpread &&
        spread_ratio(targets(three)) >= kLeastSpread) {
      continue;
    }
    return fail(
        ErrorCode::kInvalidArgument,
        "three of the four points lie nearly on a line; take the corners of a rectangle, or "
        "more points");
  }
  return {};
}

// Every point must be in front, and turned the same way round.
Result<void> check_orientation(const HomographyFit& fit, const std::vector<PointPair>& pairs) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!fit.used[i] || third_coordinate(fit.homography, pairs[i].from) > 0) continue;
    return fail(ErrorCode::kInvalidArgument,
                "the pairs contradict each other (pair " + std::to_string(i + 1) +
                    " comes out behind the camera); check their order");
  }
  return {};
}

double median_distance(const Matrix3& h, const std::vector<PointPair>& pairs) {
  std::vector<double> squared;
  squared.reserve(pairs.size());
  for (const PointPair& pair : pairs) squared.push_back(squared_distance(h, pair));
  const auto middle = squared.begin() + static_cast<std::ptrdiff_t>(squared.size() / 2);
  std::nth_element(squared.begin(), middle, squared.end());
  return std::sqrt(*middle);
}

// Tries the homography of four pairs; keeps the better one in `best` and `best_median`.
void try_four(const std::vector<PointPair>& pairs, const std::size_t (&chosen)[4], Matrix3& best,
              double& best_median) {
  const std::vector<PointPair> four = {pairs[chosen[0]], pairs[chosen[1]], pairs[chosen[2]],
                                       pairs[chosen[3]]};
  if (!check_pairs(four) || !check_triples(four)) return;
  const Matrix3 h = fit_all(four);
  const double median = median_distance(h, pairs);
  if (median < best_median) {
    best_median = median;
    best = h;
  }
}

Matrix3 least_median(const std::vector<PointPair>& pairs, double& median) {
  Matrix3 best = kIdentity3;
  median = std::numeric_limits<double>::infinity();
  const std::size_t n = pairs.size();
  if (n <= kExhaustivePairs) {
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = a + 1; b < n; ++b)
        for (std::size_t c = b + 1; c < n; ++c)
          for (std::size_t d = c + 1; d < n; ++d) try_four(pairs, {a, b, c, d}, best, median);
    return best;
  }
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same pairs, the same result
  for (int i = 0; i < kDraws; ++i) {
    std::size_t chosen[4];
    for (std::size_t k = 0; k < 4; ++k) {
      do {
        chosen[k] = random() % n;
      } while (std::find(chosen, chosen + k, chosen[k]) != chosen + k);
    }
    try_four(pairs, chosen, best, median);
  }
  return best;
}

}  // namespace

double spread_ratio(const std::vector<Point2>& points) {
  const Point2 centre = centre_of(points);
  double xx = 0;
  double xy = 0;
  double yy = 0;
  for (const Point2& p : points) {
    xx += (p.x - centre.x) * (p.x - centre.x);
    xy += (p.x - centre.x) * (p.y - centre.y);
    yy += (p.y - centre.y) * (p.y - centre.y);
  }
  const double mean = (xx + yy) / 2;
  const double root = std::hypot((xx - yy) / 2, xy);
  return mean > 0 ? std::sqrt(std::max(0.0, mean - root) / (mean + root)) : 0;
}

Result<HomographyFit> fit_homography(const std::vector<PointPair>& pairs) {
  if (auto sound = check_pairs(pairs); !sound) return tl::make_unexpected(sound.error());
  if (auto sound = check_triples(pairs); !sound) return tl::make_unexpected(sound.error());
  HomographyFit fit = judged(fit_all(pairs), pairs);
  if (auto sound = check_orientation(fit, pairs); !sound) {
    return tl::make_unexpected(sound.error());
  }
  return fit;
}

Result<HomographyFit> fit_homography_robust(const std::vector<PointPair>& pairs,
                                            double least_limit) {
  if (pairs.size() <= 4) return fit_homography(pairs);
  if (auto sound = check_pairs(pairs); !sound) return tl::make_unexpected(sound.error());
  double median = 0;
  const Matrix3 start = least_median(pairs, median);
  // Median of a distance in the plane to its standard deviation per axis; Rousseeuw's correction
  // for few points.
  const double sigma =
      median / 1.1774 * (1 + 5.0 / std::max(1.0, static_cast<double>(pairs.size()) - 4));
  const double limit = std::max(2.5 * sigma, least_limit);
  std::vector<PointPair> kept;
  std::vector<bool> used;
  for (const PointPair& pair : pairs) {
    used.push_back(std::sqrt(squared_distance(start, pair)) <= limit);
    if (used.back()) kept.push_back(pair);
  }
  auto fit = fit_homography(kept);
  if (!fit) return fit;
  HomographyFit all = judged(fit->homography, pairs);
  all.rms = fit->rms;
  all.used = used;
  return all;
}

}  // namespace patternd
