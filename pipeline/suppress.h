// Non-maximum suppression: over x and y within a plane of the coarse search, across neighbouring
// planes (angles, scales; the angle axis is circular), and over the area of finished matches (T13).
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/match_angles.h"

namespace patternd {

// A score at a position of one plane.
struct Peak {
  float score = 0;  // magnitude
  std::int32_t x = 0;
  std::int32_t y = 0;
  bool inverted = false;
};

// The better of two: higher score, else the one further up, else further left. A total order over
// a plane, so that results don't depend on the order of work.
[[nodiscard]] inline bool better(const Peak& a, const Peak& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.y != b.y ? a.y < b.y : a.x < b.x;
}

// The best peaks of a plane, at most `limit` of them: when one more comes the worst goes.
class PeakList {
 public:
  PeakList() = default;
  explicit PeakList(std::size_t limit) : limit_(limit) { peaks_.reserve(limit); }
  void clear() { peaks_.clear(); }
  void add(const Peak& peak);
  // Orders by rising y, then x.
  void sort_by_place();
  [[nodiscard]] const std::vector<Peak>& peaks() const { return peaks_; }

 private:
  std::size_t limit_ = 0;
  std::vector<Peak> peaks_;  // a heap with the worst on top until sorted
};

// Local maxima over the 8 neighbours, as the scores of a plane come row by row, in rising x:
//   maxima.start(&list); for each row { maxima.add(peak)…; maxima.finish_row(); } maxima.finish();
// Positions never added count as lower than any.
class RowMaxima {
 public:
  explicit RowMaxima(std::size_t row_width);
  void start(PeakList* out);
  void add(const Peak& peak) { rows_[2].push_back(peak); }
  void finish_row();
  void finish();

 private:
  std::vector<Peak> rows_[3];  // the row above, the one looked at, the one below
  PeakList* out_ = nullptr;
};

// What stands next to a plane: the planes one angle step or one scale step away.
struct PlaneNeighbours {
  double offset_x = 0;  // of the plane's positions: a peak lies at x + offset_x
  double offset_y = 0;
  std::vector<std::size_t> planes;
};

struct PlanePeak {
  Peak peak;
  std::int32_t plane = 0;
};

// Appends to `out` (up to its capacity, best first) the peaks that no neighbouring plane beats
// within one pixel. Lists must be sorted by place.
void suppress_across_planes(const std::vector<PeakList>& lists,
                            const std::vector<PlaneNeighbours>& neighbours,
                            std::vector<PlanePeak>& out);

}  // namespace patternd
