// Rectification by vectors, written once for every instruction set (Highway).
//
// Windows (8 bit): a run's eight sources lie in 16 bytes of two or three input rows. One byte
// shuffle a row fetches the left neighbours, one the right ones, straight into 16-bit lanes. Wider
// vectors do two or four runs at once, each with a window of its own, since shuffles stay within
// 128-bit blocks.
// Cubics (all formats): positions as cubics in float, then one load a pixel and row of the two
// neighbours together. Reaches everywhere: turned planes, large scales.
#include "pipeline/rectify_job.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/rectify_simd.cpp"
#include <hwy/foreach_target.h>
// Behind foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace patternd {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_SCALAR

void rectify_job_vector(const RectifyMap& map, std::size_t job, const ImageView& input,
                        const MutableImageView& output) {
  rectify_job_scalar(map, job, input, output);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

// Runs that one vector holds.
#if HWY_ARCH_X86 && HWY_TARGET < HWY_AVX2
constexpr std::size_t kBlocks = 4;
#elif HWY_TARGET == HWY_AVX2
constexpr std::size_t kBlocks = 2;
#else
constexpr std::size_t kBlocks = 1;
#endif

template <std::size_t kCount>
using Bytes = hn::FixedTag<std::uint8_t, 16 * kCount>;
template <std::size_t kCount>
using Words = hn::FixedTag<std::int16_t, 8 * kCount>;

using Float4 = hn::FixedTag<float, 4>;
using Int4 = hn::FixedTag<std::int32_t, 4>;
using Word8 = hn::FixedTag<std::int16_t, 8>;

// mul15 of rectify_arithmetic.h.
template <class V>
HWY_INLINE V mul15_lanes(V a, V b) {
#if HWY_MAJOR >= 1
  return hn::MulFixedPoint15(a, b);
#else
  // a·b = high·65536 + low; bits 15 and up, plus bit 14 as the rounding.
  const hn::DFromV<V> d;
  const hn::RebindToUnsigned<decltype(d)> u;
  const auto low = hn::BitCast(u, hn::Mul(a, b));
  const auto carry =
      hn::Add(hn::ShiftRight<15>(low), hn::And(hn::ShiftRight<14>(low), hn::Set(u, 1)));
  return hn::Add(hn::ShiftLeft<1>(hn::MulHigh(a, b)), hn::BitCast(d, carry));
#endif
}

// 16 bytes at p[0], the next block's 16 bytes at p[1], …
template <std::size_t kCount>
HWY_INLINE hn::Vec<Bytes<kCount> > load_blocks(const std::uint8_t* const* p, std::size_t offset) {
  if constexpr (kCount == 1) {
    return hn::LoadU(Bytes<1>(), p[0] + offset);
  } else {
    return hn::Combine(Bytes<kCount>(), load_blocks<kCount / 2>(p + kCount / 2, offset),
                       load_blocks<kCount / 2>(p, offset));
  }
}

// Repeats word `index` of each 128-bit block over the block.
template <std::size_t kCount>
HWY_INLINE hn::Vec<Words<kCount> > repeat_word(hn::Vec<Bytes<kCount> > words, int index) {
  const hn::FixedTag<std::uint16_t, 8 * kCount> d16;
  const auto pattern =
      hn::Set(d16, static_cast<std::uint16_t>((2 * index) | ((2 * index + 1) << 8)));
  return hn::BitCast(Words<kCount>(),
                     hn::TableLookupBytes(words, hn::BitCast(Bytes<kCount>(), pattern)));
}

// What to fetch from a window, and the weight of the right neighbour.
template <std::size_t kCount>
struct Columns {
  hn::Vec<Bytes<kCount> > left;
  hn::Vec<Bytes<kCount> > right;
  hn::Vec<Words<kCount> > fraction;
};

template <std::size_t kCount>
HWY_INLINE hn::Vec<Words<kCount> > blend_row(hn::Vec<Bytes<kCount> > window,
                                             const Columns<kCount>& columns) {
  const Words<kCount> d;
  const auto left = hn::BitCast(d, hn::TableLookupBytesOr0(window, columns.left));
  const auto right = hn::BitCast(d, hn::TableLookupBytesOr0(window, columns.right));
  return hn::Add(hn::ShiftLeft<7>(left),
                 mul15_lanes(hn::ShiftLeft<7>(hn::Sub(right, left)), columns.fraction));
}

template <std::size_t kCount>
HWY_INLINE hn::Vec<Words<kCount> > place(hn::Vec<Bytes<kCount> > words, int first) {
  const Words<kCount> d;
  const auto along = hn::LoadDup128(d, kRunPlace.data());
  const auto square = hn::LoadDup128(d, kRunSquare.data());
  return hn::Add(repeat_word<kCount>(words, first),
                 hn::Add(mul15_lanes(along, repeat_word<kCount>(words, first + 1)),
                         mul15_lanes(square, repeat_word<kCount>(words, first + 2))));
}

// kCount runs at once.
template <std::size_t kCount, bool kThreeRows>
HWY_INLINE void window_runs(const WindowRun* runs, const ImageView& input, std::uint8_t* output) {
  const Words<kCount> d;
  const Bytes<kCount> bytes;
  const hn::RebindToUnsigned<Words<kCount> > u;
  const std::uint8_t* windows[kCount];
  for (std::size_t i = 0; i < kCount; ++i) {
    windows[i] = input.data + runs[i].base_y * static_cast<std::ptrdiff_t>(input.stride_bytes) +
                 runs[i].base_x;
  }
  const auto words = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(runs));
  const auto x = place<kCount>(words, 0);
  const auto y = place<kCount>(words, 3);
  // The high byte 0x80 makes the shuffle give 0 there.
  const auto index = hn::Or(hn::ShiftRight<12>(hn::BitCast(u, x)), hn::Set(u, 0x8000));
  const Columns<kCount> columns{hn::BitCast(bytes, index),
                                hn::BitCast(bytes, hn::Add(index, hn::Set(u, 1))),
                                hn::ShiftLeft<3>(hn::And(x, hn::Set(d, 0xFFF)))};
  auto upper = blend_row<kCount>(load_blocks<kCount>(windows, 0), columns);
  auto lower = blend_row<kCount>(load_blocks<kCount>(windows, input.stride_bytes), columns);
  auto fraction = y;
  if constexpr (kThreeRows) {
    const auto third =
        blend_row<kCount>(load_blocks<kCount>(windows, 2 * input.stride_bytes), columns);
    const auto second = hn::Lt(y, hn::Zero(d));  // Y's top bit: this pixel starts one row further
    upper = hn::IfThenElse(second, lower, upper);
    lower = hn::IfThenElse(second, third, lower);
    fraction = hn::And(y, hn::Set(d, 0x7FFF));
  }
  const auto sum = hn::Add(upper, mul15_lanes(hn::Sub(lower, upper), fraction));
  const auto level = hn::ShiftRight<7>(hn::Add(sum, hn::Set(d, 64)));
  const hn::Rebind<std::uint8_t, Words<kCount> > narrow;
  hn::StoreU(hn::DemoteTo(narrow, level), narrow, output);
}

