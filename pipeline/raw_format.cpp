// The formats that frames arrive in: their names and layouts.
#include <array>

#include "pipeline/frame.h"

namespace patternd {
namespace {

constexpr std::array<const char*, 4> kBayerOrders = {"RGGB", "GRBG", "GBRG", "BGGR"};
constexpr std::array<RawFormat, 10> kPlainFormats = {
    RawFormat::kGrey, RawFormat::kY10,  RawFormat::kY12,  RawFormat::kY16,  RawFormat::kYuyv,
    RawFormat::kUyvy, RawFormat::kNv12, RawFormat::kRgb3, RawFormat::kBgr3, RawFormat::kYu12};
constexpr std::array<RawFormat, 5> kBayerFormats = {RawFormat::kBayer8, RawFormat::kBayer10,
                                                    RawFormat::kBayer12, RawFormat::kBayer14,
                                                    RawFormat::kBayer16};

// The mosaic's bits a pixel as text; null for formats that are no mosaic.
const char* bayer_depth(RawFormat format) {
  switch (format) {
    case RawFormat::kBayer8:
      return "8";
    case RawFormat::kBayer10:
      return "10";
    case RawFormat::kBayer12:
      return "12";
    case RawFormat::kBayer14:
      return "14";
    case RawFormat::kBayer16:
      return "16";
    default:
      return nullptr;
  }
}

const char* plain_name(RawFormat format) {
  switch (format) {
    case RawFormat::kGrey:
      return "GREY";
    case RawFormat::kY10:
      return "Y10";
    case RawFormat::kY12:
      return "Y12";
    case RawFormat::kY16:
      return "Y16";
    case RawFormat::kYuyv:
      return "YUYV";
    case RawFormat::kUyvy:
      return "UYVY";
    case RawFormat::kNv12:
      return "NV12";
    case RawFormat::kRgb3:
      return "RGB3";
    case RawFormat::kBgr3:
      return "BGR3";
    case RawFormat::kYu12:
      return "YU12";
    default:
      return "unknown";
  }
}

}  // namespace

std::string name_of(RawFormat format, BayerOrder order) {
  if (const char* depth = bayer_depth(format))
    return std::string(kBayerOrders[static_cast<std::size_t>(order)]) + depth;
  return plain_name(format);
}

std::vector<std::string> raw_format_names() {
  std::vector<std::string> names;
  for (const RawFormat format : kPlainFormats) names.push_back(name_of(format));
  for (const RawFormat format : kBayerFormats)
    for (std::size_t order = 0; order < kBayerOrders.size(); ++order)
      names.push_back(name_of(format, static_cast<BayerOrder>(order)));
  return names;
}

std::optional<NamedRawFormat> find_raw_format(std::string_view name) {
  for (const RawFormat format : kPlainFormats)
    if (name == name_of(format)) return NamedRawFormat{format, BayerOrder::kRggb};
  for (const RawFormat format : kBayerFormats) {
    for (std::size_t i = 0; i < kBayerOrders.size(); ++i) {
      const auto order = static_cast<BayerOrder>(i);
      if (name == name_of(format, order)) return NamedRawFormat{format, order};
    }
  }
  return std::nullopt;
}

std::size_t min_stride_bytes(RawFormat format, int width) {
  const auto w = static_cast<std::size_t>(width);
  const std::size_t even = (w + 1) / 2 * 2;
  switch (format) {
    case RawFormat::kGrey:
    case RawFormat::kBayer8:
      return w;
    case RawFormat::kNv12:
    case RawFormat::kYu12:
      return even;
    case RawFormat::kY10:
    case RawFormat::kY12:
    case RawFormat::kY16:
    case RawFormat::kBayer10:
    case RawFormat::kBayer12:
    case RawFormat::kBayer14:
    case RawFormat::kBayer16:
      return w * 2;
    case RawFormat::kYuyv:
    case RawFormat::kUyvy:
      return even * 2;
    case RawFormat::kRgb3:
    case RawFormat::kBgr3:
      return w * 3;
  }
  return 0;
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
  switch (format) {
    case RawFormat::kY10:
    case RawFormat::kY12:
    case RawFormat::kY16:
    case RawFormat::kBayer10:
    case RawFormat::kBayer12:
    case RawFormat::kBayer14:
    case RawFormat::kBayer16:
      return PixelFormat::kGray16;
    default:
      return PixelFormat::kGray8;
  }
}

bool has_luma_plane(RawFormat format) {
  return format == RawFormat::kGrey || format == RawFormat::kNv12 || format == RawFormat::kYu12 ||
         format == RawFormat::kY16;
}

}  // namespace patternd
