#include "pipeline/cubic_sampling.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/cubic_sampling.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef PATTERND_CUBIC_SAMPLING_TYPES
#define PATTERND_CUBIC_SAMPLING_TYPES
namespace patternd {
// A stretch of a row: coordinates relative to pixel (1, 1) from `base` on, all of them positive.
struct CubicRow {
  const std::uint8_t* base;
  std::int32_t stride_bytes;
  float x;
  float y;
  float ux;
  float uy;
  float last;  // vectors compute past the stretch's end; they repeat this sample there
};
}  // namespace patternd
#endif

HWY_BEFORE_NAMESPACE();
namespace patternd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, kPatchLanes>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;

template <class V>
struct Weights {
  V before, left, right, after;
};

template <class V>
HWY_INLINE Weights<V> weights_at(V t) {
  const DF df;
  const V low = hn::Add(t, hn::Set(df, 1.0F));
  const V high = hn::Sub(t, hn::Set(df, 1.0F));
  const V far = hn::Sub(t, hn::Set(df, 2.0F));
  const V inner = hn::Mul(hn::Set(df, 0.5F), hn::Mul(low, far));
  const V outer = hn::Mul(hn::Set(df, 1.0F / 6.0F), hn::Mul(t, high));
  return {hn::Neg(hn::Mul(outer, far)), hn::Mul(inner, high), hn::Neg(hn::Mul(inner, t)),
          hn::Mul(outer, low)};
}

// The weighted sum of the four pixels of a row that start `offset` bytes on: one gather of 32 bits
// (two for 16-bit pixels). Little-endian machines only, as all of ours are.
template <int kBytesPerPixel, class V, class I>
HWY_INLINE V across(const std::uint8_t* row, I offset, const Weights<V>& w) {
  const DF df;
  const DI di;
  const DU du;
  const auto gather = [&](const std::uint8_t* base) {
    return hn::BitCast(du,
                       hn::GatherOffset(di, reinterpret_cast<const std::int32_t*>(base), offset));
  };
  const auto grey = [&](auto pixels) { return hn::ConvertTo(df, hn::BitCast(di, pixels)); };
  const auto four = gather(row);
  if (kBytesPerPixel == 1) {
    const auto byte = hn::Set(du, 0xFFU);
    V sum = hn::Mul(w.before, grey(hn::And(four, byte)));
    sum = hn::MulAdd(w.left, grey(hn::And(hn::ShiftRight<8>(four), byte)), sum);
    sum = hn::MulAdd(w.right, grey(hn::And(hn::ShiftRight<16>(four), byte)), sum);
    return hn::MulAdd(w.after, grey(hn::ShiftRight<24>(four)), sum);
  }
  const auto low = hn::Set(du, 0xFFFFU);
  const auto last_two = gather(row + 4);
  V sum = hn::Mul(w.before, grey(hn::And(four, low)));
  sum = hn::MulAdd(w.left, grey(hn::ShiftRight<16>(four)), sum);
  sum = hn::MulAdd(w.right, grey(hn::And(last_two, low)), sum);
  return hn::MulAdd(w.after, grey(hn::ShiftRight<16>(last_two)), sum);
}

template <int kBytesPerPixel>
HWY_INLINE void sample_row(const CubicRow& row, float* out, std::ptrdiff_t count) {
  const DF df;
  const DI di;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(df));
  const auto stride = hn::Set(di, row.stride_bytes);
  const auto unit = hn::Set(df, kBytesPerPixel == 1 ? 1.0F : 1.0F / 257.0F);
  for (std::ptrdiff_t i = 0; i < count; i += lanes) {
    const auto at = hn::Min(hn::Iota(df, static_cast<float>(i)), hn::Set(df, row.last));
    const auto x = hn::MulAdd(at, hn::Set(df, row.ux), hn::Set(df, row.x));
    const auto y = hn::MulAdd(at, hn::Set(df, row.uy), hn::Set(df, row.y));
    const auto ix = hn::ConvertTo(di, x);
    const auto iy = hn::ConvertTo(di, y);
    const auto columns = weights_at(hn::Sub(x, hn::ConvertTo(df, ix)));
    const auto rows = weights_at(hn::Sub(y, hn::ConvertTo(df, iy)));
    const auto column = kBytesPerPixel == 1 ? ix : hn::ShiftLeft<1>(ix);
    const auto offset = hn::Add(hn::Mul(iy, stride), column);
    const auto line = [&](std::ptrdiff_t j) {
      return across<kBytesPerPixel>(row.base + j * row.stride_bytes, offset, columns);
    };
    auto value = hn::Mul(rows.before, line(0));
    value = hn::MulAdd(rows.left, line(1), value);
    value = hn::MulAdd(rows.right, line(2), value);
    value = hn::MulAdd(rows.after, line(3), value);
    hn::StoreU(hn::Mul(value, unit), df, out + i);
  }
}

