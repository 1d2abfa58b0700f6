#include "tools/bench/opencv_pyramid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <opencv2/imgproc.hpp>

namespace patternd::bench {
namespace {

// Rim around the pattern in which a candidate may move at one level.
constexpr int kMargin = 3;
constexpr int kMostMoves = 4;
constexpr double kThresholdPerLevel = 0.9;

double degrees(double radians) { return radians * 180 / CV_PI; }

struct Direction {
  double cosine;
  double sine;
};
Direction direction(double angle_deg) {
  return {std::cos(angle_deg * CV_PI / 180), std::sin(angle_deg * CV_PI / 180)};
}

cv::Size turned_size(const cv::Mat& image, const Direction& d) {
  return {
      static_cast<int>(std::ceil(std::abs(image.cols * d.cosine) + std::abs(image.rows * d.sine))),
      static_cast<int>(std::ceil(std::abs(image.cols * d.sine) + std::abs(image.rows * d.cosine)))};
}

cv::Point2d middle(const cv::Size& size) {
  return {(size.width - 1) / 2.0, (size.height - 1) / 2.0};
}

// The affine map p ↦ to + [c s; −s c]·(p − from), as warpAffine takes it with WARP_INVERSE_MAP.
cv::Mat turn_about(const Direction& d, const cv::Point2d& from, const cv::Point2d& to) {
  return (cv::Mat_<double>(2, 3) << d.cosine, d.sine, to.x - d.cosine * from.x - d.sine * from.y,
          -d.sine, d.cosine, to.y + d.sine * from.x - d.cosine * from.y);
}

double parabola_top(double before, double at, double after) {
  const double curvature = before - 2 * at + after;
  if (!(curvature < -1e-12)) return 0;
  return std::clamp(0.5 * (before - after) / curvature, -0.5, 0.5);
}

}  // namespace

OpencvPyramid::OpencvPyramid(Turned turned, int max_matches, double min_score)
    : turned_(turned), max_matches_(max_matches), min_score_(min_score) {}

void OpencvPyramid::learn(const cv::Mat& pattern, int coarsest_pixels) {
  int levels = 0;
  for (int pixels = pattern.cols * pattern.rows; pixels > coarsest_pixels; pixels /= 4) ++levels;
  cv::buildPyramid(pattern, levels_, levels);
  step_deg_.clear();
  for (const cv::Mat& level : levels_)
    step_deg_.push_back(degrees(std::atan(2.0 / std::max(level.cols, level.rows))));
  const int count = static_cast<int>(std::ceil(360 / step_deg_.back()));
  angles_deg_.clear();
  turned_patterns_.clear();
  turned_masks_.clear();
  for (int i = 0; i < count; ++i) {
    angles_deg_.push_back(360.0 * i / count);
    learn_turned_pattern(angles_deg_.back());
  }
}

void OpencvPyramid::learn_turned_pattern(double angle_deg) {
  const cv::Mat& top = levels_.back();
  const Direction d = direction(angle_deg);
  const cv::Size size = turned_size(top, d);
  const cv::Mat map = turn_about({d.cosine, -d.sine}, middle(size), middle(top.size()));
  cv::Mat pattern;
  cv::Mat mask;
  const int flags = cv::INTER_LINEAR | cv::WARP_INVERSE_MAP;
  cv::warpAffine(top, pattern, map, size, flags, cv::BORDER_REPLICATE);
  cv::warpAffine(cv::Mat(top.size(), CV_8U, cv::Scalar(255)), mask, map, size, flags);
  mask = mask >= 128;
  turned_patterns_.push_back(pattern);
  turned_masks_.push_back(mask / 255);
}

OpencvPyramid::Peaks OpencvPyramid::best_peaks(cv::Mat& scores) const {
  const double threshold =
      min_score_ * std::pow(kThresholdPerLevel, static_cast<double>(levels_.size() - 1));
  const int radius = std::max(1, std::min(levels_.back().cols, levels_.back().rows) / 2);
  Peaks peaks;
  for (int k = 0; k < max_matches_ + 5; ++k) {
    double score = 0;
    cv::Point at;
    cv::minMaxLoc(scores, nullptr, &score, nullptr, &at);
    if (!(score >= threshold) || score > 1.5) break;
    peaks.emplace_back(at, score);
    cv::rectangle(scores, cv::Rect(at.x - radius, at.y - radius, 2 * radius + 1, 2 * radius + 1),
                  cv::Scalar(-1), cv::FILLED);
  }
  return peaks;
}

std::vector<OpencvPyramid::Hit> OpencvPyramid::search_turned_pattern(const cv::Mat& top,
                                                                     std::size_t angle) const {
  cv::Mat scores;
  cv::matchTemplate(top, turned_patterns_[angle], scores, cv::TM_CCOEFF_NORMED,
                    turned_masks_[angle]);
  cv::patchNaNs(scores, -1);
  const cv::Point2d center = middle(turned_patterns_[angle].size());
  std::vector<Hit> hits;
  for (const auto& [at, score] : best_peaks(scores))
    hits.push_back({at.x + center.x, at.y + center.y, angles_deg_[angle], score});
  return hits;
}

std::vector<OpencvPyramid::Hit> OpencvPyramid::search_turned_picture(const cv::Mat& top,
                                                                     std::size_t angle) const {
  const Direction d = direction(angles_deg_[angle]);
  const cv::Size size = turned_size(top, d);
  const cv::Point2d from = middle(size);
  const cv::Point2d to = middle(top.size());
  cv::Mat upright;
  cv::Mat scores;
  cv::warpAffine(top, upright, turn_about(d, from, to), size,
                 cv::INTER_LINEAR | cv::WARP_INVERSE_MAP);
  cv::matchTemplate(upright, levels_.back(), scores, cv::TM_CCOEFF_NORMED);
  const cv::Point2d center = middle(levels_.back().size());
  std::vector<Hit> hits;
  for (const auto& [at, score] : best_peaks(scores)) {
    const double x = at.x + center.x - from.x;
    const double y = at.y + center.y - from.y;
    hits.push_back({to.x + d.cosine * x + d.sine * y, to.y - d.sine * x + d.cosine * y,
                    angles_deg_[angle], score});
  }
  return hits;
}

std::vector<OpencvPyramid::Hit> OpencvPyramid::without_overlaps(std::vector<Hit> hits,
                                                                double distance,
                                                                std::size_t most) const {
  std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.score > b.score; });
  std::vector<Hit> kept;
  for (const Hit& hit : hits) {
    const bool taken = std::any_of(kept.begin(), kept.end(), [&](const Hit& other) {
      return std::hypot(other.x - hit.x, other.y - hit.y) < distance;
    });
    if (taken) continue;
    kept.push_back(hit);
    if (kept.size() >= most) break;
  }
  return kept;
}

