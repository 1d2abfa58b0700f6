#include "pipeline/coarse_view.h"

#include <algorithm>

#include "pipeline/row_major.h"

namespace patternd {

CoarseView::CoarseView(int width, int height, const ImageView& valid)
    : width_(width), height_(height) {
  if (valid.data == nullptr) return;
  const int per_row = width + 1;
  invalid_before_.assign(row_major(height + 1, 0, per_row), 0);
  for (int y = 0; y < height; ++y) {
    const auto* row = valid.row<std::uint8_t>(y);
    first_run_.push_back(runs_.size());
    std::int32_t invalid = 0;
    for (int x = 0; x < width; ++x) {
      if (row[x] == 0) {
        ++invalid;
      } else if (x > 0 && row[x - 1] != 0) {
        ++runs_.back().end;
      } else {
        runs_.push_back({x, x + 1});
      }
      invalid_before_[row_major(y + 1, x + 1, per_row)] =
          invalid_before_[row_major(y, x + 1, per_row)] + invalid;
    }
  }
  first_run_.push_back(runs_.size());
}

CoarseView::Box CoarseView::box_of(const CoarseTemplate& t, int x, int y, int columns, int rows) {
  const int left = x + t.shape.left;
  const int top = y + t.shape.top;
  return {left, left + t.shape.width + columns - 1, top, top + t.shape.height + rows - 1};
}

CoarseView::Box CoarseView::clipped(const Box& box) const {
  return {std::max(box.left, 0), std::min(box.right, width_), std::max(box.top, 0),
          std::min(box.bottom, height_)};
}

// Of a box inside the picture, or none.
bool CoarseView::is_valid(const Box& box) const {
  if (invalid_before_.empty() || box.left >= box.right || box.top >= box.bottom) return true;
  const auto before = [&](int y, int x) { return invalid_before_[row_major(y, x, width_ + 1)]; };
  return before(box.bottom, box.right) - before(box.top, box.right) - before(box.bottom, box.left) +
             before(box.top, box.left) ==
         0;
}

bool CoarseView::see_all(const CoarseTemplate& t, int x, int y, int count) const {
  const Box box = box_of(t, x, y, count, 1);
  return has_columns(box) && has_rows(box) && is_valid(box);
}

bool CoarseView::see_as_above(const CoarseTemplate& t, int x, int y, int count) const {
  const Box both = box_of(t, x, y - 1, count, 2);
  return has_rows(both) && is_valid(clipped(both));
}

bool CoarseView::see_as_left(const CoarseTemplate& t, int x, int y, int count) const {
  const Box both = box_of(t, x - count, y, 2 * count, 1);
  return has_columns(both) && is_valid(clipped(both));
}

TemplateSums CoarseView::seen(const CoarseTemplate& t, int x, int y) const {
  const Box whole = box_of(t, x, y, 1, 1);
  const Box box = clipped(whole);
  if (box.left >= box.right || box.top >= box.bottom) return {};
  if (is_valid(box)) {
    return t.sums_of(box.left - whole.left, box.right - whole.left, box.top - whole.top,
                     box.bottom - whole.top);
  }
  TemplateSums out;
  for (int row = box.top; row < box.bottom; ++row) {
    const auto of_row = static_cast<std::size_t>(row);
    for (std::size_t i = first_run_[of_row]; i < first_run_[of_row + 1]; ++i) {
      const int begin = std::max(runs_[i].begin, box.left);
      const int end = std::min(runs_[i].end, box.right);
      if (begin >= end) continue;
      const TemplateSums part =
          t.sums_of(begin - whole.left, end - whole.left, row - whole.top, row - whole.top + 1);
      out.sum += part.sum;
      out.square += part.square;
      out.pixels += part.pixels;
    }
  }
  return out;
}

}  // namespace patternd
