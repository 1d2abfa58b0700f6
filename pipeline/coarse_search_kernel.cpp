#include "pipeline/coarse_search_kernel.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/coarse_search_kernel.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace patternd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Lanes of i32: at most a block.
using D32 = hn::CappedTag<std::int32_t, kBlock>;

#if HWY_TARGET != HWY_SCALAR

// sum.even/odd += products of the i16 halves of each lane. Where one instruction adds both products
// of a lane only `even` is used; elsewhere the two are brought together once, at the end.
template <class V>
struct PairSum {
  V even;
  V odd;
};

template <class V>
HWY_INLINE void multiply_add_pairs(V image, V weight, PairSum<V>& sum) {
  const D32 d32;
  const hn::Repartition<std::int16_t, D32> d16;
  sum.even = hn::ReorderWidenMulAccumulate(d32, hn::BitCast(d16, image), hn::BitCast(d16, weight),
                                           sum.even, sum.odd);
}

template <class V>
HWY_INLINE void store_pairs(const PairSum<V>& sum, std::int32_t* out) {
  hn::StoreU(hn::RearrangeToOddPlusEven(sum.even, sum.odd), D32(), out);
}

// Sums of kBand rows of positions.
template <class V>
struct BandSums {
  PairSum<V> a, b, c, e;
};
template <class V>
HWY_INLINE BandSums<V> no_sums() {
  const V zero = hn::Zero(D32());
  return {{zero, zero}, {zero, zero}, {zero, zero}, {zero, zero}};
}
template <class V>
HWY_INLINE void store_sums(const BandSums<V>& sums, std::int32_t* out, std::ptrdiff_t out_stride) {
  store_pairs(sums.a, out);
  store_pairs(sums.b, out + out_stride);
  store_pairs(sums.c, out + 2 * out_stride);
  store_pairs(sums.e, out + 3 * out_stride);
}

// One row's products: a weight serves both vectors.
template <bool kTwo, class V>
HWY_INLINE void add_row(V left_pixels, V right_pixels, std::int32_t weight, PairSum<V>& left,
                        PairSum<V>& right) {
  const V w = hn::Set(D32(), weight);
  multiply_add_pairs(left_pixels, w, left);
  if constexpr (kTwo) multiply_add_pairs(right_pixels, w, right);
}

// A part's products, of one vector of positions or two: a load of the image serves all rows.
template <bool kTwo, int kFirst, int kRows, class V>
HWY_INLINE void add_part(const BandPart& part, const std::int32_t* image, std::ptrdiff_t stride,
                         BandSums<V>& left, BandSums<V>& right) {
  const D32 d;
  constexpr int kEnd = kFirst + kRows;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const std::int32_t* weights = part.weights.data();
  for (const BandPlace& place : part.places) {
    const std::int32_t* from = image + place.row * stride + place.column;
    const V l = hn::LoadU(d, from);
    const V r = kTwo ? hn::LoadU(d, from + lanes) : l;
    if constexpr (kFirst == 0) add_row<kTwo>(l, r, weights[0], left.a, right.a);
    if constexpr (kFirst <= 1 && kEnd > 1)
      add_row<kTwo>(l, r, weights[1 - kFirst], left.b, right.b);
    if constexpr (kFirst <= 2 && kEnd > 2)
      add_row<kTwo>(l, r, weights[2 - kFirst], left.c, right.c);
    if constexpr (kEnd > 3) add_row<kTwo>(l, r, weights[3 - kFirst], left.e, right.e);
    weights += kRows;
  }
}

template <bool kTwo>
HWY_INLINE void correlate_vectors(const BandWeights& band, const std::int32_t* image,
                                  std::ptrdiff_t stride, std::int32_t* out,
                                  std::ptrdiff_t out_stride) {
  using V = hn::Vec<D32>;
  BandSums<V> left = no_sums<V>();
  BandSums<V> right = no_sums<V>();
  add_part<kTwo, 0, 2>(band.parts[0], image, stride, left, right);
  add_part<kTwo, 2, 2>(band.parts[1], image, stride, left, right);
  add_part<kTwo, 0, 3>(band.parts[2], image, stride, left, right);
  add_part<kTwo, 1, 3>(band.parts[3], image, stride, left, right);
  add_part<kTwo, 0, 4>(band.parts[4], image, stride, left, right);
  store_sums(left, out, out_stride);
  if constexpr (kTwo) store_sums(right, out + hn::Lanes(D32()), out_stride);
}

#endif  // HWY_TARGET != HWY_SCALAR

