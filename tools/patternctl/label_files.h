// Labels as files, and as a coloured picture.
#pragma once

#include <string>

#include "pipeline/image.h"

namespace patternd::tools {

// Writes labels (kLabel32) as the name's ending says: .npy (int32), .png (16 bit; fails with
// kUnsupported beyond 65535 labels), .pgm (plain text, R6). Another ending is kInvalidArgument.
[[nodiscard]] Result<void> write_label_file(const std::string& path, const ImageView& labels);
// The ending is one of those.
[[nodiscard]] Result<void> check_label_file_name(const std::string& path);

enum class LabelColours {
  kDistinct,  // components that lie within two pixels of each other differ, and up to 32 in all
  kHash,      // the report's (R6): remainders of the first pixel's place (counted from 0 along the
              // rows) by 1027, 537 and 3531, modulo 256; each plus 128 where all are under 96
};
// A picture of the labels (kRgb8); the background is black.
[[nodiscard]] Result<Image> colour_labels(const ImageView& labels, LabelColours colours);

}  // namespace patternd::tools
