#include "tools/calibrate/view_selection.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace patternd::calibrate {
namespace {

constexpr double kLimitShare = 0.02;  // of the diagonal
constexpr double kGrowth = 1.25;
constexpr std::size_t kLeastCommon = 4;
// Cells of the coarse copy, and how much of 255 their mean may change in a picture that is the
// same.
constexpr int kCells = 64;
constexpr int kSamples = 4;  // a cell's side
constexpr double kSameLevels = 0.7;

bool same_point(Point2 a, Point2 b) { return a.x == b.x && a.y == b.y; }

double distance(Point2 a, Point2 b) { return std::hypot(a.x - b.x, a.y - b.y); }

}  // namespace

double view_distance_px(const BoardView& a, const BoardView& b) {
  double sum = 0;
  std::size_t common = 0;
  for (std::size_t i = 0; i < a.board_mm.size(); ++i) {
    // Whole boards have their points in one order; of others the same point is looked for.
    std::size_t j = i;
    if (j >= b.board_mm.size() || !same_point(a.board_mm[i], b.board_mm[j])) {
      const auto found = std::find_if(b.board_mm.begin(), b.board_mm.end(),
                                      [&](Point2 p) { return same_point(p, a.board_mm[i]); });
      if (found == b.board_mm.end()) continue;
      j = static_cast<std::size_t>(found - b.board_mm.begin());
    }
    sum += distance(a.image_px[i], b.image_px[j]);
    ++common;
  }
  if (common < kLeastCommon) return std::numeric_limits<double>::infinity();
  return sum / static_cast<double>(common);
}

ViewSelection::ViewSelection(std::size_t most, int width, int height, bool keeps_pictures)
    : most_(most),
      limit_px_(kLimitShare * std::hypot(width, height)),
      keeps_pictures_(keeps_pictures) {}

std::size_t ViewSelection::nearest(const BoardView& view, double& distance_px) const {
  std::size_t best = 0;
  distance_px = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const double d = view_distance_px(kept_[i].view, view);
    if (d >= distance_px) continue;
    distance_px = d;
    best = i;
  }
  return best;
}

void ViewSelection::offer(BoardView view, std::uint64_t seq, const ImageView& picture) {
  const double motion_px =
      last_ ? view_distance_px(*last_, view) : std::numeric_limits<double>::infinity();
  last_ = view;
  last_kept_.reset();
  double distance_px = 0;
  const std::size_t twin = nearest(view, distance_px);
  const bool is_new = distance_px >= limit_px_;
  if (!is_new && motion_px >= kept_[twin].motion_px) return;
  Kept kept{std::move(view), seq, {}, motion_px};
  if (keeps_pictures_) {
    if (auto copy = Image::copy_of(picture)) kept.picture = std::move(*copy);
  }
  if (is_new) {
    last_kept_ = kept_.size();
    kept_.push_back(std::move(kept));
    if (kept_.size() > most_) thin_out();
  } else {
    last_kept_ = twin;
    kept_[twin] = std::move(kept);
  }
}

void ViewSelection::stood_still() {
  if (last_kept_) kept_[*last_kept_].motion_px = 0;
}

void ViewSelection::thin_out() {
  last_kept_.reset();
  while (kept_.size() > most_) {
    limit_px_ *= kGrowth;
    std::vector<Kept> all = std::exchange(kept_, {});
    for (Kept& each : all) {
      double distance_px = 0;
      (void)nearest(each.view, distance_px);
      if (distance_px >= limit_px_) kept_.push_back(std::move(each));
    }
  }
}

bool SameAsBefore::operator()(const ImageView& picture) {
  const int shift = picture.format == PixelFormat::kGray16 ? 8 : 0;
  const auto level = [&](int x, int y) {
    return shift == 0 ? int{picture.row<std::uint8_t>(y)[x]}
                      : picture.row<std::uint16_t>(y)[x] >> shift;
  };
  std::vector<int> now;
  now.reserve(std::size_t{kCells} * kCells);
  const int across = kCells * kSamples;
  for (int cell_y = 0; cell_y < kCells; ++cell_y) {
    for (int cell_x = 0; cell_x < kCells; ++cell_x) {
      int sum = 0;
      for (int i = 0; i < kSamples * kSamples; ++i) {
        const int x = (cell_x * kSamples + i % kSamples) * picture.width / across;
        const int y = (cell_y * kSamples + i / kSamples) * picture.height / across;
        sum += level(x, y);
      }
      now.push_back(sum);
    }
  }
  double change = 0;
  for (std::size_t i = 0; i < std::min(now.size(), before_.size()); ++i)
    change += std::abs(now[i] - before_[i]);
  const double mean = change / (static_cast<double>(now.size()) * kSamples * kSamples);
  const bool same = now.size() == before_.size() && mean < kSameLevels;
  // Kept where it is the same, so that a slow drift is noticed in the end.
  if (!same) before_ = std::move(now);
  return same;
}

}  // namespace patternd::calibrate
