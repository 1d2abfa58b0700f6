// Pictures in files: PNG, JPEG and the PNM family, read defensively (content decides, not the
// name).
#pragma once

#include <cstdint>
#include <string>

#include "pipeline/image.h"

namespace patternd {

enum class ReadAs {
  kGray,  // kGray8 or kGray16: colour becomes luma (BT.601), alpha is dropped
  kAsIs,  // kGray8, kGray16 or kRgb8 (16-bit colour is reduced to 8)
};

// Reads a picture. Errors name the file: kNotFound, kIo, kParse (malformed or cut short, with
// where), kInvalidArgument (sides beyond kMaxImageSide). PNG: 1 to 16 bit, grey, palette, colour;
// JPEG; PNM: P1 to P6, maxval to 65535 (scaled to full scale when it is not 255 or 65535).
[[nodiscard]] Result<Image> read_image(const std::string& path, ReadAs as = ReadAs::kGray);
// The same from memory; `name` stands in messages.
[[nodiscard]] Result<Image> decode_image(const std::uint8_t* data, std::size_t size,
                                         const std::string& name, ReadAs as = ReadAs::kGray);

// Writes PNG (8- or 16-bit grey, or colour), or PGM/PPM where the name ends in .pgm/.ppm. The file
// appears whole or not at all (written beside and renamed).
[[nodiscard]] Result<void> write_image(const std::string& path, const ImageView& image);
// The name's ending is one that write_image has a format for: .png, .pgm for grey pictures, .ppm
// for colour. To be asked before the work; write_image itself takes any name, and writes PNG.
[[nodiscard]] Result<void> check_image_file_name(const std::string& path, bool colour = false);
// Plain-text PGM (P2) or PPM (P3).
[[nodiscard]] Result<void> write_plain_pnm(const std::string& path, const ImageView& image);

// Writes a file whole or not at all.
[[nodiscard]] Result<void> write_file(const std::string& path, const std::string& content);

}  // namespace patternd
