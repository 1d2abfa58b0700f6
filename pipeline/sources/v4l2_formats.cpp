#include "pipeline/sources/v4l2_formats.h"

#include <algorithm>

#include "pipeline/sources/v4l2_device.h"

namespace patternd {

const V4l2PixelFormat* find_pixel_format(std::uint32_t fourcc) {
  const auto* found = std::find_if(kV4l2PixelFormats.begin(), kV4l2PixelFormats.end(),
                                   [&](const V4l2PixelFormat& f) { return f.fourcc == fourcc; });
  return found == kV4l2PixelFormats.end() ? nullptr : found;
}

bool is_compressed(std::uint32_t fourcc) {
  return std::find(kV4l2CompressedFormats.begin(), kV4l2CompressedFormats.end(), fourcc) !=
         kV4l2CompressedFormats.end();
}

std::optional<std::uint32_t> fourcc_of(const std::string& name) {
  for (const V4l2PixelFormat& f : kV4l2PixelFormats)
    if (name == name_of(f.format, f.bayer) || name == fourcc_name(f.fourcc)) return f.fourcc;
  for (const std::uint32_t fourcc : kV4l2CompressedFormats)
    if (name == fourcc_name(fourcc)) return fourcc;
  return std::nullopt;
}

std::string fourcc_name(std::uint32_t fourcc) {
  std::string name;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    const auto c = static_cast<char>(fourcc >> shift & 0x7f);
    name += c >= ' ' && c <= '~' ? c : '.';
  }
  while (!name.empty() && name.back() == ' ') name.pop_back();
  if ((fourcc & 1U << 31) != 0) name += "-BE";
  return name;
}

}  // namespace patternd
