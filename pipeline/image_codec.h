// Decoders and encoders of picture files, from and to memory; image_file.h is what others use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd {

// What the first bytes say.
[[nodiscard]] bool is_png(const std::uint8_t* data, std::size_t size);
[[nodiscard]] bool is_jpeg(const std::uint8_t* data, std::size_t size);
[[nodiscard]] bool is_pnm(const std::uint8_t* data, std::size_t size);

// kGray8, kGray16 or kRgb8. `name` stands in messages. kParse where malformed or cut short;
// kInvalidArgument beyond kMaxImageSide.
[[nodiscard]] Result<Image> decode_png(const std::uint8_t* data, std::size_t size,
                                       const std::string& name);
[[nodiscard]] Result<Image> decode_jpeg(const std::uint8_t* data, std::size_t size,
                                        const std::string& name);
[[nodiscard]] Result<Image> decode_pnm(const std::uint8_t* data, std::size_t size,
                                       const std::string& name);

// kGray8, kGray16, kRgb8; kUnsupported for others.
[[nodiscard]] Result<std::vector<std::uint8_t>> encode_png(const ImageView& image);
[[nodiscard]] Result<std::vector<std::uint8_t>> encode_pnm(const ImageView& image);
// P2 or P3; kLabel32 too (P2 with maxval the largest label, at least 1; above 65535 readers
// differ).
[[nodiscard]] Result<std::string> encode_plain_pnm(const ImageView& image);

// BT.601 luma with 8-bit weights: (77 R + 150 G + 29 B + 128) / 256.
[[nodiscard]] Result<Image> rgb_to_gray(const ImageView& rgb);

}  // namespace patternd
