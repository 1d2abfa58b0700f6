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

// The job's block of the output. `output` is the whole picture (a map that is not transposed).
[[nodiscard]] inline MutableImageView job_block(const RectifyJob& job,
                                                const MutableImageView& output) {
  return output.crop(job.x, job.y, job.width, job.height);
}

// Memory for one block of a transposed map, filled through view(); write() puts it, transposed,
// into the output.
template <class T>
class TransposedBlock {
 public:
  explicit TransposedBlock(const RectifyJob& job) : job_(job) {}
  [[nodiscard]] MutableImageView view(PixelFormat format) {
    return {reinterpret_cast<std::uint8_t*>(pixels_), job_.width, job_.height,
            kTransposedWidth * sizeof(T), format};
  }
  // `Transpose` does 8×8 pixels: (from, their stride, to, stride in bytes).
  template <class Transpose>
  void write(const MutableImageView& output, Transpose&& transpose) const {
    const int whole_width = job_.width / 8 * 8;
    const int whole_height = job_.height / 8 * 8;
    for (int x = 0; x < whole_width; x += 8) {  // whole lines of the output's cache one by one
      for (int y = 0; y < whole_height; y += 8) {
        transpose(pixels_ + y * kTransposedWidth + x, kTransposedWidth,
                  output.row<T>(job_.x + x) + job_.y + y, output.stride_bytes);
      }
    }
    for (int y = 0; y < job_.height; ++y) {
      for (int x = y < whole_height ? whole_width : 0; x < job_.width; ++x) {
        // The analyzer does not follow what fills the block through view()'s bytes.
        // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign)
        output.row<T>(job_.x + x)[job_.y + y] = pixels_[y * kTransposedWidth + x];
      }
    }
  }

 private:
  const RectifyJob& job_;
  alignas(64) T pixels_[kTransposedWidth * kTransposedHeight];
};

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
