// How much of a template a position of the coarse search sees: the picture's border and its invalid
// pixels hide the rest.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/coarse_template.h"
#include "pipeline/image.h"

namespace patternd {

class CoarseView {
 public:
  // A picture of this size; `valid` is 0 where a pixel does not count, empty where all do. Keeps
  // none of it.
  CoarseView(int width, int height, const ImageView& valid);

  // What the position (x, y) sees of it.
  [[nodiscard]] TemplateSums seen(const CoarseTemplate& t, int x, int y) const;
  // Whether each of the positions (x, y) to (x + count − 1, y) sees all of its box.
  [[nodiscard]] bool see_all(const CoarseTemplate& t, int x, int y, int count) const;
  // Whether each surely sees what the one above it does, or the one `count` to its left: nothing
  // but the picture's edges across hides anything of either.
  [[nodiscard]] bool see_as_above(const CoarseTemplate& t, int x, int y, int count) const;
  [[nodiscard]] bool see_as_left(const CoarseTemplate& t, int x, int y, int count) const;

 private:
  struct Run {
    int begin;
    int end;
  };
  // In picture pixels.
  struct Box {
    int left;
    int right;
    int top;
    int bottom;
  };
  // The box that the templates of `columns` by `rows` positions from there on cover.
  [[nodiscard]] static Box box_of(const CoarseTemplate& t, int x, int y, int columns, int rows);
  // What of it lies in the picture.
  [[nodiscard]] Box clipped(const Box& box) const;
  [[nodiscard]] bool has_columns(const Box& box) const {
    return box.left >= 0 && box.right <= width_;
  }
  [[nodiscard]] bool has_rows(const Box& box) const {
    return box.top >= 0 && box.bottom <= height_;
  }
  [[nodiscard]] bool is_valid(const Box& box) const;

  int width_;
  int height_;
  std::vector<Run> runs_;                     // of valid pixels, row by row
  std::vector<std::size_t> first_run_;        // of each row, and past the last
  std::vector<std::int32_t> invalid_before_;  // (height + 1) rows of (width + 1), as in a template
};

}  // namespace patternd