void correlate_band(const BandWeights& band, const CoarseRows& image, int y, int x_begin, int x_end,
                    std::int32_t* out, std::ptrdiff_t out_stride) {
#if HWY_TARGET == HWY_SCALAR
  correlate_band_reference(band, image, y, x_begin, x_end, out, out_stride);
#else
  const std::int32_t* row = image.pairs + y * image.stride;
  const int two = 2 * static_cast<int>(hn::Lanes(D32()));
  int x = x_begin;
  for (; x + two <= x_end; x += two)
    correlate_vectors<true>(band, row + x, image.stride, out + (x - x_begin), out_stride);
  if (x < x_end)
    correlate_vectors<false>(band, row + x, image.stride, out + (x - x_begin), out_stride);
#endif
}

void sum_windows(const std::vector<MaskRun>& runs, const CoarseRows& image, int x, int y,
                 BlockSums& out) {
  const hn::CappedTag<std::uint32_t, kBlock> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int i = 0; i < kBlock; i += lanes) {
    auto sum = hn::Zero(d);
    auto square = hn::Zero(d);
    for (const MaskRun& run : runs) {
      const std::ptrdiff_t at = (y + run.row) * image.stride + x + i;
      sum = hn::Add(sum, hn::Sub(hn::LoadU(d, image.sums + at + run.end),
                                 hn::LoadU(d, image.sums + at + run.begin)));
      square = hn::Add(square, hn::Sub(hn::LoadU(d, image.squares + at + run.end),
                                       hn::LoadU(d, image.squares + at + run.begin)));
    }
    hn::StoreU(sum, d, out.sum + i);
    hn::StoreU(square, d, out.square + i);
  }
}

void energy_row(const std::vector<MaskRun>& runs, const BlockCounts& complete,
                const BlockCounts* border, const CoarseRows& image, const BlockRow& row,
                float* means, float* roots) {
  const hn::CappedTag<float, kBlock> df;
  const hn::CappedTag<std::int32_t, kBlock> di;
  const hn::RebindToUnsigned<decltype(di)> du;
  BlockSums sums;
  for (int block = 0; block < row.blocks; ++block) {
    const int first = block * kBlock;
    sum_windows(runs, image, row.x + first, row.y, sums);
    const BlockCounts& counts = row.kinds[block] < 0 ? complete : border[row.kinds[block]];
    for (int i = 0; i < kBlock; i += static_cast<int>(hn::Lanes(df))) {
      // Both fit 31 bits (see quantise), so the sign bit is free for the sum's sign.
      const auto sum = hn::ConvertTo(df, hn::BitCast(di, hn::LoadU(du, sums.sum + i)));
      const auto square = hn::ConvertTo(df, hn::BitCast(di, hn::LoadU(du, sums.square + i)));
      const auto mean = hn::Mul(sum, hn::LoadU(df, counts.per_pixel + i));
      const auto energy = hn::Sub(square, hn::Mul(sum, mean));
      hn::StoreU(mean, df, means + first + i);
      hn::StoreU(hn::Sqrt(hn::Max(energy, hn::Set(df, 1e-12F))), df, roots + first + i);
    }
  }
}

void find_passing(const std::int32_t* numerators, const float* means, const float* roots,
                  float least, const BorderBlock* border, bool absolute, const BlockRow& row,
                  std::uint8_t* passes) {
  const hn::CappedTag<float, kBlock> df;
  const hn::CappedTag<std::int32_t, kBlock> di;
  const int lanes = static_cast<int>(hn::Lanes(df));
  const auto least_of_all = hn::Set(df, least);
  for (int block = 0; block < row.blocks; ++block) {
    const std::int32_t kind = row.kinds[block];
    bool any = false;
    for (int i = 0; i < kBlock && kind != kSkip; i += lanes) {
      const int at = block * kBlock + i;
      auto value = hn::ConvertTo(df, hn::LoadU(di, numerators + at));
      auto bound = least_of_all;
      if (kind >= 0) {
        const auto sum = hn::LoadU(df, border[kind].terms.sum + i);
        value = hn::Sub(value, hn::Mul(hn::LoadU(df, means + at), sum));
        bound = hn::LoadU(df, border[kind].least + i);
      }
      if (absolute) value = hn::Abs(value);
      any = any || !hn::AllFalse(df, hn::Gt(value, hn::Mul(bound, hn::LoadU(df, roots + at))));
    }
    passes[block] = any ? 1 : 0;
  }
}

