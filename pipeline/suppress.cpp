#include "pipeline/suppress.h"

#include <algorithm>
#include <cmath>

namespace patternd {
namespace {

// Peaks of neighbouring planes that lie no farther apart along x and y are one object.
constexpr double kSamePlace = 1.5;

// Whether a peak of `list` beats `peak`, which lies at (x, y) in the list's own positions.
bool beaten_by(const PeakList& list, const Peak& peak, double x, double y, bool list_wins_ties) {
  const auto& peaks = list.peaks();
  auto it = std::lower_bound(peaks.begin(), peaks.end(), y - kSamePlace,
                             [](const Peak& p, double value) { return p.y < value; });
  for (; it != peaks.end() && it->y <= y + kSamePlace; ++it) {
    if (std::abs(it->x - x) > kSamePlace) continue;
    if (it->score > peak.score || (it->score == peak.score && list_wins_ties)) return true;
  }
  return false;
}

}  // namespace

void PeakList::add(const Peak& peak) {
  if (limit_ == 0) return;
  if (peaks_.size() == limit_) {
    if (!better(peak, peaks_.front())) return;
    std::pop_heap(peaks_.begin(), peaks_.end(), better);
    peaks_.back() = peak;
  } else {
    peaks_.push_back(peak);
  }
  std::push_heap(peaks_.begin(), peaks_.end(), better);
}

void PeakList::sort_by_place() {
  std::sort(peaks_.begin(), peaks_.end(),
            [](const Peak& a, const Peak& b) { return a.y != b.y ? a.y < b.y : a.x < b.x; });
}

RowMaxima::RowMaxima(std::size_t row_width) {
  for (auto& row : rows_) row.reserve(row_width);
}

void RowMaxima::start(PeakList* out) {
  out_ = out;
  for (auto& row : rows_) row.clear();
}

void RowMaxima::finish_row() {
  const auto& row = rows_[1];
  std::size_t above = 0;
  std::size_t below = 0;
  // Any peak of `other` beside x (from where the last search ended) that is better?
  const auto beaten = [](const std::vector<Peak>& other, std::size_t& from, const Peak& peak) {
    while (from < other.size() && other[from].x < peak.x - 1) ++from;
    for (std::size_t i = from; i < other.size() && other[i].x <= peak.x + 1; ++i) {
      if (better(other[i], peak)) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Peak& peak = row[i];
    if (i > 0 && row[i - 1].x == peak.x - 1 && better(row[i - 1], peak)) continue;
    if (i + 1 < row.size() && row[i + 1].x == peak.x + 1 && better(row[i + 1], peak)) continue;
    if (beaten(rows_[0], above, peak) || beaten(rows_[2], below, peak)) continue;
    out_->add(peak);
  }
  rows_[0].swap(rows_[1]);
  rows_[1].swap(rows_[2]);
  rows_[2].clear();
}

void RowMaxima::finish() { finish_row(); }

void suppress_across_planes(const std::vector<PeakList>& lists,
                            const std::vector<PlaneNeighbours>& neighbours,
                            std::vector<PlanePeak>& out) {
  const auto better_of_planes = [](const PlanePeak& a, const PlanePeak& b) {
    if (a.peak.score != b.peak.score) return a.peak.score > b.peak.score;
    return a.plane != b.plane ? a.plane < b.plane : better(a.peak, b.peak);
  };
  const std::size_t limit = out.capacity();
  for (std::size_t plane = 0; plane < lists.size(); ++plane) {
    const PlaneNeighbours& own = neighbours[plane];
    for (const Peak& peak : lists[plane].peaks()) {
      const bool beaten = std::any_of(own.planes.begin(), own.planes.end(), [&](std::size_t other) {
        const double x = peak.x + own.offset_x - neighbours[other].offset_x;
        const double y = peak.y + own.offset_y - neighbours[other].offset_y;
        return beaten_by(lists[other], peak, x, y, other < plane);
      });
      if (beaten) continue;
      const PlanePeak found{peak, static_cast<std::int32_t>(plane)};
      if (out.size() < limit) {
        out.push_back(found);
        std::push_heap(out.begin(), out.end(), better_of_planes);
      } else if (limit > 0 && better_of_planes(found, out.front())) {
        std::pop_heap(out.begin(), out.end(), better_of_planes);
        out.back() = found;
        std::push_heap(out.begin(), out.end(), better_of_planes);
      }
    }
  }
  std::sort(out.begin(), out.end(), better_of_planes);
}

}  // namespace patternd
