// The formats that frames arrive in: their names and layouts.
#include <array>

#include "pipeline/frame.h"

namespace patternd {
namespace {

constexpr std::array<const char*, 4> kBayerOrders = {"RGGB", "GRBG", "GBRG", "BGGR"};

// Everything about a format that is a plain fact; one row each. `bytes` a pixel of the first plane;
// packed 4:2:2 and planar 4:2:0 rows hold whole pairs of pixels.
struct Layout {
  RawFormat format;
  const char* name;  // a mosaic's bits a pixel
  std::size_t bytes;
  bool mosaic;
  bool pairs;
  bool deep;        // over 8 bits of luma
  bool luma_plane;  // usable as it lies
};

constexpr std::array<Layout, 15> kLayouts = {{
    {RawFormat::kGrey, "GREY", 1, false, false, false, true},
    {RawFormat::kY10, "Y10", 2, false, false, true, false},
    {RawFormat::kY12, "Y12", 2, false, false, true, false},
    {RawFormat::kY16, "Y16", 2, false, false, true, true},
    {RawFormat::kYuyv, "YUYV", 2, false, true, false, false},
    {RawFormat::kUyvy, "UYVY", 2, false, true, false, false},
    {RawFormat::kNv12, "NV12", 1, false, true, false, true},
    {RawFormat::kRgb3, "RGB3", 3, false, false, false, false},
    {RawFormat::kBgr3, "BGR3", 3, false, false, false, false},
    {RawFormat::kYu12, "YU12", 1, false, true, false, true},
    {RawFormat::kBayer8, "8", 1, true, false, false, false},
    {RawFormat::kBayer10, "10", 2, true, false, true, false},
    {RawFormat::kBayer12, "12", 2, true, false, true, false},
    {RawFormat::kBayer14, "14", 2, true, false, true, false},
    {RawFormat::kBayer16, "16", 2, true, false, true, false},
}};

const Layout& layout_of(RawFormat format) {
  for (const Layout& layout : kLayouts)
    if (layout.format == format) return layout;
  return kLayouts.front();
}

// How many names a format has: a mosaic one for each order of its colours.
std::size_t orders_of(const Layout& layout) { return layout.mosaic ? kBayerOrders.size() : 1; }

}  // namespace

std::string name_of(RawFormat format, BayerOrder order) {
  const Layout& layout = layout_of(format);
  if (!layout.mosaic) return layout.name;
  return std::string(kBayerOrders[static_cast<std::size_t>(order)]) + layout.name;
}

std::vector<std::string> raw_format_names() {
  std::vector<std::string> names;
  for (const Layout& layout : kLayouts)
    for (std::size_t order = 0; order < orders_of(layout); ++order)
      names.push_back(name_of(layout.format, static_cast<BayerOrder>(order)));
  return names;
}

std::optional<NamedRawFormat> find_raw_format(std::string_view name) {
  for (const Layout& layout : kLayouts) {
    for (std::size_t i = 0; i < orders_of(layout); ++i) {
      const auto order = static_cast<BayerOrder>(i);
      if (name == name_of(layout.format, order)) return NamedRawFormat{layout.format, order};
    }
  }
  return std::nullopt;
}

std::size_t min_stride_bytes(RawFormat format, int width) {
  const Layout& layout = layout_of(format);
  const auto w = static_cast<std::size_t>(width);
  return (layout.pairs ? (w + 1) / 2 * 2 : w) * layout.bytes;
}

std::size_t frame_bytes(RawFormat format, int height, std::size_t stride_bytes) {
  const auto h = static_cast<std::size_t>(height);
  const std::size_t luma = stride_bytes * h;
  const std::size_t chroma_rows = (h + 1) / 2;
  if (format == RawFormat::kNv12) return luma + stride_bytes * chroma_rows;
  if (format == RawFormat::kYu12) return luma + 2 * ((stride_bytes + 1) / 2) * chroma_rows;
  return luma;
}

PixelFormat luma_format(RawFormat format) {
  return layout_of(format).deep ? PixelFormat::kGray16 : PixelFormat::kGray8;
}

bool has_luma_plane(RawFormat format) { return layout_of(format).luma_plane; }

}  // namespace patternd
