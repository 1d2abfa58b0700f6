// A frame as the source gave it: pixels in the camera's format, sequence number, time stamps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd {

// Formats that frames arrive in (names as V4L2's four characters without padding).
enum class RawFormat : std::uint8_t {
  kGrey,  // 8-bit luma
  kY10,   // 10 bits in the low end of little-endian 16
  kY12,
  kY16,   // full 16 bits, little-endian
  kYuyv,  // Y0 U Y1 V
  kUyvy,  // U Y0 V Y1
  kNv12,  // 8-bit luma plane, then interleaved chroma at half size
  kRgb3,  // R G B
  kBgr3,
  kYu12,     // 8-bit luma plane, then two chroma planes
  kBayer8,   // a colour mosaic, one byte a pixel; the order of colours is in BayerOrder
  kBayer10,  // in 16, little-endian, low end
  kBayer12,
  kBayer14,
  kBayer16,
};
enum class BayerOrder : std::uint8_t { kRggb, kGrbg, kGbrg, kBggr };

// "GREY", "Y10", …, "NV12", "RGB3", "RGGB8" and so on, as in the configuration.
[[nodiscard]] std::string name_of(RawFormat format, BayerOrder order = BayerOrder::kRggb);

// All names that `name_of` gives, for messages; and the format that a name stands for, or nothing.
struct NamedRawFormat {
  RawFormat format = RawFormat::kGrey;
  BayerOrder order = BayerOrder::kRggb;
};
[[nodiscard]] std::vector<std::string> raw_format_names();
[[nodiscard]] std::optional<NamedRawFormat> find_raw_format(std::string_view name);

// Pixels of a frame, owned by the frame's buffer. `stride_bytes` is that of the first plane.
struct RawImageView {
  const std::uint8_t* data = nullptr;
  std::size_t size_bytes = 0;
  int width = 0;
  int height = 0;
  std::size_t stride_bytes = 0;
  RawFormat format = RawFormat::kGrey;
  BayerOrder bayer = BayerOrder::kRggb;
};

// What travels beside the pixels.
struct FrameInfo {
  std::uint64_t seq = 0;              // rises strictly over the life of the service
  std::int64_t captured_mono_ns = 0;  // CLOCK_MONOTONIC of the capture (a replay: the recording's)
  std::int64_t captured_unix_ns = 0;  // the same instant since 1970
  std::int64_t received_mono_ns =
      0;  // CLOCK_MONOTONIC when the frame reached us (equals the capture's in a replay)
  std::uint64_t dropped = 0;  // frames lost between the previous frame handed out and this one
  std::uint32_t configuration = 0;  // number of the configuration that this frame runs under
};

// Converts a frame to luma at full scale: kGray8 from 8-bit formats, kGray16 from deeper ones (kY10
// << 6 and so on). Colour becomes (77 R + 150 G + 29 B + 128) / 256; a Bayer mosaic becomes luma by
// bilinear interpolation of the same. Where the format has a luma plane at the output's own depth
// (GREY, NV12, YU12, Y16) nothing is copied: the view points into the frame. Otherwise `scratch`
// (luma_format(raw), same size) receives the pixels and its view is returned.
[[nodiscard]] PixelFormat luma_format(RawFormat format);
[[nodiscard]] bool has_luma_plane(RawFormat format);
[[nodiscard]] ImageView to_luma(const RawImageView& raw, MutableImageView scratch);

// The bytes that a frame of this kind takes with rows `stride_bytes` apart, chroma planes included.
[[nodiscard]] std::size_t frame_bytes(RawFormat format, int height, std::size_t stride_bytes);
// The smallest stride of the first plane.
[[nodiscard]] std::size_t min_stride_bytes(RawFormat format, int width);

}  // namespace patternd