std::vector<OpencvPyramid::Hit> OpencvPyramid::match(const cv::Mat& picture) const {
  std::vector<cv::Mat> pyramid;
  cv::buildPyramid(picture, pyramid, static_cast<int>(levels_.size()) - 1);
  const cv::Mat& top = levels_.back();
  std::vector<Hit> candidates;
  for (std::size_t a = 0; a < angles_deg_.size(); ++a) {
    const std::vector<Hit> found = turned_ == Turned::kPattern
                                       ? search_turned_pattern(pyramid.back(), a)
                                       : search_turned_picture(pyramid.back(), a);
    candidates.insert(candidates.end(), found.begin(), found.end());
  }
  const auto wanted = static_cast<std::size_t>(max_matches_);
  candidates =
      without_overlaps(std::move(candidates), 0.5 * std::min(top.cols, top.rows), 3 * wanted + 8);
  std::vector<Hit> hits;
  for (Hit& hit : candidates)
    if (refine(pyramid, hit) && hit.score >= min_score_) hits.push_back(hit);
  return without_overlaps(std::move(hits), 0.5 * std::min(levels_[0].cols, levels_[0].rows),
                          wanted);
}

OpencvPyramid::Look OpencvPyramid::look(const cv::Mat& level, std::size_t index, const Hit& at,
                                        double angle_deg) const {
  const cv::Mat& pattern = levels_[index];
  const cv::Size size(pattern.cols + 2 * kMargin, pattern.rows + 2 * kMargin);
  cv::Mat upright;
  Look out;
  cv::warpAffine(level, upright, turn_about(direction(angle_deg), middle(size), {at.x, at.y}), size,
                 cv::INTER_LINEAR | cv::WARP_INVERSE_MAP, cv::BORDER_REPLICATE);
  cv::matchTemplate(upright, pattern, out.scores, cv::TM_CCOEFF_NORMED);
  cv::minMaxLoc(out.scores, nullptr, &out.score, nullptr, &out.best);
  return out;
}

