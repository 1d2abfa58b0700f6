#include "pipeline/trace_kernel.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/trace_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef PATTERND_TRACE_KERNEL_TYPES
#define PATTERND_TRACE_KERNEL_TYPES
namespace patternd {
// Samples [begin, end) of rows [first_row, first_row + rows) of a grid.
struct SampleJob {
  const ImageView* image;
  const SamplingGrid* grid;
  int first_row;
  int rows;
  int begin;
  int end;
  float* out;  // of sample (begin, first_row)
  std::ptrdiff_t out_stride;
};
// One row of samples: source coordinates relative to `base`, all of them positive.
struct SampleRow {
  const std::uint8_t* base;
  std::int32_t stride_bytes;
  float x;
  float y;
  float ux;
  float uy;
  float last;  // vectors compute past the row's end; they repeat this sample there
};
struct ShiftSums {
  double product = 0;  // Σ T·W
  double sum = 0;      // Σ M·W
  double square = 0;   // Σ M·W²
};
// The same over the visible samples, with what then depends on the place.
struct PartlySums {
  ShiftSums picture;
  double pixels = 0;          // Σ M·V
  double pattern = 0;         // Σ T·V
  double pattern_square = 0;  // Σ T²·V
};
// Rows of a pattern and of a patch.
struct SumRows {
  const float* values;
  const float* mask;
  std::ptrdiff_t stride;
  const float* patch;
  const float* visible;
  std::ptrdiff_t patch_stride;
  int rows;
  float middle;  // taken off the samples
};
}  // namespace patternd
#endif

HWY_BEFORE_NAMESPACE();
namespace patternd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, kPatchLanes>;
using DI = hn::RebindToSigned<DF>;

// The mean of four neighbours, weighted by where between them the sample lies.
template <class V>
HWY_INLINE V bilinear(V top_left, V top_right, V bottom_left, V bottom_right, V fx, V fy) {
  const V top = hn::MulAdd(fx, hn::Sub(top_right, top_left), top_left);
  const V bottom = hn::MulAdd(fx, hn::Sub(bottom_right, bottom_left), bottom_left);
  return hn::MulAdd(fy, hn::Sub(bottom, top), top);
}

// One 32-bit gather brings both pixels of a row: little-endian machines only, as all of ours are.
template <int kBytesPerPixel>
HWY_INLINE void sample_row(const SampleRow& row, float* out, std::ptrdiff_t count) {
  const DF df;
  const DI di;
  const hn::RebindToUnsigned<DI> du;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(df));
  const auto* base = reinterpret_cast<const std::int32_t*>(row.base);
  const auto* below = reinterpret_cast<const std::int32_t*>(row.base + row.stride_bytes);
  const auto ux = hn::Set(df, row.ux);
  const auto uy = hn::Set(df, row.uy);
  const auto stride = hn::Set(di, row.stride_bytes);
  const auto low = hn::Set(di, kBytesPerPixel == 1 ? 0xFF : 0xFFFF);
  const auto unit = hn::Set(df, kBytesPerPixel == 1 ? 1.0F : 1.0F / 257.0F);
  for (std::ptrdiff_t i = 0; i < count; i += lanes) {
    const auto at = hn::Min(hn::Iota(df, static_cast<float>(i)), hn::Set(df, row.last));
    const auto x = hn::MulAdd(at, ux, hn::Set(df, row.x));
    const auto y = hn::MulAdd(at, uy, hn::Set(df, row.y));
    const auto ix = hn::ConvertTo(di, x);
    const auto iy = hn::ConvertTo(di, y);
    const auto fx = hn::Sub(x, hn::ConvertTo(df, ix));
    const auto fy = hn::Sub(y, hn::ConvertTo(df, iy));
    const auto column = kBytesPerPixel == 1 ? ix : hn::ShiftLeft<1>(ix);
    const auto offset = hn::Add(hn::Mul(iy, stride), column);
    const auto top = hn::GatherOffset(di, base, offset);
    const auto bottom = hn::GatherOffset(di, below, offset);
    const auto second = [&](auto pixels) {
      return hn::And(hn::BitCast(di, hn::ShiftRight<8 * kBytesPerPixel>(hn::BitCast(du, pixels))),
                     low);
    };
    const auto value = bilinear(
        hn::ConvertTo(df, hn::And(top, low)), hn::ConvertTo(df, second(top)),
        hn::ConvertTo(df, hn::And(bottom, low)), hn::ConvertTo(df, second(bottom)), fx, fy);
    hn::StoreU(kBytesPerPixel == 1 ? value : hn::Mul(value, unit), df, out + i);
  }
}

