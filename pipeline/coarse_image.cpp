#include "pipeline/coarse_image.h"

#include <algorithm>

namespace patternd {

CoarseImage::CoarseImage(int width, int height, int margin, const ImageView& valid)
    : width_(width), height_(height), margin_(margin), valid_(valid) {
  stride_ = static_cast<std::ptrdiff_t>(width) + 2 * margin;
  const std::size_t size =
      static_cast<std::size_t>(stride_) *
      (static_cast<std::size_t>(height) + 2 * static_cast<std::size_t>(margin));
  samples_.assign(static_cast<std::size_t>(width) + 1, 0);
  pairs_.assign(size, 0);
  sums_.assign(size, 0);
  squares_.assign(size, 0);
}

CoarseRows CoarseImage::rows() const {
  const std::ptrdiff_t origin = margin_ * stride_ + margin_;
  return {pairs_.data() + origin, sums_.data() + origin, squares_.data() + origin, stride_};
}

std::size_t CoarseImage::memory_bytes() const { return pairs_.size() * 12; }

void CoarseImage::build(const ImageView& level) {
  for (int y = 0; y < height_; ++y) build_row(level, y);
}

void CoarseImage::build_row(const ImageView& level, int y) {
  std::int32_t* samples = samples_.data();
  if (level.format == PixelFormat::kGray8) {
    const auto* row = level.row<std::uint8_t>(y);
    for (int x = 0; x < width_; ++x) samples[x] = row[x] - 128;
  } else {
    const auto* row = level.row<std::uint16_t>(y);
    for (int x = 0; x < width_; ++x) samples[x] = (row[x] >> 6) - 512;
  }
  if (valid_.data != nullptr) {
    const auto* valid = valid_.row<std::uint8_t>(y);
    for (int x = 0; x < width_; ++x) samples[x] = valid[x] != 0 ? samples[x] : 0;
  }

  const std::ptrdiff_t at = (margin_ + y) * stride_ + margin_;
  std::int32_t* pairs = pairs_.data() + at;
  std::uint32_t* sums = sums_.data() + at;
  std::uint32_t* squares = squares_.data() + at;
  pairs[-1] = pair_of(0, samples[0]);
  for (int x = 0; x < width_; ++x) pairs[x] = pair_of(samples[x], samples[x + 1]);
  std::uint32_t sum = 0;
  std::uint32_t square = 0;
  for (int x = 0; x < width_; ++x) {
    sums[x] = sum;
    squares[x] = square;
    sum += static_cast<std::uint32_t>(samples[x]);
    square += static_cast<std::uint32_t>(samples[x] * samples[x]);
  }
  std::fill(sums + width_, sums + width_ + margin_, sum);
  std::fill(squares + width_, squares + width_ + margin_, square);
}

}  // namespace patternd