void sample_row_8(const CubicRow& row, float* out, std::ptrdiff_t count) {
  sample_row<1>(row, out, count);
}
void sample_row_16(const CubicRow& row, float* out, std::ptrdiff_t count) {
  sample_row<2>(row, out, count);
}

}  // namespace patternd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {
namespace {

HWY_EXPORT(sample_row_8);
HWY_EXPORT(sample_row_16);

constexpr double kEdge = 0.01;  // floats may round a coordinate by less

// Narrows [begin, end) to where start + i·step lies within [low, high].
void clip(double start, double step, double low, double high, int& begin, int& end) {
  if (std::abs(step) < 1e-12) {
    if (start < low || start > high) end = begin;
    return;
  }
  double from = (low - start) / step;
  double to = (high - start) / step;
  if (from > to) std::swap(from, to);
  // Nearly level rows put these far away.
  const double last = end + 1.0;
  begin = std::max(begin, static_cast<int>(std::ceil(std::clamp(from, -1.0, last))));
  end =
      std::max(begin, std::min(end, static_cast<int>(std::floor(std::clamp(to, -1.0, last))) + 1));
}

// Samples [begin, end) of row j, whose pixels all exist.
void sample_stretch(const ImageView& image, const SamplingGrid& grid, int j, int begin, int end,
                    const Patch& patch) {
  const double x = grid.x + j * grid.vx + begin * grid.ux;
  const double y = grid.y + j * grid.vy + begin * grid.uy;
  const double last = end - begin - 1;
  // Relative coordinates stay small, so that floats hold them to 1e-4 pixels.
  const int base_x = static_cast<int>(std::min(x, x + last * grid.ux));
  const int base_y = static_cast<int>(std::min(y, y + last * grid.uy));
  const CubicRow row{image.row_bytes(base_y - 1) +
                         static_cast<std::size_t>(base_x - 1) * bytes_per_pixel(image.format),
                     static_cast<std::int32_t>(image.stride_bytes),
                     static_cast<float>(x - base_x),
                     static_cast<float>(y - base_y),
                     static_cast<float>(grid.ux),
                     static_cast<float>(grid.uy),
                     static_cast<float>(last)};
  float* out = patch.values + j * patch.stride;
  // A vector may write past the end: what stands there comes back.
  std::array<float, kPatchLanes> after{};
  std::copy_n(out + end, after.size(), after.begin());
  if (image.format == PixelFormat::kGray8)
    HWY_DYNAMIC_DISPATCH(sample_row_8)(row, out + begin, end - begin);
  else
    HWY_DYNAMIC_DISPATCH(sample_row_16)(row, out + begin, end - begin);
  std::copy_n(after.begin(), after.size(), out + end);
}

}  // namespace

std::array<double, 4> cubic_weights(double t) {
  const double inner = (t + 1) * (t - 2) / 2;
  const double outer = t * (t - 1) / 6;
  return {-outer * (t - 2), inner * (t - 1), -inner * t, outer * (t + 1)};
}

void sample_cubic(const ImageView& image, const SamplingGrid& grid, const Patch& patch) {
  const double first = 1 + kEdge;
  for (int j = 0; j < patch.height; ++j) {
    int begin = 0;
    int end = patch.width;
    clip(grid.x + j * grid.vx, grid.ux, first, image.width - 2 - kEdge, begin, end);
    clip(grid.y + j * grid.vy, grid.uy, first, image.height - 2 - kEdge, begin, end);
    if (begin < end) sample_stretch(image, grid, j, begin, end, patch);
  }
}

}  // namespace patternd
#endif  // HWY_ONCE