template <bool kThreeRows>
HWY_NOINLINE void window_segment(const WindowRun* runs, std::size_t count, const ImageView& input,
                                 std::uint8_t* output) {
  std::size_t i = 0;
  for (; i + kBlocks <= count; i += kBlocks) {
    window_runs<kBlocks, kThreeRows>(runs + i, input, output + i * kRunLength);
  }
  for (; i < count; ++i) {
    window_runs<1, kThreeRows>(runs + i, input, output + i * kRunLength);
  }
}

// Four pixels of a cubic run.
struct Places {
  hn::Vec<Float4> fraction_x;
  hn::Vec<Float4> fraction_y;
};

HWY_INLINE hn::Vec<Float4> cubic(const float (&c)[4], hn::Vec<Float4> t) {
  const Float4 d;
  auto value = hn::Set(d, c[3]);
  for (int k = 2; k >= 0; --k) value = hn::Add(hn::Mul(value, t), hn::Set(d, c[k]));
  return value;
}

// Byte offsets of four pixels' sources from the run's base, and their fractions.
HWY_INLINE Places locate(const CubicRun& run, std::size_t first, std::int32_t stride,
                         std::int32_t pixel_bytes, std::int32_t* offsets) {
  const Float4 d;
  const Int4 i32;
  const auto t = hn::LoadU(d, kRunT.data() + first);
  const auto x = cubic(run.x, t);
  const auto y = cubic(run.y, t);
  const auto column = hn::ConvertTo(i32, x);
  const auto row = hn::ConvertTo(i32, y);
  hn::StoreU(
      hn::Add(hn::Mul(row, hn::Set(i32, stride)), hn::Mul(column, hn::Set(i32, pixel_bytes))), i32,
      offsets);
  return {hn::Sub(x, hn::ConvertTo(d, column)), hn::Sub(y, hn::ConvertTo(d, row))};
}

