// Rectification in plain C++: for processors without vectors, and what the vector loops are
// compared with.
#include <cmath>

#include "pipeline/rectify_job.h"

namespace patternd {
namespace {

void window_run(const WindowRun& run, const ImageView& input, std::uint8_t* output) {
  for (std::size_t i = 0; i < kRunLength; ++i) {
    const int x = window_word(run.x0, run.x_slope, run.x_curve, i);
    const int y = window_word(run.y0, run.y_slope, run.y_curve, i);
    const int column = run.base_x + (x >> 12);
    const std::uint8_t* top = input.row<std::uint8_t>(run.base_y + (y >> 15)) + column;
    const std::uint8_t* bottom = top + input.stride_bytes;
    const int fraction = (x & 0xFFF) * 8;
    // The window's last column has no right neighbour and needs none.
    const int right = (x >> 12) < kWindowWidth - 1 ? 1 : 0;
    const int upper = blend_row8(top[0], top[right], fraction);
    const int lower = blend_row8(bottom[0], bottom[right], fraction);
    output[i] = static_cast<std::uint8_t>((upper + mul15(lower - upper, y & 0x7FFF) + 64) >> 7);
  }
}

template <class T>
T cubic_pixel(const T* top, const T* bottom, float fraction_x, float fraction_y) {
  return to_pixel<T>(blend_float(static_cast<float>(top[0]), static_cast<float>(top[1]),
                                 static_cast<float>(bottom[0]), static_cast<float>(bottom[1]),
                                 fraction_x, fraction_y));
}
std::uint8_t cubic_pixel(const std::uint8_t* top, const std::uint8_t* bottom, float fraction_x,
                         float fraction_y) {
  return blend8(top, bottom, fraction15(fraction_x), fraction15(fraction_y));
}

template <class T>
void cubic_run(const CubicRun& run, const ImageView& input, T* output) {
  for (std::size_t i = 0; i < kRunLength; ++i) {
    const float x = cubic_at(run.x, kRunT[i]);
    const float y = cubic_at(run.y, kRunT[i]);
    const int column = static_cast<int>(x);
    const int row = static_cast<int>(y);
    const T* top = input.row<T>(run.base_y + row) + run.base_x + column;
    const T* bottom = input.row<T>(run.base_y + row + 1) + run.base_x + column;
    output[i] =
        cubic_pixel(top, bottom, x - static_cast<float>(column), y - static_cast<float>(row));
  }
}

template <class T>
void segment(const RectifyMap& map, const Segment& s, const ImageView& input,
             const MutableImageView& output) {
  T* out = output.row<T>(s.y) + s.x;
  switch (s.kind) {
    case RunKind::kOutside:
      rectify_outside(map, s, out);
      break;
    case RunKind::kLone:
      rectify_lone(map, s, input, out);
      break;
    case RunKind::kCubic:
    case RunKind::kCubicWindow:
      for (std::size_t i = 0; i < s.count; ++i) {
        cubic_run(map.cubic_runs[s.first + i], input, out + i * kRunLength);
      }
      break;
    case RunKind::kWindow:
      if constexpr (sizeof(T) == 1) {
        for (std::size_t i = 0; i < s.count; ++i) {
          window_run(map.window_runs[s.first + i], input, out + i * kRunLength);
        }
      }
      break;
  }
}

template <class T>
void job_in(const RectifyMap& map, std::size_t index, const ImageView& input,
            const MutableImageView& output) {
  const RectifyJob& job = map.jobs[index];
  const auto segments = [&](const MutableImageView& block) {
    for (std::size_t i = job.first_segment; i < map.end_segment(index); ++i) {
      segment<T>(map, map.segments[i], input, block);
    }
  };
  if (!map.transposed) {
    segments(job_block(job, output));
    return;
  }
  TransposedBlock<T> block(job);
  segments(block.view(map.format));
  block.write(output, [](const T* from, int from_stride, T* to, std::size_t to_stride_bytes) {
    for (int y = 0; y < 8; ++y) {
      T* row = reinterpret_cast<T*>(reinterpret_cast<std::uint8_t*>(to) +
                                    static_cast<std::size_t>(y) * to_stride_bytes);
      for (int x = 0; x < 8; ++x) row[x] = from[x * from_stride + y];
    }
  });
}

}  // namespace

void rectify_job_scalar(const RectifyMap& map, std::size_t job, const ImageView& input,
                        const MutableImageView& output) {
  if (map.format == PixelFormat::kGray8) {
    job_in<std::uint8_t>(map, job, input, output);
  } else if (map.format == PixelFormat::kGray16) {
    job_in<std::uint16_t>(map, job, input, output);
  } else {
    job_in<float>(map, job, input, output);
  }
}

}  // namespace patternd
