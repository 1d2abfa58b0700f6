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
// One row of samples: source coordinates relative to `base`, all of them positive.
struct SampleRow {
  const std::uint8_t* base;
  std::int32_t stride_bytes;
  float x;
  float y;
  float ux;
  float uy;
};
struct ShiftSums {
  double product = 0;  // Σ T·W
  double sum = 0;      // Σ M·W
  double square = 0;   // Σ M·W²
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
    const auto at = hn::Iota(df, static_cast<float>(i));
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

void sample_row_8(const SampleRow& row, float* out, std::ptrdiff_t count) {
  sample_row<1>(row, out, count);
}
void sample_row_16(const SampleRow& row, float* out, std::ptrdiff_t count) {
  sample_row<2>(row, out, count);
}

// Adds the sums over `rows` rows, kept in float lanes: few enough rows that nothing is lost.
void sum_rows(const float* values, const float* mask, std::ptrdiff_t stride, const float* patch,
              std::ptrdiff_t patch_row, int rows, ShiftSums& sums) {
  const DF df;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(df));
  auto product = hn::Zero(df);
  auto sum = hn::Zero(df);
  auto square = hn::Zero(df);
  for (int y = 0; y < rows; ++y, values += stride, mask += stride, patch += patch_row) {
    for (std::ptrdiff_t x = 0; x < stride; x += lanes) {
      const auto w = hn::LoadU(df, patch + x);
      const auto mw = hn::Mul(w, hn::LoadU(df, mask + x));
      product = hn::MulAdd(w, hn::LoadU(df, values + x), product);
      sum = hn::Add(sum, mw);
      square = hn::MulAdd(mw, w, square);
    }
  }
  sums.product += static_cast<double>(hn::GetLane(hn::SumOfLanes(df, product)));
  sums.sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(df, sum)));
  sums.square += static_cast<double>(hn::GetLane(hn::SumOfLanes(df, square)));
}

}  // namespace patternd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {
namespace {

HWY_EXPORT(sample_row_8);
HWY_EXPORT(sample_row_16);
HWY_EXPORT(sum_rows);

// A gather reads four bytes from the left pixel on.
constexpr double kRightReserve = 4;
// Vectors compute up to this many samples past the patch's width.
constexpr int kSamplesPast = kPatchLanes - 1;
// Pixels that float lanes sum up before they go into double.
constexpr int kPixelsPerSum = 2048;

double mean_of(const float* values, const float* mask, std::ptrdiff_t count) {
  double sum = 0;
  double n = 0;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    sum += static_cast<double>(values[i] * mask[i]);
    n += static_cast<double>(mask[i]);
  }
  return n > 0 ? sum / n : 0;
}

double pixel_at(const ImageView& image, int x, int y) {
  return image.format == PixelFormat::kGray8
             ? static_cast<double>(image.row<std::uint8_t>(y)[x])
             : static_cast<double>(image.row<std::uint16_t>(y)[x]) / 257.0;
}

}  // namespace

bool grid_is_inside(const ImageView& image, const SamplingGrid& grid, int width, int height) {
  for (int corner = 0; corner < 4; ++corner) {
    const double i = (corner & 1) != 0 ? width - 1 + kSamplesPast : 0;
    const double j = (corner & 2) != 0 ? height - 1 : 0;
    const double x = grid.x + i * grid.ux + j * grid.vx;
    const double y = grid.y + i * grid.uy + j * grid.vy;
    if (!(x >= 0.01 && y >= 0.01 && x <= image.width - kRightReserve && y <= image.height - 1.01))
      return false;
  }
  return true;
}

void sample_inside(const ImageView& image, const SamplingGrid& grid, const Patch& patch) {
  const std::ptrdiff_t count = patch_stride(patch.width);
  const std::size_t pixel_bytes = bytes_per_pixel(image.format);
  for (int j = 0; j < patch.height; ++j) {
    const double x = grid.x + j * grid.vx;
    const double y = grid.y + j * grid.vy;
    // Relative coordinates stay small, so that floats hold them to 1e-4 pixels.
    const double last = static_cast<double>(count - 1);
    const int base_x = static_cast<int>(std::min(x, x + last * grid.ux));
    const int base_y = static_cast<int>(std::min(y, y + last * grid.uy));
    const SampleRow row{image.row_bytes(base_y) + static_cast<std::size_t>(base_x) * pixel_bytes,
                        static_cast<std::int32_t>(image.stride_bytes),
                        static_cast<float>(x - base_x),
                        static_cast<float>(y - base_y),
                        static_cast<float>(grid.ux),
                        static_cast<float>(grid.uy)};
    float* out = patch.values + j * patch.stride;
    if (image.format == PixelFormat::kGray8)
      HWY_DYNAMIC_DISPATCH(sample_row_8)(row, out, count);
    else
      HWY_DYNAMIC_DISPATCH(sample_row_16)(row, out, count);
  }
}

