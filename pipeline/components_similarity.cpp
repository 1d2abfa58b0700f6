#include "pipeline/components_similarity.h"

#include <algorithm>
#include <cstring>

namespace patternd::components {
namespace {

// Elements before and behind a row; the first is the neighbour of pixel 0.
constexpr std::size_t kMargin = kRowTailBytes;

std::size_t channels_of(PixelFormat format) { return format == PixelFormat::kRgb8 ? 3 : 1; }

}  // namespace

void SimilarityRows::configure(int width, PixelFormat format, double most_difference) {
  width_ = width;
  format_ = format;
  const double most = format == PixelFormat::kGray16 ? 65535 : 255;
  limit_ = static_cast<std::uint32_t>(std::min(most_difference, most));
  plane_ = static_cast<std::size_t>(width) + 2 * kMargin;
  for (int i = 0; i < 2; ++i) {
    if (format == PixelFormat::kGray16)
      rows16_[i].assign(plane_, 0);
    else
      rows8_[i].assign(plane_ * channels_of(format), 0);
  }
  if (format == PixelFormat::kRgb8) luma_.assign(plane_, 0);
  for (auto* bits : {&up_, &left_, &right_}) bits->assign(row_words(width), 0);
}

void SimilarityRows::load(const ImageView& image, int y) {
  now_ = 1 - now_;
  const auto w = static_cast<std::size_t>(width_);
  if (format_ == PixelFormat::kGray8) {
    std::memcpy(rows8_[now_].data() + kMargin, image.row<std::uint8_t>(y), w);
  } else if (format_ == PixelFormat::kGray16) {
    std::memcpy(rows16_[now_].data() + kMargin, image.row<std::uint16_t>(y), 2 * w);
  } else {
    const std::uint8_t* from = image.row<std::uint8_t>(y);
    std::uint8_t* to = rows8_[now_].data() + kMargin;
    for (std::size_t x = 0; x < w; ++x) {
      to[x] = from[3 * x];
      to[x + plane_] = from[3 * x + 1];
      to[x + 2 * plane_] = from[3 * x + 2];
    }
  }
}

void SimilarityRows::compare(std::size_t row_a, std::ptrdiff_t shift, std::size_t row_b,
                             std::uint64_t* bits) const {
  const std::ptrdiff_t shifted = static_cast<std::ptrdiff_t>(kMargin) + shift;
  if (format_ == PixelFormat::kGray16) {
    similar_row(rows16_[row_a].data() + kMargin, rows16_[row_b].data() + shifted, width_,
                static_cast<std::uint16_t>(limit_), false, bits);
    return;
  }
  for (std::size_t channel = 0; channel < channels_of(format_); ++channel) {
    similar_row(rows8_[row_a].data() + channel * plane_ + kMargin,
                rows8_[row_b].data() + channel * plane_ + shifted, width_,
                static_cast<std::uint8_t>(limit_), channel > 0, bits);
  }
}

void SimilarityRows::starts(std::uint64_t* bits) const {
  compare(now_, -1, now_, bits);
  const std::size_t words = (static_cast<std::size_t>(width_) + 63) / 64;
  for (std::size_t k = 0; k < words; ++k) bits[k] = ~bits[k];
  bits[0] |= 1;
  if (width_ % 64 != 0) bits[words - 1] &= ~std::uint64_t{0} >> (64 - width_ % 64);
}

SimilarityBits SimilarityRows::touches(const std::uint64_t* starts,
                                       const std::uint64_t* upper_starts) {
  compare(now_, 0, 1 - now_, up_.data());
  compare(now_, -1, 1 - now_, left_.data());
  compare(now_, +1, 1 - now_, right_.data());
  left_[0] &= ~std::uint64_t{1};
  const auto last = static_cast<std::size_t>(width_ - 1);
  right_[last / 64] &= ~(std::uint64_t{1} << (last % 64));
  return {starts, upper_starts, up_.data(), left_.data(), right_.data()};
}

const std::uint8_t* SimilarityRows::grey8() {
  const std::uint8_t* row = rows8_[now_].data() + kMargin;
  if (format_ != PixelFormat::kRgb8) return row;
  const auto w = static_cast<std::size_t>(width_);
  for (std::size_t x = 0; x < w; ++x) {
    const unsigned luma = 77U * row[x] + 150U * row[x + plane_] + 29U * row[x + 2 * plane_] + 128U;
    luma_[x] = static_cast<std::uint8_t>(luma >> 8);
  }
  return luma_.data();
}

const std::uint16_t* SimilarityRows::grey16() const { return rows16_[now_].data() + kMargin; }

}  // namespace patternd::components