void estimate_block(const std::int32_t* numerators, const BlockSums& sums, const BlockTerms& terms,
                    float* scores) {
  const hn::CappedTag<float, kBlock> df;
  const hn::CappedTag<std::int32_t, kBlock> di;
  const hn::RebindToUnsigned<decltype(di)> du;
  const auto to_float = [&](auto v) { return hn::ConvertTo(df, hn::BitCast(di, v)); };
  for (int i = 0; i < kBlock; i += static_cast<int>(hn::Lanes(df))) {
    const auto n = hn::LoadU(df, terms.pixels + i);
    const auto sum = to_float(hn::LoadU(du, sums.sum + i));
    const auto square = to_float(hn::LoadU(du, sums.square + i));
    const auto energy = hn::Sub(hn::Mul(n, square), hn::Mul(sum, sum));
    const auto product = hn::Sub(hn::Mul(n, hn::ConvertTo(df, hn::LoadU(di, numerators + i))),
                                 hn::Mul(hn::LoadU(df, terms.sum + i), sum));
    const auto flat = hn::Le(energy, hn::Zero(df));
    const auto length = hn::Sqrt(hn::IfThenElse(flat, hn::Set(df, 1.0F), energy));
    const auto score = hn::Div(hn::Mul(product, hn::LoadU(df, terms.inverse_norm + i)), length);
    hn::StoreU(hn::IfThenElse(flat, hn::Zero(df), score), df, scores + i);
  }
}

}  // namespace patternd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {
namespace {

HWY_EXPORT(correlate_band);
HWY_EXPORT(sum_windows);
HWY_EXPORT(energy_row);
HWY_EXPORT(find_passing);
HWY_EXPORT(estimate_block);

static_assert(kBand == 4);
constexpr struct {
  int first;
  int rows;
} kPartRows[kBandParts] = {{0, 2}, {2, 2}, {0, 3}, {1, 3}, {0, 4}};

}  // namespace

BandWeights::BandWeights() {
  for (int i = 0; i < kBandParts; ++i) {
    parts[i].first = kPartRows[i].first;
    parts[i].rows = kPartRows[i].rows;
  }
}

void BandWeights::add(const BandPlace& place, const std::int32_t (&weights)[kBand]) {
  const auto* begin = std::find_if(weights, weights + kBand, [](auto w) { return w != 0; });
  if (begin == weights + kBand) return;
  const int low = static_cast<int>(begin - weights);
  int high = kBand - 1;
  while (weights[high] == 0) --high;
  for (BandPart& part : parts) {
    if (low < part.first || high >= part.first + part.rows) continue;
    part.places.push_back(place);
    part.weights.insert(part.weights.end(), weights + part.first, weights + part.first + part.rows);
    return;
  }
}

void correlate_band(const BandWeights& band, const CoarseRows& image, int y, int x_begin, int x_end,
                    std::int32_t* out, std::ptrdiff_t out_stride) {
  HWY_DYNAMIC_DISPATCH(correlate_band)(band, image, y, x_begin, x_end, out, out_stride);
}

void correlate_band_reference(const BandWeights& band, const CoarseRows& image, int y, int x_begin,
                              int x_end, std::int32_t* out, std::ptrdiff_t out_stride) {
  const auto low = [](std::int32_t pair) { return static_cast<std::int16_t>(pair & 0xFFFF); };
  const auto high = [](std::int32_t pair) { return static_cast<std::int16_t>(pair >> 16); };
  for (int k = 0; k < kBand; ++k) std::fill_n(out + k * out_stride, x_end - x_begin, 0);
  for (const BandPart& part : band.parts) {
    const std::int32_t* weights = part.weights.data();
    for (const BandPlace& place : part.places) {
      for (int k = part.first; k < part.first + part.rows; ++k, ++weights) {
        for (int x = x_begin; x < x_end; ++x) {
          const std::int32_t pixels =
              image.pairs[(y + place.row) * image.stride + x + place.column];
          out[k * out_stride + x - x_begin] +=
              low(pixels) * low(*weights) + high(pixels) * high(*weights);
        }
      }
    }
  }
}

void window_sums(const std::vector<MaskRun>& runs, const CoarseRows& image, int x, int y,
                 BlockSums& out) {
  HWY_DYNAMIC_DISPATCH(sum_windows)(runs, image, x, y, out);
}

void energy_row(const std::vector<MaskRun>& runs, const BlockCounts& complete,
                const BlockCounts* border, const CoarseRows& image, const BlockRow& row,
                float* means, float* roots) {
  HWY_DYNAMIC_DISPATCH(energy_row)(runs, complete, border, image, row, means, roots);
}

void find_passing(const std::int32_t* numerators, const float* means, const float* roots,
                  float least, const BorderBlock* border, bool absolute, const BlockRow& row,
                  std::uint8_t* passes) {
  HWY_DYNAMIC_DISPATCH(find_passing)
  (numerators, means, roots, least, border, absolute, row, passes);
}

void estimate_scores(const std::int32_t* numerators, const BlockSums& sums, const BlockTerms& terms,
                     float* scores) {
  HWY_DYNAMIC_DISPATCH(estimate_block)(numerators, sums, terms, scores);
}

}  // namespace patternd
#endif  // HWY_ONCE