void sample_partly(const ImageView& image, const ImageView& valid, const SamplingGrid& grid,
                   const Patch& patch) {
  for (int j = 0; j < patch.height; ++j) {
    float* values = patch.values + j * patch.stride;
    float* visible = patch.visible + j * patch.stride;
    std::fill(values, values + patch.stride, 0.0F);
    std::fill(visible, visible + patch.stride, 0.0F);
    for (int i = 0; i < patch.width; ++i) {
      double x = grid.x + i * grid.ux + j * grid.vx;
      double y = grid.y + i * grid.uy + j * grid.vy;
      if (!(x >= -0.5 && y >= -0.5 && x <= image.width - 0.5 && y <= image.height - 0.5)) continue;
      x = std::clamp(x, 0.0, image.width - 1.0);
      y = std::clamp(y, 0.0, image.height - 1.0);
      if (valid.data != nullptr &&
          valid.row<std::uint8_t>(static_cast<int>(y + 0.5))[static_cast<int>(x + 0.5)] == 0)
        continue;
      const int x0 = static_cast<int>(x);
      const int y0 = static_cast<int>(y);
      const int x1 = std::min(x0 + 1, image.width - 1);
      const int y1 = std::min(y0 + 1, image.height - 1);
      const double top =
          pixel_at(image, x0, y0) * (x0 + 1 - x) + pixel_at(image, x1, y0) * (x - x0);
      const double bottom =
          pixel_at(image, x0, y1) * (x0 + 1 - x) + pixel_at(image, x1, y1) * (x - x0);
      values[i] = static_cast<float>(top * (y0 + 1 - y) + bottom * (y - y0));
      visible[i] = 1.0F;
    }
  }
}

double score_at(const UprightPattern& pattern, const Patch& patch, int dx, int dy,
                double least_contrast) {
  ShiftSums sums;
  const int rows_at_once =
      std::max(1, kPixelsPerSum / static_cast<int>(std::max<std::ptrdiff_t>(pattern.stride, 1)));
  for (int y = 0; y < pattern.height; y += rows_at_once) {
    const std::ptrdiff_t at = y * pattern.stride;
    HWY_DYNAMIC_DISPATCH(sum_rows)
    (pattern.values.data() + at, pattern.mask.data() + at, pattern.stride,
     patch.values + (y + dy) * patch.stride + dx, patch.stride,
     std::min(rows_at_once, pattern.height - y), sums);
  }
  const double energy = sums.square - sums.sum * sums.sum / pattern.pixels;
  const double least = std::max(least_contrast * least_contrast, 1e-6) * pattern.pixels;
  if (!(energy >= least) || !(pattern.energy > 0)) return 0;
  return std::clamp(sums.product / std::sqrt(energy * pattern.energy), -1.0, 1.0);
}

double score_partly_at(const UprightPattern& pattern, const Patch& patch, int dx, int dy,
                       double least_contrast, double& visible_pixels) {
  double n = 0;
  double sum_t = 0;
  double sum_tt = 0;
  double sum_w = 0;
  double sum_ww = 0;
  double sum_tw = 0;
  const double middle = mean_of(patch.values + (patch.height / 2) * patch.stride,
                                patch.visible + (patch.height / 2) * patch.stride, patch.width);
  for (int y = 0; y < pattern.height; ++y) {
    const float* values = patch.values + (y + dy) * patch.stride + dx;
    const float* visible = patch.visible + (y + dy) * patch.stride + dx;
    for (int x = 0; x < pattern.width; ++x) {
      const std::ptrdiff_t i = y * pattern.stride + x;
      if (pattern.mask[static_cast<std::size_t>(i)] == 0.0F || visible[x] == 0.0F) continue;
      const double t = static_cast<double>(pattern.values[static_cast<std::size_t>(i)]);
      const double w = static_cast<double>(values[x]) - middle;
      n += 1;
      sum_t += t;
      sum_tt += t * t;
      sum_w += w;
      sum_ww += w * w;
      sum_tw += t * w;
    }
  }
  visible_pixels = n;
  if (n < 2) return 0;
  const double energy = sum_ww - sum_w * sum_w / n;
  const double pattern_energy = sum_tt - sum_t * sum_t / n;
  const double least = std::max(least_contrast * least_contrast, 1e-6) * n;
  if (!(energy >= least) || !(pattern_energy > 1e-6 * n)) return 0;
  return std::clamp((sum_tw - sum_t * sum_w / n) / std::sqrt(energy * pattern_energy), -1.0, 1.0);
}

}  // namespace patternd
#endif  // HWY_ONCE
