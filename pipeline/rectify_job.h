// Carries out a part of a rectification map on a picture.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pipeline/image.h"
#include "pipeline/rectify_arithmetic.h"
#include "pipeline/rectify_map.h"

namespace patternd {

// Widest stride in bytes that the vector loops' 32-bit offsets allow; wider ones go the scalar way.
inline constexpr std::size_t kMaxVectorStride = std::size_t{1} << 23;

// Job `job` of the map, by the widest vectors of this processor …
void rectify_job(const RectifyMap& map, std::size_t job, const ImageView& input,
                 const MutableImageView& output);
// … and by plain C++; the same bits.
void rectify_job_scalar(const RectifyMap& map, std::size_t job, const ImageView& input,
                        const MutableImageView& output);

// The parts that both share.
template <class T>
void rectify_outside(const RectifyMap& map, const Segment& segment, T* output) {
  std::fill_n(output, segment.count, to_pixel<T>(static_cast<float>(map.border)));
}

template <class T>
void rectify_lone(const RectifyMap& map, const Segment& segment, const ImageView& input,
                  T* output) {
  const int right = input.width > 1 ? 1 : 0;
  const int below = input.height > 1 ? 1 : 0;
  for (std::size_t i = 0; i < segment.count; ++i) {
    const LonePixel& p = map.lone_pixels[segment.first + i];
    if (p.x < 0) {
      output[i] = to_pixel<T>(static_cast<float>(map.border));
      continue;
    }
    const T* top = input.row<T>(p.y) + p.x;
    const T* bottom = input.row<T>(p.y + below) + p.x;
    output[i] = to_pixel<T>(blend_float(
        static_cast<float>(top[0]), static_cast<float>(top[right]), static_cast<float>(bottom[0]),
        static_cast<float>(bottom[right]), p.fraction_x, p.fraction_y));
  }
}

}  // namespace patternd
