#include "pipeline/components_adaptive.h"

#include <algorithm>
#include <cmath>

#include "pipeline/components_rows.h"

namespace patternd::components {

void AdaptiveRows::configure(int width, int radius, double offset, bool below) {
  const auto w = static_cast<std::size_t>(width);
  radius_ = radius;
  offset_ = offset;
  below_ = below;
  column_sums_.resize(w);
  prefix_.resize(w + 1);
  counts_.resize(w);
  limits_.resize(w);
}

template <class T>
void AdaptiveRows::add_row(int y, bool add) {
  const T* row = image_.row<T>(y);
  const std::size_t w = column_sums_.size();
  std::uint32_t* sums = column_sums_.data();
  if (add) {
    for (std::size_t x = 0; x < w; ++x) sums[x] += row[x];
  } else {
    for (std::size_t x = 0; x < w; ++x) sums[x] -= row[x];
  }
}

void AdaptiveRows::set_limits(int rows) {
  if (rows == limit_rows_) return;
  limit_rows_ = rows;
  const int w = image_.width;
  for (int x = 0; x < w; ++x) {
    const int columns = std::min(x + radius_, w - 1) - std::max(x - radius_, 0) + 1;
    const std::int64_t count = static_cast<std::int64_t>(columns) * rows;
    const auto at = static_cast<std::size_t>(x);
    counts_[at] = count;
    limits_[at] = static_cast<std::int64_t>(std::floor(offset_ * static_cast<double>(count)));
  }
}

void AdaptiveRows::start(const ImageView& image, int y) {
  image_ = image;
  y_ = y;
  limit_rows_ = 0;
  std::fill(column_sums_.begin(), column_sums_.end(), 0);
  // All of row y's window but its last row, which next_row adds.
  const int last = std::min<int>(y + radius_ - 1, image.height - 1);
  for (int row = std::max(y - radius_, 0); row <= last; ++row) {
    if (image.format == PixelFormat::kGray8)
      add_row<std::uint8_t>(row, true);
    else
      add_row<std::uint16_t>(row, true);
  }
}

template <class T>
void AdaptiveRows::compare_row(std::uint64_t* bits) const {
  const T* row = image_.row<T>(y_);
  const int w = image_.width;
  std::fill_n(bits, row_words(w), 0);
  for (int x = 0; x < w; ++x) {
    const auto at = static_cast<std::size_t>(x);
    const auto end = static_cast<std::size_t>(std::min(x + radius_, w - 1)) + 1;
    const auto begin = static_cast<std::size_t>(std::max(x - radius_, 0));
    const auto sum = static_cast<std::int64_t>(prefix_[end] - prefix_[begin]);
    const std::int64_t above = static_cast<std::int64_t>(row[x]) * counts_[at] - sum;
    const bool foreground = (below_ ? -above : above) > limits_[at];
    bits[at / 64] |= static_cast<std::uint64_t>(foreground) << (at % 64);
  }
}

void AdaptiveRows::next_row(std::uint64_t* bits) {
  const bool is8 = image_.format == PixelFormat::kGray8;
  const int entering = y_ + radius_;
  if (entering < image_.height) {
    if (is8)
      add_row<std::uint8_t>(entering, true);
    else
      add_row<std::uint16_t>(entering, true);
  }
  set_limits(std::min(entering, image_.height - 1) - std::max(y_ - radius_, 0) + 1);
  std::uint64_t sum = 0;
  for (std::size_t x = 0; x < column_sums_.size(); ++x) prefix_[x + 1] = sum += column_sums_[x];
  if (is8)
    compare_row<std::uint8_t>(bits);
  else
    compare_row<std::uint16_t>(bits);
  const int leaving = y_ - radius_;
  if (leaving >= 0) {
    if (is8)
      add_row<std::uint8_t>(leaving, false);
    else
      add_row<std::uint16_t>(leaving, false);
  }
  ++y_;
}

}  // namespace patternd::components
