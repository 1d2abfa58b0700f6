// Which views of a board to calibrate with, out of many: few, and as different as there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "calibration/camera_fit.h"
#include "pipeline/image.h"

namespace patternd::calibrate {

// How far two views of one board lie apart: the mean distance of the points that both have, pixels;
// infinite where they share less than 4.
[[nodiscard]] double view_distance_px(const BoardView& a, const BoardView& b);

// Takes views one after the other and keeps at most `most`, no two nearer to each other than a
// limit that grows as more kinds come: 2 % of the picture's diagonal at first. Of views that are
// nearly the same it keeps the one in which the board moved least since the view before, because a
// moving board is blurred. (The doubling algorithm for k centres: Charikar, Chekuri, Feder, Motwani
// 1997.)
class ViewSelection {
 public:
  struct Kept {
    BoardView view;
    std::uint64_t seq = 0;
    Image picture;  // empty where pictures are not kept
    double motion_px = 0;
  };

  ViewSelection(std::size_t most, int width, int height, bool keeps_pictures);

  void offer(BoardView view, std::uint64_t seq, const ImageView& picture);
  // The picture that came after the last view offered showed the same.
  void stood_still();
  [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }
  [[nodiscard]] std::vector<Kept> take() { return std::move(kept_); }

 private:
  [[nodiscard]] std::size_t nearest(const BoardView& view, double& distance_px) const;
  void thin_out();

  std::size_t most_;
  double limit_px_;
  bool keeps_pictures_;
  std::vector<Kept> kept_;
  std::optional<BoardView> last_;
  std::optional<std::size_t> last_kept_;
};

// Tells whether a picture shows nearly what the one before did, from a coarse copy of it.
class SameAsBefore {
 public:
  [[nodiscard]] bool operator()(const ImageView& picture);

 private:
  std::vector<int> before_;
};

}  // namespace patternd::calibrate