// The two neighbours of four pixels in one row.
struct Neighbours {
  hn::Vec<Float4> left;
  hn::Vec<Float4> right;
};

HWY_INLINE Neighbours load_pairs(const float*, const std::uint8_t* row,
                                 const std::int32_t* offsets) {
  const hn::FixedTag<float, 2> pair;
  const Float4 d;
  const auto load = [&](int i) {
    return hn::LoadU(pair, reinterpret_cast<const float*>(row + offsets[i]));
  };
  const auto low = hn::Combine(d, load(1), load(0));
  const auto high = hn::Combine(d, load(3), load(2));
  return {hn::ConcatEven(d, high, low), hn::ConcatOdd(d, high, low)};
}

HWY_INLINE Neighbours load_pairs(const std::uint16_t*, const std::uint8_t* row,
                                 const std::int32_t* offsets) {
  const hn::FixedTag<std::uint32_t, 1> one;
  const hn::FixedTag<std::uint32_t, 2> two;
  const hn::FixedTag<std::uint32_t, 4> four;
  const auto load = [&](int i) {
    return hn::BitCast(one, hn::LoadU(hn::FixedTag<std::uint8_t, 4>(), row + offsets[i]));
  };
  const auto pairs =
      hn::Combine(four, hn::Combine(two, load(3), load(2)), hn::Combine(two, load(1), load(0)));
  const Int4 i32;
  const Float4 d;
  return {hn::ConvertTo(d, hn::BitCast(i32, hn::And(pairs, hn::Set(four, 0xFFFF)))),
          hn::ConvertTo(d, hn::BitCast(i32, hn::ShiftRight<16>(pairs)))};
}

HWY_INLINE void store_pixels(hn::Vec<Float4> value, float* output) {
  hn::StoreU(value, Float4(), output);
}
HWY_INLINE void store_pixels(hn::Vec<Float4> value, std::uint16_t* output) {
  const hn::FixedTag<std::uint16_t, 4> narrow;
  const auto rounded = hn::ConvertTo(Int4(), hn::Add(value, hn::Set(Float4(), 0.5F)));
  hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, output);
}

// 16 bit and float.
template <class T>
HWY_INLINE void cubic_run(const CubicRun& run, const ImageView& input, T* output) {
  alignas(16) std::int32_t offsets[4];
  const std::uint8_t* base = input.data +
                             run.base_y * static_cast<std::ptrdiff_t>(input.stride_bytes) +
                             run.base_x * static_cast<std::ptrdiff_t>(sizeof(T));
  for (std::size_t first = 0; first < kRunLength; first += 4) {
    const Places places = locate(run, first, static_cast<std::int32_t>(input.stride_bytes),
                                 static_cast<std::int32_t>(sizeof(T)), offsets);
    const Neighbours top = load_pairs(output, base, offsets);
    const Neighbours bottom = load_pairs(output, base + input.stride_bytes, offsets);
    const auto upper = hn::Add(top.left, hn::Mul(hn::Sub(top.right, top.left), places.fraction_x));
    const auto lower =
        hn::Add(bottom.left, hn::Mul(hn::Sub(bottom.right, bottom.left), places.fraction_x));
    store_pixels(hn::Add(upper, hn::Mul(hn::Sub(lower, upper), places.fraction_y)), output + first);
  }
}

// Eight pairs of bytes of one row, blended.
HWY_INLINE hn::Vec<Word8> blend_pairs(const std::uint8_t* row, const std::int32_t* offsets,
                                      hn::Vec<Word8> fraction) {
  alignas(16) std::uint16_t pairs[8];
  for (int i = 0; i < 8; ++i) {
    std::uint16_t pair;
    __builtin_memcpy(&pair, row + offsets[i], sizeof pair);
    pairs[i] = pair;
  }
  const hn::FixedTag<std::uint16_t, 8> u;
  const Word8 d;
  const auto both = hn::Load(u, pairs);
  const auto left = hn::BitCast(d, hn::And(both, hn::Set(u, 0xFF)));
  const auto right = hn::BitCast(d, hn::ShiftRight<8>(both));
  return hn::Add(hn::ShiftLeft<7>(left),
                 mul15_lanes(hn::ShiftLeft<7>(hn::Sub(right, left)), fraction));
}