// The pattern's corner doubles from level to level; its centre moves by what odd sizes drop.
OpencvPyramid::Hit OpencvPyramid::to_level(const Hit& hit, std::size_t from, std::size_t to) const {
  const Direction d = direction(hit.angle_deg);
  const cv::Point2d a = middle(levels_[from].size());
  const cv::Point2d b = middle(levels_[to].size());
  Hit out = hit;
  out.x = 2 * (hit.x - (d.cosine * a.x + d.sine * a.y)) + d.cosine * b.x + d.sine * b.y;
  out.y = 2 * (hit.y - (-d.sine * a.x + d.cosine * a.y)) - d.sine * b.x + d.cosine * b.y;
  return out;
}

bool OpencvPyramid::refine(const std::vector<cv::Mat>& pyramid, Hit& hit) const {
  const std::size_t top = levels_.size() - 1;
  if (top == 0 && !refine_at(pyramid[0], 0, hit)) return false;
  for (std::size_t level = top; level-- > 0;) {
    hit = to_level(hit, level + 1, level);
    if (!refine_at(pyramid[level], level, hit)) return false;
  }
  hit.angle_deg = std::fmod(std::fmod(hit.angle_deg, 360) + 360, 360);
  return true;
}

bool OpencvPyramid::refine_at(const cv::Mat& level, std::size_t index, Hit& hit) const {
  const double step = step_deg_[index];
  double angle = hit.angle_deg;
  std::array<Look, 3> looks = {look(level, index, hit, angle - step),
                               look(level, index, hit, angle),
                               look(level, index, hit, angle + step)};
  for (int move = 0; move < kMostMoves && looks[1].score < std::max(looks[0].score, looks[2].score);
       ++move) {
    if (looks[0].score > looks[2].score) {
      angle -= step;
      std::swap(looks[2], looks[1]);
      std::swap(looks[1], looks[0]);
      looks[0] = look(level, index, hit, angle - step);
    } else {
      angle += step;
      std::swap(looks[0], looks[1]);
      std::swap(looks[1], looks[2]);
      looks[2] = look(level, index, hit, angle + step);
    }
  }
  if (looks[1].score < min_score_ * std::pow(kThresholdPerLevel, static_cast<double>(index)))
    return false;
  const cv::Point best = looks[1].best;
  double dx = best.x - kMargin;
  double dy = best.y - kMargin;
  if (index == 0 && best.x > 0 && best.y > 0 && best.x < 2 * kMargin && best.y < 2 * kMargin) {
    const cv::Mat& scores = looks[1].scores;
    const auto at = [&](int y, int x) { return static_cast<double>(scores.at<float>(y, x)); };
    dx += parabola_top(at(best.y, best.x - 1), at(best.y, best.x), at(best.y, best.x + 1));
    dy += parabola_top(at(best.y - 1, best.x), at(best.y, best.x), at(best.y + 1, best.x));
  }
  const Direction d = direction(angle);
  hit.x += d.cosine * dx + d.sine * dy;
  hit.y += -d.sine * dx + d.cosine * dy;
  hit.angle_deg = angle + parabola_top(looks[0].score, looks[1].score, looks[2].score) * step;
  hit.score = looks[1].score;
  return true;
}

}  // namespace patternd::bench
