#include "pipeline/valid_area.h"

#include <algorithm>

namespace patternd {

Image halved_mask(const ImageView& mask) {
  auto out = Image::create(mask.width / 2, mask.height / 2, PixelFormat::kGray8);
  if (!out) return Image();
  for (int y = 0; y < out->height(); ++y) {
    const auto* top = mask.row<std::uint8_t>(2 * y);
    const auto* bottom = mask.row<std::uint8_t>(2 * y + 1);
    for (int x = 0; x < out->width(); ++x) {
      const bool all =
          top[2 * x] != 0 && top[2 * x + 1] != 0 && bottom[2 * x] != 0 && bottom[2 * x + 1] != 0;
      out->row<std::uint8_t>(y)[x] = all ? 255 : 0;
    }
  }
  return std::move(*out);
}

bool all_set(const ImageView& mask) {
  for (int y = 0; y < mask.height; ++y) {
    const auto* row = mask.row<std::uint8_t>(y);
    if (std::find(row, row + mask.width, std::uint8_t{0}) != row + mask.width) return false;
  }
  return true;
}

}  // namespace patternd