template <int kBytesPerPixel>
HWY_INLINE void sample_rows(const SampleJob& job) {
  const ImageView& image = *job.image;
  const SamplingGrid& grid = *job.grid;
  const double last = job.end - job.begin - 1;
  for (int j = 0; j < job.rows; ++j) {
    const double x = grid.x + (job.first_row + j) * grid.vx + job.begin * grid.ux;
    const double y = grid.y + (job.first_row + j) * grid.vy + job.begin * grid.uy;
    // Relative coordinates stay small, so that floats hold them to 1e-4 pixels.
    const int base_x = static_cast<int>(std::min(x, x + last * grid.ux));
    const int base_y = static_cast<int>(std::min(y, y + last * grid.uy));
    const SampleRow row{image.row_bytes(base_y) + static_cast<std::size_t>(base_x) * kBytesPerPixel,
                        static_cast<std::int32_t>(image.stride_bytes),
                        static_cast<float>(x - base_x),
                        static_cast<float>(y - base_y),
                        static_cast<float>(grid.ux),
                        static_cast<float>(grid.uy),
                        static_cast<float>(last)};
    sample_row<kBytesPerPixel>(row, job.out + j * job.out_stride, job.end - job.begin);
  }
}

void sample_rows_8(const SampleJob& job) { sample_rows<1>(job); }
void sample_rows_16(const SampleJob& job) { sample_rows<2>(job); }

HWY_INLINE double total(hn::Vec<DF> lanes) {
  return static_cast<double>(hn::GetLane(hn::SumOfLanes(DF(), lanes)));
}

// Adds the sums over some rows, kept in float lanes: few enough rows that nothing is lost.
void sum_rows(const SumRows& in, ShiftSums& sums) {
  const DF df;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(df));
  const auto middle = hn::Set(df, in.middle);
  auto product = hn::Zero(df);
  auto sum = hn::Zero(df);
  auto square = hn::Zero(df);
  for (int y = 0; y < in.rows; ++y) {
    const float* values = in.values + y * in.stride;
    const float* mask = in.mask + y * in.stride;
    const float* patch = in.patch + y * in.patch_stride;
    for (std::ptrdiff_t x = 0; x < in.stride; x += lanes) {
      const auto w = hn::Sub(hn::LoadU(df, patch + x), middle);
      const auto mw = hn::Mul(w, hn::LoadU(df, mask + x));
      product = hn::MulAdd(w, hn::LoadU(df, values + x), product);
      sum = hn::Add(sum, mw);
      square = hn::MulAdd(mw, w, square);
    }
  }
  sums.product += total(product);
  sums.sum += total(sum);
  sums.square += total(square);
}

