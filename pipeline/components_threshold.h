// Foreground by a threshold for the whole picture: fixed, or Otsu's.
#pragma once

#include <cstdint>

#include "pipeline/image.h"

namespace patternd::components {

// Whole grey values that are foreground, inclusive; none where low > high.
struct GreyRange {
  int low = 0;
  int high = -1;
  [[nodiscard]] bool empty() const { return low > high; }
};
// value > threshold, or value < threshold with `below`, for values 0..max_value.
//   foreground_range(99.5, false, 255) is {100, 255}
[[nodiscard]] GreyRange foreground_range(double threshold, bool below, int max_value);

// Otsu's threshold (IEEE Trans. SMC 9(1), 1979): of all splits of the histogram the one with the
// largest variance between the two sides; the lowest of equals. It lies halfway between two whole
// values, so that above and below are complements; a picture of one value has that value as its
// threshold, and no foreground either way. `histogram` is scratch: 256 or 65536 counts. kGray8 and
// kGray16.
[[nodiscard]] double otsu_threshold(const ImageView& image, std::uint32_t* histogram);

}  // namespace patternd::components
