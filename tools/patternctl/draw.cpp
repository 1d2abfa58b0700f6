#include "tools/patternctl/draw.h"

#include <algorithm>
#include <cmath>

namespace patternd::tools {
namespace {

constexpr double kDegree = 3.14159265358979323846 / 180;
constexpr double kCrossArmPx = 6;

}  // namespace

Result<Image> to_rgb(const ImageView& picture) {
  if (picture.format == PixelFormat::kRgb8) return Image::copy_of(picture);
  auto rgb = Image::create(picture.width, picture.height, PixelFormat::kRgb8);
  if (!rgb) return rgb;
  for (int y = 0; y < picture.height; ++y) {
    std::uint8_t* out = rgb->view().row_bytes(y);
    for (int x = 0; x < picture.width; ++x) {
      const std::uint8_t gray =
          picture.format == PixelFormat::kGray16
              ? static_cast<std::uint8_t>(picture.row<std::uint16_t>(y)[x] >> 8)
              : picture.row_bytes(y)[x];
      std::fill_n(out + 3 * x, 3, gray);
    }
  }
  return rgb;
}

void draw_line(MutableImageView rgb, Point2 from, Point2 to, Color color) {
  const double length = std::max(std::abs(to.x - from.x), std::abs(to.y - from.y));
  if (!(length < 4.0 * kMaxImageSide)) return;
  const int steps = std::max(1, static_cast<int>(std::ceil(length)));
  for (int i = 0; i <= steps; ++i) {
    const double part = static_cast<double>(i) / steps;
    const auto x = static_cast<int>(std::lround(from.x + part * (to.x - from.x)));
    const auto y = static_cast<int>(std::lround(from.y + part * (to.y - from.y)));
    if (x < 0 || y < 0 || x >= rgb.width || y >= rgb.height) continue;
    std::copy(color.begin(), color.end(),
              rgb.row_bytes(y) + std::size_t{3} * static_cast<std::size_t>(x));
  }
}

void draw_match(MutableImageView rgb, const Match& match, const Pattern& pattern, Color color) {
  const double c = std::cos(match.angle_deg * kDegree) * match.scale;
  const double s = std::sin(match.angle_deg * kDegree) * match.scale;
  const auto place = [&](double x, double y) {
    const double u = x - pattern.ref_x;
    const double v = y - pattern.ref_y;
    return Point2{match.x_px + c * u - s * v, match.y_px + s * u + c * v};
  };
  const double right = pattern.picture.width() - 0.5;
  const double bottom = pattern.picture.height() - 0.5;
  const Point2 corners[] = {place(-0.5, -0.5), place(right, -0.5), place(right, bottom),
                            place(-0.5, bottom)};
  for (int i = 0; i < 4; ++i) draw_line(rgb, corners[i], corners[(i + 1) % 4], color);
  const Point2 center{match.x_px, match.y_px};
  draw_line(rgb, {center.x - kCrossArmPx, center.y}, {center.x + kCrossArmPx, center.y}, color);
  draw_line(rgb, {center.x, center.y - kCrossArmPx}, {center.x, center.y + kCrossArmPx}, color);
  draw_line(rgb, center, place(right, pattern.ref_y), color);
}

}  // namespace patternd::tools