// fraction15 of rectify_arithmetic.h, of two times four lanes.
HWY_INLINE hn::Vec<Word8> fractions15(hn::Vec<Float4> low, hn::Vec<Float4> high) {
  const Word8 d;
  const hn::Half<Word8> half;
  const auto scale = hn::Set(Float4(), 32768.0F);
  return hn::Combine(d, hn::DemoteTo(half, hn::ConvertTo(Int4(), hn::Mul(high, scale))),
                     hn::DemoteTo(half, hn::ConvertTo(Int4(), hn::Mul(low, scale))));
}

HWY_INLINE void cubic_run(const CubicRun& run, const ImageView& input, std::uint8_t* output) {
  alignas(16) std::int32_t offsets[8];
  const auto stride = static_cast<std::int32_t>(input.stride_bytes);
  const std::uint8_t* base =
      input.data + run.base_y * static_cast<std::ptrdiff_t>(input.stride_bytes) + run.base_x;
  const Places low = locate(run, 0, stride, 1, offsets);
  const Places high = locate(run, 4, stride, 1, offsets + 4);
  const auto fraction_x = fractions15(low.fraction_x, high.fraction_x);
  const auto fraction_y = fractions15(low.fraction_y, high.fraction_y);
  const auto upper = blend_pairs(base, offsets, fraction_x);
  const auto lower = blend_pairs(base + input.stride_bytes, offsets, fraction_x);
  const auto sum = hn::Add(upper, mul15_lanes(hn::Sub(lower, upper), fraction_y));
  const auto level = hn::ShiftRight<7>(hn::Add(sum, hn::Set(Word8(), 64)));
  const hn::FixedTag<std::uint8_t, 8> narrow;
  hn::StoreU(hn::DemoteTo(narrow, level), narrow, output);
}

template <class T>
HWY_NOINLINE void cubic_segment(const CubicRun* runs, std::size_t count, const ImageView& input,
                                T* output) {
  for (std::size_t i = 0; i < count; ++i) cubic_run(runs[i], input, output + i * kRunLength);
}

template <class T>
void rectify_segments(const RectifyMap& map, std::size_t job, const ImageView& input,
                      const MutableImageView& output) {
  for (std::size_t i = map.job_starts[job]; i < map.job_starts[job + 1]; ++i) {
    const Segment& segment = map.segments[i];
    T* out = output.row<T>(segment.y) + segment.x;
    switch (segment.kind) {
      case RunKind::kOutside:
        rectify_outside(map, segment, out);
        break;
      case RunKind::kLone:
        rectify_lone(map, segment, input, out);
        break;
      case RunKind::kCubic:
        cubic_segment(map.cubic_runs.data() + segment.first, segment.count, input, out);
        break;
      case RunKind::kTwoRows:
      case RunKind::kThreeRows:
        if constexpr (sizeof(T) == 1) {
          const WindowRun* runs = map.window_runs.data() + segment.first;
          if (segment.kind == RunKind::kTwoRows) {
            window_segment<false>(runs, segment.count, input, out);
          } else {
            window_segment<true>(runs, segment.count, input, out);
          }
        }
        break;
    }
  }
}

void rectify_job_vector(const RectifyMap& map, std::size_t job, const ImageView& input,
                        const MutableImageView& output) {
  if (map.format == PixelFormat::kGray8) {
    rectify_segments<std::uint8_t>(map, job, input, output);
  } else if (map.format == PixelFormat::kGray16) {
    rectify_segments<std::uint16_t>(map, job, input, output);
  } else {
    rectify_segments<float>(map, job, input, output);
  }
}
#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace HWY_NAMESPACE
}  // namespace patternd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {

HWY_EXPORT(rectify_job_vector);

void rectify_job(const RectifyMap& map, std::size_t job, const ImageView& input,
                 const MutableImageView& output) {
  if (input.stride_bytes > kMaxVectorStride) {
    rectify_job_scalar(map, job, input, output);
    return;
  }
  HWY_DYNAMIC_DISPATCH(rectify_job_vector)(map, job, input, output);
}

}  // namespace patternd
#endif  // HWY_ONCE
