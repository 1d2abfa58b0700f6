// Connected components: labels and statistics (R1–R7).
#pragma once

#include <cstdint>
#include <optional>

#include "pipeline/match.h"

namespace patternd {

// The `blobs` section.
struct BlobParams {
  enum class Mode { kThreshold, kOtsu, kAdaptive, kSimilarity };
  enum class Reference { kOff, kDark, kAlternate };
  Mode mode = Mode::kThreshold;
  double threshold = 200;  // grey levels of the picture's format; foreground is value > threshold
  int adaptive_radius = 15;
  double adaptive_offset = 0;
  double similarity = 0;
  bool below = false;    // foreground is value < threshold
  int connectivity = 8;  // 4 | 8
  std::int64_t min_area = 1;
  int max_blobs = 1000;  // the largest are kept
  Reference reference = Reference::kOff;
  std::optional<Roi> roi;
};

}  // namespace patternd
