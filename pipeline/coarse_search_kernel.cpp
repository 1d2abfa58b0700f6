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

// kBand rows × two vectors of positions: an image load serves four rows, a weight two vectors.
HWY_INLINE void correlate_two_vectors(const BandWeights& band, const std::int32_t* image,
                                      std::ptrdiff_t stride, std::int32_t* out,
                                      std::ptrdiff_t out_stride) {
  const D32 d;
  using V = hn::Vec<D32>;
  const auto lanes = static_cast<std::ptrdiff_t>(hn::Lanes(d));
  const V zero = hn::Zero(d);
  PairSum<V> a0{zero, zero}, a1{zero, zero}, b0{zero, zero}, b1{zero, zero};
  PairSum<V> c0{zero, zero}, c1{zero, zero}, d0{zero, zero}, d1{zero, zero};
  const std::int32_t* weights = band.weights.data();
  for (const WeightSpan& span : band.spans) {
    const std::int32_t* from = image + span.row * stride + span.column;
    for (int i = 0; i < span.pairs; ++i, from += 2, weights += kBand) {
      const V left = hn::LoadU(d, from);
      const V right = hn::LoadU(d, from + lanes);
      const V wa = hn::Set(d, weights[0]);
      const V wb = hn::Set(d, weights[1]);
      const V wc = hn::Set(d, weights[2]);
      const V wd = hn::Set(d, weights[3]);
      multiply_add_pairs(left, wa, a0);
      multiply_add_pairs(right, wa, a1);
      multiply_add_pairs(left, wb, b0);
      multiply_add_pairs(right, wb, b1);
      multiply_add_pairs(left, wc, c0);
      multiply_add_pairs(right, wc, c1);
      multiply_add_pairs(left, wd, d0);
      multiply_add_pairs(right, wd, d1);
    }
  }
  store_pairs(a0, out);
  store_pairs(a1, out + lanes);
  store_pairs(b0, out + out_stride);
  store_pairs(b1, out + out_stride + lanes);
  store_pairs(c0, out + 2 * out_stride);
  store_pairs(c1, out + 2 * out_stride + lanes);
  store_pairs(d0, out + 3 * out_stride);
  store_pairs(d1, out + 3 * out_stride + lanes);
}

// The last block of a row, where two vectors are more than a block.
HWY_INLINE void correlate_one_vector(const BandWeights& band, const std::int32_t* image,
                                     std::ptrdiff_t stride, std::int32_t* out,
                                     std::ptrdiff_t out_stride) {
  const D32 d;
  using V = hn::Vec<D32>;
  const V zero = hn::Zero(d);
  PairSum<V> a{zero, zero}, b{zero, zero}, c{zero, zero}, e{zero, zero};
  const std::int32_t* weights = band.weights.data();
  for (const WeightSpan& span : band.spans) {
    const std::int32_t* from = image + span.row * stride + span.column;
    for (int i = 0; i < span.pairs; ++i, from += 2, weights += kBand) {
      const V pixels = hn::LoadU(d, from);
      multiply_add_pairs(pixels, hn::Set(d, weights[0]), a);
      multiply_add_pairs(pixels, hn::Set(d, weights[1]), b);
      multiply_add_pairs(pixels, hn::Set(d, weights[2]), c);
      multiply_add_pairs(pixels, hn::Set(d, weights[3]), e);
    }
  }
  store_pairs(a, out);
  store_pairs(b, out + out_stride);
  store_pairs(c, out + 2 * out_stride);
  store_pairs(e, out + 3 * out_stride);
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
    correlate_two_vectors(band, row + x, image.stride, out + (x - x_begin), out_stride);
  if (x < x_end) correlate_one_vector(band, row + x, image.stride, out + (x - x_begin), out_stride);
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

}  // namespace

void correlate_band(const BandWeights& band, const CoarseRows& image, int y, int x_begin, int x_end,
                    std::int32_t* out, std::ptrdiff_t out_stride) {
  HWY_DYNAMIC_DISPATCH(correlate_band)(band, image, y, x_begin, x_end, out, out_stride);
}

void correlate_band_reference(const BandWeights& band, const CoarseRows& image, int y, int x_begin,
                              int x_end, std::int32_t* out, std::ptrdiff_t out_stride) {
  const auto low = [](std::int32_t pair) { return static_cast<std::int16_t>(pair & 0xFFFF); };
  const auto high = [](std::int32_t pair) { return static_cast<std::int16_t>(pair >> 16); };
  for (int k = 0; k < kBand; ++k) {
    for (int x = x_begin; x < x_end; ++x) {
      std::int32_t sum = 0;
      const std::int32_t* weights = band.weights.data() + k;
      for (const WeightSpan& span : band.spans) {
        const std::int32_t* from = image.pairs + (y + span.row) * image.stride + x + span.column;
        for (int i = 0; i < span.pairs; ++i, from += 2, weights += kBand)
          sum += low(*from) * low(*weights) + high(*from) * high(*weights);
      }
      out[k * out_stride + x - x_begin] = sum;
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