void sum_rows_partly(const SumRows& in, PartlySums& sums) {
  const DF df;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(df));
  const auto middle = hn::Set(df, in.middle);
  auto product = hn::Zero(df);
  auto sum = hn::Zero(df);
  auto square = hn::Zero(df);
  auto pixels = hn::Zero(df);
  auto pattern = hn::Zero(df);
  auto pattern_square = hn::Zero(df);
  for (int y = 0; y < in.rows; ++y) {
    const float* values = in.values + y * in.stride;
    const float* mask = in.mask + y * in.stride;
    const float* patch = in.patch + y * in.patch_stride;
    const float* visible = in.visible + y * in.patch_stride;
    for (std::ptrdiff_t x = 0; x < in.stride; x += lanes) {
      const auto v = hn::LoadU(df, visible + x);
      const auto mv = hn::Mul(v, hn::LoadU(df, mask + x));
      const auto t = hn::LoadU(df, values + x);
      const auto tv = hn::Mul(v, t);
      const auto w = hn::Sub(hn::LoadU(df, patch + x), middle);
      const auto mw = hn::Mul(w, mv);
      product = hn::MulAdd(w, tv, product);
      sum = hn::Add(sum, mw);
      square = hn::MulAdd(mw, w, square);
      pixels = hn::Add(pixels, mv);
      pattern = hn::Add(pattern, tv);
      pattern_square = hn::MulAdd(tv, t, pattern_square);
    }
  }
  sums.picture.product += total(product);
  sums.picture.sum += total(sum);
  sums.picture.square += total(square);
  sums.pixels += total(pixels);
  sums.pattern += total(pattern);
  sums.pattern_square += total(pattern_square);
}

}  // namespace patternd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {
namespace {

HWY_EXPORT(sample_rows_8);
HWY_EXPORT(sample_rows_16);
HWY_EXPORT(sum_rows);
HWY_EXPORT(sum_rows_partly);

// A gather reads four bytes from the left pixel on.
constexpr double kRightReserve = 4;
// Pixels that float lanes sum up before they go into double.
constexpr int kPixelsPerSum = 2048;

double pixel_at(const ImageView& image, int x, int y) {
  return image.format == PixelFormat::kGray8
             ? static_cast<double>(image.row<std::uint8_t>(y)[x])
             : static_cast<double>(image.row<std::uint16_t>(y)[x]) / 257.0;
}

// Calls sum(rows) for a pattern in parts small enough for float lanes.
template <class Sum>
void for_row_parts(const UprightPattern& pattern, const Patch& patch, int dx, int dy, float middle,
                   const Sum& sum) {
  const int rows_at_once =
      std::max(1, kPixelsPerSum / static_cast<int>(std::max<std::ptrdiff_t>(pattern.stride, 1)));
  for (int y = 0; y < pattern.height; y += rows_at_once) {
    const std::ptrdiff_t at = y * pattern.stride;
    const std::ptrdiff_t from = (y + dy) * patch.stride + dx;
    sum(SumRows{pattern.values.data() + at, pattern.mask.data() + at, pattern.stride,
                patch.values + from, patch.visible + from, patch.stride,
                std::min(rows_at_once, pattern.height - y), middle});
  }
}

double ncc(double covariance, double energy, double pattern_energy, double pixels,
           double least_contrast) {
  const double least = std::max(least_contrast * least_contrast, 1e-6) * pixels;
  if (!(energy >= least) || !(pattern_energy > 1e-6 * pixels)) return 0;
  return std::clamp(covariance / std::sqrt(energy * pattern_energy), -1.0, 1.0);
}

// The samples [begin, end) of a row whose four sources lie so far inside that vectors may read
// them. Along a row each coordinate is linear, so they are one interval.
struct Interval {
  int begin = 0;
  int end = 0;
};
// `inverse_step` is 1 / step, or 0 where the coordinate stays the same along the row.
void clip(double start, double inverse_step, double low, double high, Interval& interval) {
  if (inverse_step == 0) {
    if (start < low || start > high) interval.end = interval.begin;
    return;
  }
  double from = (low - start) * inverse_step;
  double to = (high - start) * inverse_step;
  if (from > to) std::swap(from, to);
  const double end = interval.end;
  interval.begin =
      std::max(interval.begin, static_cast<int>(std::ceil(std::clamp(from, -1.0, end))));
  interval.end =
      std::min(interval.end, static_cast<int>(std::floor(std::clamp(to, -1.0, end))) + 1);
  if (interval.end < interval.begin) interval.end = interval.begin;
}
double inverse_of(double step) { return std::abs(step) < 1e-12 ? 0 : 1 / step; }

constexpr double kEdge = 0.01;  // floats may round a coordinate by less
double last_x(const ImageView& image) { return image.width - kRightReserve; }
double last_y(const ImageView& image) { return image.height - 1 - kEdge; }

// May write up to a vector past each row's end.
void sample_stretch(const SampleJob& job) {
  if (job.image->format == PixelFormat::kGray8)
    HWY_DYNAMIC_DISPATCH(sample_rows_8)(job);
  else
    HWY_DYNAMIC_DISPATCH(sample_rows_16)(job);
}

bool is_valid(const ImageView& valid, double x, double y) {
  return valid.data == nullptr ||
         valid.row<std::uint8_t>(static_cast<int>(y + 0.5))[static_cast<int>(x + 0.5)] != 0;
}

// One sample near or outside the picture's edge.
void sample_at_edge(const ImageView& image, const ImageView& valid, double x, double y,
                    float& value, float& visible) {
  value = 0;
  visible = 0;
  if (!(x >= -0.5 && y >= -0.5 && x <= image.width - 0.5 && y <= image.height - 0.5)) return;
  x = std::clamp(x, 0.0, image.width - 1.0);
  y = std::clamp(y, 0.0, image.height - 1.0);
  if (!is_valid(valid, x, y)) return;
  const int x0 = static_cast<int>(x);
  const int y0 = static_cast<int>(y);
  const int x1 = std::min(x0 + 1, image.width - 1);
  const int y1 = std::min(y0 + 1, image.height - 1);
  const double top = pixel_at(image, x0, y0) * (x0 + 1 - x) + pixel_at(image, x1, y0) * (x - x0);
  const double bottom = pixel_at(image, x0, y1) * (x0 + 1 - x) + pixel_at(image, x1, y1) * (x - x0);
  value = static_cast<float>(top * (y0 + 1 - y) + bottom * (y - y0));
  visible = 1;
}

}  // namespace

