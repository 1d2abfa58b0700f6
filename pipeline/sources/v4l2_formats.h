// V4L2's pixel formats that we take as they are.
#pragma once

#include <array>
#include <cstdint>
#include <linux/videodev2.h>
#include <optional>
#include <string>

#include "pipeline/frame.h"

namespace patternd {

struct V4l2PixelFormat {
  std::uint32_t fourcc;
  RawFormat format;
  BayerOrder bayer;
};

// In the order in which `format: auto` prefers them: mono, luma planes, packed, RGB, Bayer.
inline constexpr std::array<V4l2PixelFormat, 30> kV4l2PixelFormats = {{
    {V4L2_PIX_FMT_GREY, RawFormat::kGrey, BayerOrder::kRggb},
    {V4L2_PIX_FMT_Y10, RawFormat::kY10, BayerOrder::kRggb},
    {V4L2_PIX_FMT_Y12, RawFormat::kY12, BayerOrder::kRggb},
    {V4L2_PIX_FMT_Y16, RawFormat::kY16, BayerOrder::kRggb},
    {V4L2_PIX_FMT_NV12, RawFormat::kNv12, BayerOrder::kRggb},
    {V4L2_PIX_FMT_YUV420, RawFormat::kYu12, BayerOrder::kRggb},
    {V4L2_PIX_FMT_YUYV, RawFormat::kYuyv, BayerOrder::kRggb},
    {V4L2_PIX_FMT_UYVY, RawFormat::kUyvy, BayerOrder::kRggb},
    {V4L2_PIX_FMT_RGB24, RawFormat::kRgb3, BayerOrder::kRggb},
    {V4L2_PIX_FMT_BGR24, RawFormat::kBgr3, BayerOrder::kRggb},
    {V4L2_PIX_FMT_SRGGB8, RawFormat::kBayer8, BayerOrder::kRggb},
    {V4L2_PIX_FMT_SGRBG8, RawFormat::kBayer8, BayerOrder::kGrbg},
    {V4L2_PIX_FMT_SGBRG8, RawFormat::kBayer8, BayerOrder::kGbrg},
    {V4L2_PIX_FMT_SBGGR8, RawFormat::kBayer8, BayerOrder::kBggr},
    {V4L2_PIX_FMT_SRGGB10, RawFormat::kBayer10, BayerOrder::kRggb},
    {V4L2_PIX_FMT_SGRBG10, RawFormat::kBayer10, BayerOrder::kGrbg},
    {V4L2_PIX_FMT_SGBRG10, RawFormat::kBayer10, BayerOrder::kGbrg},
    {V4L2_PIX_FMT_SBGGR10, RawFormat::kBayer10, BayerOrder::kBggr},
    {V4L2_PIX_FMT_SRGGB12, RawFormat::kBayer12, BayerOrder::kRggb},
    {V4L2_PIX_FMT_SGRBG12, RawFormat::kBayer12, BayerOrder::kGrbg},
    {V4L2_PIX_FMT_SGBRG12, RawFormat::kBayer12, BayerOrder::kGbrg},
    {V4L2_PIX_FMT_SBGGR12, RawFormat::kBayer12, BayerOrder::kBggr},
    {V4L2_PIX_FMT_SRGGB14, RawFormat::kBayer14, BayerOrder::kRggb},
    {V4L2_PIX_FMT_SGRBG14, RawFormat::kBayer14, BayerOrder::kGrbg},
    {V4L2_PIX_FMT_SGBRG14, RawFormat::kBayer14, BayerOrder::kGbrg},
    {V4L2_PIX_FMT_SBGGR14, RawFormat::kBayer14, BayerOrder::kBggr},
    {V4L2_PIX_FMT_SRGGB16, RawFormat::kBayer16, BayerOrder::kRggb},
    {V4L2_PIX_FMT_SGRBG16, RawFormat::kBayer16, BayerOrder::kGrbg},
    {V4L2_PIX_FMT_SGBRG16, RawFormat::kBayer16, BayerOrder::kGbrg},
    {V4L2_PIX_FMT_SBGGR16, RawFormat::kBayer16, BayerOrder::kBggr},
}};

// Compressed formats that libv4lconvert decodes, the commonest first.
inline constexpr std::array<std::uint32_t, 2> kV4l2CompressedFormats = {V4L2_PIX_FMT_MJPEG,
                                                                        V4L2_PIX_FMT_JPEG};

[[nodiscard]] const V4l2PixelFormat* find_pixel_format(std::uint32_t fourcc);
[[nodiscard]] bool is_compressed(std::uint32_t fourcc);
// The format that a configuration's word stands for: our names ("Y10", "RGGB8") or V4L2's own four
// characters ("RG10", "MJPG"); nothing where we take none of that name.
[[nodiscard]] std::optional<std::uint32_t> fourcc_of(const std::string& name);

}  // namespace patternd