bool grid_is_inside(const ImageView& image, const SamplingGrid& grid, int width, int height) {
  for (int corner = 0; corner < 4; ++corner) {
    const double i = (corner & 1) != 0 ? width - 1 : 0;
    const double j = (corner & 2) != 0 ? height - 1 : 0;
    const double x = grid.x + i * grid.ux + j * grid.vx;
    const double y = grid.y + i * grid.uy + j * grid.vy;
    if (!(x >= kEdge && y >= kEdge && x <= last_x(image) && y <= last_y(image))) return false;
  }
  return true;
}

void sample_inside(const ImageView& image, const SamplingGrid& grid, const Patch& patch) {
  sample_stretch({&image, &grid, 0, patch.height, 0, patch.width, patch.values, patch.stride});
}

void sample_partly(const ImageView& image, const ImageView& valid, const SamplingGrid& grid,
                   const Patch& patch) {
  const double inverse_ux = inverse_of(grid.ux);
  const double inverse_uy = inverse_of(grid.uy);
  for (int j = 0; j < patch.height; ++j) {
    float* values = patch.values + j * patch.stride;
    float* visible = patch.visible + j * patch.stride;
    const double start_x = grid.x + j * grid.vx;
    const double start_y = grid.y + j * grid.vy;
    Interval inside{0, patch.width};
    clip(start_x, inverse_ux, kEdge, last_x(image), inside);
    clip(start_y, inverse_uy, kEdge, last_y(image), inside);
    const auto at_edge = [&](int begin, int end) {
      for (int i = begin; i < end; ++i) {
        sample_at_edge(image, valid, start_x + i * grid.ux, start_y + i * grid.uy, values[i],
                       visible[i]);
      }
    };
    if (inside.begin < inside.end) {
      sample_stretch(
          {&image, &grid, j, 1, inside.begin, inside.end, values + inside.begin, patch.stride});
    }
    std::fill(visible + inside.begin, visible + inside.end, 1.0F);
    for (int i = inside.begin; i < inside.end && valid.data != nullptr; ++i) {
      if (!is_valid(valid, start_x + i * grid.ux, start_y + i * grid.uy)) visible[i] = 0.0F;
    }
    at_edge(0, inside.begin);
    at_edge(inside.end, patch.width);
    std::fill(values + patch.width, values + patch.stride, 0.0F);
    std::fill(visible + patch.width, visible + patch.stride, 0.0F);
  }
}

namespace {

ShiftSums sums_at(const UprightPattern& pattern, const Patch& patch, int dx, int dy,
                  double middle) {
  ShiftSums sums;
  for_row_parts(pattern, patch, dx, dy, static_cast<float>(middle), [&](const SumRows& rows) {
    HWY_DYNAMIC_DISPATCH(sum_rows)(rows, sums);
  });
  return sums;
}

double score_of(const UprightPattern& pattern, const ShiftSums& sums, double least_contrast) {
  const double energy = sums.square - sums.sum * sums.sum / pattern.pixels;
  return ncc(sums.product, energy, pattern.energy, pattern.pixels, least_contrast);
}

}  // namespace

double score_at(const UprightPattern& pattern, const Patch& patch, int dx, int dy,
                double least_contrast) {
  return score_of(pattern, sums_at(pattern, patch, dx, dy, 128), least_contrast);
}

double score_whole(const UprightPattern& pattern, const Patch& patch, double least_contrast) {
  const double mean = 128 + sums_at(pattern, patch, 0, 0, 128).sum / std::max(pattern.pixels, 1.0);
  return score_of(pattern, sums_at(pattern, patch, 0, 0, mean), least_contrast);
}

double score_partly_at(const UprightPattern& pattern, const Patch& patch, int dx, int dy,
                       double least_contrast, double& visible_pixels, double middle) {
  PartlySums sums;
  for_row_parts(pattern, patch, dx, dy, static_cast<float>(middle), [&](const SumRows& rows) {
    HWY_DYNAMIC_DISPATCH(sum_rows_partly)(rows, sums);
  });
  visible_pixels = sums.pixels;
  if (sums.pixels < 2) return 0;
  const ShiftSums& picture = sums.picture;
  const double energy = picture.square - picture.sum * picture.sum / sums.pixels;
  const double pattern_energy = sums.pattern_square - sums.pattern * sums.pattern / sums.pixels;
  const double covariance = picture.product - sums.pattern * picture.sum / sums.pixels;
  return ncc(covariance, energy, pattern_energy, sums.pixels, least_contrast);
}

double mean_of(const UprightPattern& pattern, const Patch& patch) {
  PartlySums sums;
  for_row_parts(pattern, patch, 0, 0, 128, [&](const SumRows& rows) {
    HWY_DYNAMIC_DISPATCH(sum_rows_partly)(rows, sums);
  });
  return sums.pixels > 0 ? 128 + sums.picture.sum / sums.pixels : 0;
}

}  // namespace patternd
#endif  // HWY_ONCE
