// Rectification by vectors, written once for every instruction set (Highway).
//
// Windows (8 bit): a run's eight sources lie in 16 bytes of two or three input rows. One byte
// shuffle a row fetches the left neighbours, one the right ones, straight into 16-bit lanes. Wider
// vectors do two or four runs at once, each with a window of its own, since shuffles stay within
// 128-bit blocks.
// Cubics (all formats): positions as cubics in float, then one load a pixel and row of the two
// neighbours together. Reaches everywhere: turned planes, large scales.
#include <hwy/detect_targets.h>

#include "pipeline/rectify_job.h"

// Vectors of a size unknown when compiling cannot be members of a struct; NEON serves those
// processors too.
#ifdef HWY_SVE_256
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
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

// 16 bytes at window(first), the next block's 16 bytes at window(first + 1), …
template <std::size_t kCount, class Window>
HWY_INLINE hn::Vec<Bytes<kCount> > load_blocks(const Window& window, std::ptrdiff_t offset,
                                               std::size_t first = 0) {
  if constexpr (kCount == 1) {
    return hn::LoadU(Bytes<1>(), window(first) + offset);
  } else {
    return hn::Combine(Bytes<kCount>(), load_blocks<kCount / 2>(window, offset, first + kCount / 2),
                       load_blocks<kCount / 2>(window, offset, first));
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
template <std::size_t kCount>
HWY_INLINE void window_runs(const WindowRun* runs, const ImageView& input, std::uint8_t* output) {
  const Words<kCount> d;
  const Bytes<kCount> bytes;
  const hn::RebindToUnsigned<Words<kCount> > u;
  const auto stride = static_cast<std::ptrdiff_t>(input.stride_bytes);
  const auto window = [&](std::size_t run) {
    return input.data + runs[run].base_y * stride + runs[run].base_x;
  };
  const auto words = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(runs));
  const auto x = place<kCount>(words, 0);
  const auto y = place<kCount>(words, 3);
  // The high byte 0x80 makes the shuffle give 0 there.
  const auto index = hn::Or(hn::ShiftRight<12>(hn::BitCast(u, x)), hn::Set(u, 0x8000));
  const Columns<kCount> columns{hn::BitCast(bytes, index),
                                hn::BitCast(bytes, hn::Add(index, hn::Set(u, 1))),
                                hn::ShiftLeft<3>(hn::And(x, hn::Set(d, 0xFFF)))};
  auto upper = blend_row<kCount>(load_blocks<kCount>(window, 0), columns);
  auto lower = blend_row<kCount>(load_blocks<kCount>(window, stride), columns);
  auto fraction = y;
  // Y's top bit: the pixel starts one row further down. Few runs have one.
  const auto second = hn::Lt(y, hn::Zero(d));
  if (!hn::AllFalse(d, second)) {
    const auto third = blend_row<kCount>(load_blocks<kCount>(window, 2 * stride), columns);
    upper = hn::IfThenElse(second, lower, upper);
    lower = hn::IfThenElse(second, third, lower);
    fraction = hn::And(y, hn::Set(d, 0x7FFF));
  }
  const auto sum = hn::Add(upper, mul15_lanes(hn::Sub(lower, upper), fraction));
  const auto level = hn::ShiftRight<7>(hn::Add(sum, hn::Set(d, 64)));
  const hn::Rebind<std::uint8_t, Words<kCount> > narrow;
  hn::StoreU(hn::DemoteTo(narrow, level), narrow, output);
}

HWY_NOINLINE void window_segment(const WindowRun* runs, std::size_t count, const ImageView& input,
                                 std::uint8_t* output) {
  std::size_t i = 0;
  for (; i + kBlocks <= count; i += kBlocks) {
    window_runs<kBlocks>(runs + i, input, output + i * kRunLength);
  }
  for (; i < count; ++i) window_runs<1>(runs + i, input, output + i * kRunLength);
}

// Positions of cubic runs are computed in as many lanes at a time as there are, up to a run's
// eight.
using Floats = hn::CappedTag<float, kRunLength>;
using Ints = hn::RebindToSigned<Floats>;
constexpr std::size_t kLanes = HWY_MIN(kRunLength, HWY_LANES(float));

// Where some pixels of a run have their sources, from the run's base on.
struct Places {
  hn::Vec<Ints> column;
  hn::Vec<Ints> row;
  hn::Vec<Floats> fraction_x;
  hn::Vec<Floats> fraction_y;
};

HWY_INLINE hn::Vec<Floats> cubic(const float (&c)[4], hn::Vec<Floats> t) {
  const Floats d;
  auto value = hn::Set(d, c[3]);
  for (int k = 2; k >= 0; --k) value = hn::Add(hn::Mul(value, t), hn::Set(d, c[k]));
  return value;
}

HWY_INLINE Places locate(const CubicRun& run, std::size_t first) {
  const Floats d;
  const Ints ints;
  const auto t = hn::LoadU(d, kRunT.data() + first);
  const auto x = cubic(run.x, t);
  const auto y = cubic(run.y, t);
  const auto column = hn::ConvertTo(ints, x);
  const auto row = hn::ConvertTo(ints, y);
  return {column, row, hn::Sub(x, hn::ConvertTo(d, column)), hn::Sub(y, hn::ConvertTo(d, row))};
}

HWY_INLINE const std::uint8_t* run_base(const CubicRun& run, const ImageView& input,
                                        std::size_t pixel_bytes) {
  return input.data + run.base_y * static_cast<std::ptrdiff_t>(input.stride_bytes) +
         run.base_x * static_cast<std::ptrdiff_t>(pixel_bytes);
}

HWY_INLINE void store_offsets(const Places& places, std::size_t stride, std::size_t pixel_bytes,
                              std::int32_t* offsets) {
  const Ints ints;
  hn::StoreU(hn::Add(hn::Mul(places.row, hn::Set(ints, static_cast<std::int32_t>(stride))),
                     hn::Mul(places.column, hn::Set(ints, static_cast<std::int32_t>(pixel_bytes)))),
             ints, offsets);
}

// a + (b − a)·fraction
template <class V>
HWY_INLINE V blend(V a, V b, V fraction) {
  return hn::Add(a, hn::Mul(hn::Sub(b, a), fraction));
}

HWY_INLINE void store_pixels(hn::Vec<Floats> value, float* output) {
  hn::StoreU(value, Floats(), output);
}
HWY_INLINE void store_pixels(hn::Vec<Floats> value, std::uint16_t* output) {
  const hn::Rebind<std::uint16_t, Floats> narrow;
  const auto rounded = hn::ConvertTo(Ints(), hn::Add(value, hn::Set(Floats(), 0.5F)));
  hn::StoreU(hn::DemoteTo(narrow, rounded), narrow, output);
}

// The two neighbours of some pixels in one row.
struct Neighbours {
  hn::Vec<Floats> left;
  hn::Vec<Floats> right;
};

HWY_INLINE hn::Vec<Floats> blend_neighbours(const Neighbours& n, hn::Vec<Floats> fraction) {
  return blend(n.left, n.right, fraction);
}

// --- Sources anywhere: one load a pixel and row.

using Float4 = hn::FixedTag<float, 4>;
using Int4 = hn::FixedTag<std::int32_t, 4>;
using Uint4 = hn::FixedTag<std::uint32_t, 4>;

// Four bytes at each of four offsets.
HWY_INLINE hn::Vec<Uint4> load_quads(const std::uint8_t* row, const std::int32_t* offsets) {
  const hn::FixedTag<std::uint32_t, 1> one;
  const hn::FixedTag<std::uint32_t, 2> two;
  const auto load = [&](int i) {
    return hn::BitCast(one, hn::LoadU(hn::FixedTag<std::uint8_t, 4>(), row + offsets[i]));
  };
  return hn::Combine(Uint4(), hn::Combine(two, load(3), load(2)),
                     hn::Combine(two, load(1), load(0)));
}

struct Neighbours4 {
  hn::Vec<Float4> left;
  hn::Vec<Float4> right;
};

HWY_INLINE Neighbours4 load_pairs(const float*, const std::uint8_t* row,
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

HWY_INLINE Neighbours4 load_pairs(const std::uint16_t*, const std::uint8_t* row,
                                  const std::int32_t* offsets) {
  const auto pairs = load_quads(row, offsets);
  const Int4 ints;
  const Float4 d;
  return {hn::ConvertTo(d, hn::BitCast(ints, hn::And(pairs, hn::Set(Uint4(), 0xFFFF)))),
          hn::ConvertTo(d, hn::BitCast(ints, hn::ShiftRight<16>(pairs)))};
}

// All lanes' neighbours.
template <class T>
HWY_INLINE Neighbours load_neighbours(const std::uint8_t* row, const std::int32_t* offsets) {
  const T* kind = nullptr;
  const Neighbours4 low = load_pairs(kind, row, offsets);
#if HWY_MAX_BYTES >= 32
  const Neighbours4 high = load_pairs(kind, row, offsets + 4);
  return {hn::Combine(Floats(), high.left, low.left), hn::Combine(Floats(), high.right, low.right)};
#else
  return {low.left, low.right};
#endif
}

template <class T>
HWY_INLINE void scattered_run(const CubicRun& run, const ImageView& input, T* output) {
  alignas(32) std::int32_t offsets[kLanes];
  const std::uint8_t* base = run_base(run, input, sizeof(T));
  for (std::size_t first = 0; first < kRunLength; first += kLanes) {
    const Places places = locate(run, first);
    store_offsets(places, input.stride_bytes, sizeof(T), offsets);
    const auto upper = blend_neighbours(load_neighbours<T>(base, offsets), places.fraction_x);
    const auto lower =
        blend_neighbours(load_neighbours<T>(base + input.stride_bytes, offsets), places.fraction_x);
    store_pixels(blend(upper, lower, places.fraction_y), output + first);
  }
}

// Two times four 32-bit lanes as eight 16-bit ones.
HWY_INLINE hn::Vec<Words<1> > narrowed(hn::Vec<Int4> low, hn::Vec<Int4> high) {
  const hn::Half<Words<1> > half;
  return hn::Combine(Words<1>(), hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// Eight pairs of bytes of one row, blended.
HWY_INLINE hn::Vec<Words<1> > blend_bytes(const std::uint8_t* row, const std::int32_t* offsets,
                                          hn::Vec<Words<1> > fraction) {
  const Int4 ints;
  const auto low = load_quads(row, offsets);
  const auto high = load_quads(row, offsets + 4);
  const auto byte = hn::Set(Uint4(), 0xFF);
  const auto left =
      narrowed(hn::BitCast(ints, hn::And(low, byte)), hn::BitCast(ints, hn::And(high, byte)));
  const auto right = narrowed(hn::BitCast(ints, hn::And(hn::ShiftRight<8>(low), byte)),
                              hn::BitCast(ints, hn::And(hn::ShiftRight<8>(high), byte)));
  return hn::Add(hn::ShiftLeft<7>(left),
                 mul15_lanes(hn::ShiftLeft<7>(hn::Sub(right, left)), fraction));
}

HWY_INLINE void store_fractions(hn::Vec<Floats> fraction, std::int16_t* words) {
  const hn::Rebind<std::int16_t, Floats> narrow;
  const auto scaled = hn::Mul(fraction, hn::Set(Floats(), 32768.0F));
  hn::StoreU(hn::DemoteTo(narrow, hn::ConvertTo(Ints(), scaled)), narrow, words);
}

HWY_INLINE void scattered_run(const CubicRun& run, const ImageView& input, std::uint8_t* output) {
  const Words<1> d;
  alignas(32) std::int32_t offsets[kRunLength];
  alignas(16) std::int16_t fractions_x[kRunLength];
  alignas(16) std::int16_t fractions_y[kRunLength];
  for (std::size_t first = 0; first < kRunLength; first += kLanes) {
    const Places places = locate(run, first);
    store_offsets(places, input.stride_bytes, 1, offsets + first);
    store_fractions(places.fraction_x, fractions_x + first);
    store_fractions(places.fraction_y, fractions_y + first);
  }
  const std::uint8_t* base = run_base(run, input, 1);
  const auto fraction_x = hn::Load(d, fractions_x);
  const auto upper = blend_bytes(base, offsets, fraction_x);
  const auto lower = blend_bytes(base + input.stride_bytes, offsets, fraction_x);
  const auto sum = hn::Add(upper, mul15_lanes(hn::Sub(lower, upper), hn::Load(d, fractions_y)));
  const auto level = hn::ShiftRight<7>(hn::Add(sum, hn::Set(d, 64)));
  const hn::FixedTag<std::uint8_t, 8> narrow;
  hn::StoreU(hn::DemoteTo(narrow, level), narrow, output);
}

// --- Sources within a window of 16 pixels, 16 bit and float: permutations of whole registers.

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// A row's window as floats, in one register or two.
using WindowFloats = hn::FixedTag<float, HWY_TARGET == HWY_AVX2 ? 8 : 16>;

HWY_INLINE hn::Vec<WindowFloats> load_window(const float* p) {
  return hn::LoadU(WindowFloats(), p);
}
HWY_INLINE hn::Vec<WindowFloats> load_window(const std::uint16_t* p) {
  const hn::Rebind<std::int32_t, WindowFloats> ints;
  const hn::Rebind<std::uint16_t, WindowFloats> narrow;
  return hn::ConvertTo(WindowFloats(), hn::PromoteTo(ints, hn::LoadU(narrow, p)));
}

#if HWY_TARGET == HWY_AVX2
HWY_INLINE hn::Vec<Floats> look_up(hn::Vec<Floats> low, hn::Vec<Floats> high,
                                   hn::Vec<Ints> column) {
  const Ints ints;
  const auto index = hn::IndicesFromVec(Floats(), hn::And(column, hn::Set(ints, 7)));
  const auto beyond = hn::RebindMask(Floats(), hn::Gt(column, hn::Set(ints, 7)));
  return hn::IfThenElse(beyond, hn::TableLookupLanes(high, index),
                        hn::TableLookupLanes(low, index));
}
template <class T>
HWY_INLINE Neighbours look_up_neighbours(const T* row, hn::Vec<Ints> column) {
  const auto low = load_window(row);
  const auto high = load_window(row + 8);
  return {look_up(low, high, column), look_up(low, high, hn::Add(column, hn::Set(Ints(), 1)))};
}
#else
// Left neighbours in the lower half, right ones in the upper, by one permutation.
template <class T>
HWY_INLINE Neighbours look_up_neighbours(const T* row, hn::Vec<Ints> column) {
  const hn::FixedTag<std::int32_t, 16> ints;
  const auto both = hn::Combine(ints, hn::Add(column, hn::Set(Ints(), 1)), column);
  const auto found =
      hn::TableLookupLanes(load_window(row), hn::IndicesFromVec(WindowFloats(), both));
  return {hn::LowerHalf(Floats(), found), hn::UpperHalf(Floats(), found)};
}
#endif

template <class T>
HWY_INLINE void window_run(const CubicRun& run, const ImageView& input, T* output) {
  const std::uint8_t* base = run_base(run, input, sizeof(T));
  const Places places = locate(run, 0);
  const auto blended_row = [&](std::size_t row) {
    const T* window = reinterpret_cast<const T*>(base + row * input.stride_bytes);
    return blend_neighbours(look_up_neighbours(window, places.column), places.fraction_x);
  };
  auto upper = blended_row(0);
  auto lower = blended_row(1);
  const auto second = hn::Gt(places.row, hn::Zero(Ints()));
  if (!hn::AllFalse(Ints(), second)) {
    const auto third = blended_row(2);
    upper = hn::IfThenElse(hn::RebindMask(Floats(), second), lower, upper);
    lower = hn::IfThenElse(hn::RebindMask(Floats(), second), third, lower);
  }
  store_pixels(blend(upper, lower, places.fraction_y), output);
}
#else
template <class T>
HWY_INLINE void window_run(const CubicRun& run, const ImageView& input, T* output) {
  scattered_run(run, input, output);
}
#endif

template <RunKind kKind, class T>
HWY_NOINLINE void cubic_segment(const CubicRun* runs, std::size_t count, const ImageView& input,
                                T* output) {
  for (std::size_t i = 0; i < count; ++i) {
    T* out = output + i * kRunLength;
    if constexpr (kKind == RunKind::kCubicWindow) {
      window_run(runs[i], input, out);
    } else {
      scattered_run(runs[i], input, out);
    }
  }
}

// --- Jobs.

template <class T>
void rectify_segment(const RectifyMap& map, const Segment& segment, const ImageView& input,
                     T* output) {
  const CubicRun* cubics = map.cubic_runs.data() + segment.first;
  switch (segment.kind) {
    case RunKind::kOutside:
      rectify_outside(map, segment, output);
      return;
    case RunKind::kLone:
      rectify_lone(map, segment, input, output);
      return;
    case RunKind::kCubic:
      cubic_segment<RunKind::kCubic>(cubics, segment.count, input, output);
      return;
    case RunKind::kCubicWindow:
      if constexpr (sizeof(T) > 1) {
        cubic_segment<RunKind::kCubicWindow>(cubics, segment.count, input, output);
      }
      return;
    case RunKind::kWindow:
      if constexpr (sizeof(T) == 1) {
        window_segment(map.window_runs.data() + segment.first, segment.count, input, output);
      }
      return;
  }
}

template <class T>
HWY_INLINE T* next_row(T* row, std::size_t stride_bytes, std::size_t count) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uint8_t*>(row) + count * stride_bytes);
}

// Transposes 8×8 pixels by 2×2 blocks of ever larger size.
HWY_INLINE void transpose8(const std::uint8_t* from, std::size_t from_stride, std::uint8_t* to,
                           std::size_t to_stride_bytes) {
  const hn::FixedTag<std::uint8_t, 8> d8;
  const hn::FixedTag<std::uint8_t, 16> d;
  const auto rows = [&](std::size_t i) {  // bytes of rows i and i + 4 in turn
    const auto a = hn::LoadU(d8, from + i * from_stride);
    const auto b = hn::LoadU(d8, from + (i + 4) * from_stride);
    return hn::InterleaveLower(d, hn::Combine(d, a, a), hn::Combine(d, b, b));
  };
  const auto r04 = rows(0);
  const auto r15 = rows(1);
  const auto r26 = rows(2);
  const auto r37 = rows(3);
  const auto even_low = hn::InterleaveLower(d, r04, r26);  // 0 2 4 6 of columns 0–3
  const auto even_high = hn::InterleaveUpper(d, r04, r26);
  const auto odd_low = hn::InterleaveLower(d, r15, r37);
  const auto odd_high = hn::InterleaveUpper(d, r15, r37);
  const auto store = [&](std::size_t column, hn::Vec<decltype(d)> two_columns) {
    hn::StoreU(hn::LowerHalf(d8, two_columns), d8, next_row(to, to_stride_bytes, column));
    hn::StoreU(hn::UpperHalf(d8, two_columns), d8, next_row(to, to_stride_bytes, column + 1));
  };
  store(0, hn::InterleaveLower(d, even_low, odd_low));
  store(2, hn::InterleaveUpper(d, even_low, odd_low));
  store(4, hn::InterleaveLower(d, even_high, odd_high));
  store(6, hn::InterleaveUpper(d, even_high, odd_high));
}

// A perfect shuffle of eight rows of eight: row 2i and 2i + 1 become the lanes of rows i and i + 4
// in turn. Three of them transpose.
struct Rows8 {
  hn::Vec<hn::FixedTag<std::uint16_t, 8> > r0, r1, r2, r3, r4, r5, r6, r7;
};
HWY_INLINE Rows8 shuffled(const Rows8& a) {
  const hn::FixedTag<std::uint16_t, 8> d;
  return {hn::InterleaveLower(d, a.r0, a.r4), hn::InterleaveUpper(d, a.r0, a.r4),
          hn::InterleaveLower(d, a.r1, a.r5), hn::InterleaveUpper(d, a.r1, a.r5),
          hn::InterleaveLower(d, a.r2, a.r6), hn::InterleaveUpper(d, a.r2, a.r6),
          hn::InterleaveLower(d, a.r3, a.r7), hn::InterleaveUpper(d, a.r3, a.r7)};
}

HWY_INLINE void transpose8(const std::uint16_t* from, std::size_t from_stride, std::uint16_t* to,
                           std::size_t to_stride_bytes) {
  const hn::FixedTag<std::uint16_t, 8> d;
  const auto load = [&](std::size_t i) { return hn::LoadU(d, from + i * from_stride); };
  const Rows8 columns = shuffled(
      shuffled(shuffled({load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)})));
  const auto store = [&](std::size_t i, hn::Vec<decltype(d)> v) {
    hn::StoreU(v, d, next_row(to, to_stride_bytes, i));
  };
  store(0, columns.r0);
  store(1, columns.r1);
  store(2, columns.r2);
  store(3, columns.r3);
  store(4, columns.r4);
  store(5, columns.r5);
  store(6, columns.r6);
  store(7, columns.r7);
}

HWY_INLINE void transpose8(const float* from, std::size_t from_stride, float* to,
                           std::size_t to_stride_bytes) {
  const Float4 d;
  for (std::size_t y = 0; y < 8; y += 4) {
    for (std::size_t x = 0; x < 8; x += 4) {
      const float* block = from + y * from_stride + x;
      const auto a = hn::LoadU(d, block);
      const auto b = hn::LoadU(d, block + from_stride);
      const auto c = hn::LoadU(d, block + 2 * from_stride);
      const auto e = hn::LoadU(d, block + 3 * from_stride);
      const auto ac_low = hn::InterleaveLower(d, a, c);
      const auto ac_high = hn::InterleaveUpper(d, a, c);
      const auto be_low = hn::InterleaveLower(d, b, e);
      const auto be_high = hn::InterleaveUpper(d, b, e);
      const auto store = [&](std::size_t i, hn::Vec<Float4> v) {
        hn::StoreU(v, d, next_row(to, to_stride_bytes, x + i) + y);
      };
      store(0, hn::InterleaveLower(d, ac_low, be_low));
      store(1, hn::InterleaveUpper(d, ac_low, be_low));
      store(2, hn::InterleaveLower(d, ac_high, be_high));
      store(3, hn::InterleaveUpper(d, ac_high, be_high));
    }
  }
}

// Asks for the lines that a transposed block will write and that the next block will read: both lie
// scattered over many rows, which the processor's own prefetching does not foresee.
template <class T>
HWY_INLINE void prefetch_block(const RectifyMap& map, std::size_t index, const ImageView& input,
                               const MutableImageView& output) {
  const RectifyJob& job = map.jobs[index];
  for (int x = 0; x < job.width; ++x) {
    const T* row = output.row<T>(job.x + x) + job.y;
    for (int y = 0; y < job.height; y += static_cast<int>(64 / sizeof(T))) {
      __builtin_prefetch(row + y, 1);
    }
  }
  if (index + 1 == map.jobs.size()) return;
  const auto prefetch_source = [&](int x, int y) { __builtin_prefetch(input.row<T>(y) + x); };
  for (std::size_t i = map.end_segment(index); i < map.end_segment(index + 1); ++i) {
    const Segment& segment = map.segments[i];
    if (segment.kind == RunKind::kWindow) {
      const WindowRun& run = map.window_runs[segment.first];
      prefetch_source(run.base_x, run.base_y);
    } else if (segment.kind == RunKind::kCubic || segment.kind == RunKind::kCubicWindow) {
      const CubicRun& run = map.cubic_runs[segment.first];
      prefetch_source(run.base_x, run.base_y);
    }
  }
}

template <class T>
void job_in(const RectifyMap& map, std::size_t index, const ImageView& input,
            const MutableImageView& output) {
  const RectifyJob& job = map.jobs[index];
  const auto segments = [&](const MutableImageView& block) {
    const std::size_t end = map.end_segment(index);
    for (std::size_t i = job.first_segment; i < end; ++i) {
      const Segment& segment = map.segments[i];
      rectify_segment(map, segment, input, block.row<T>(segment.y) + segment.x);
    }
  };
  if (!map.transposed) {
    segments(job_block(job, output));
    return;
  }
  prefetch_block<T>(map, index, input, output);
  TransposedBlock<T> block(job);
  segments(block.view(map.format));
  block.write(output, [](const T* from, int from_stride, T* to, std::size_t to_stride_bytes) {
    transpose8(from, static_cast<std::size_t>(from_stride), to, to_stride_bytes);
  });
}

void rectify_job_vector(const RectifyMap& map, std::size_t job, const ImageView& input,
                        const MutableImageView& output) {
  if (map.format == PixelFormat::kGray8) {
    job_in<std::uint8_t>(map, job, input, output);
  } else if (map.format == PixelFormat::kGray16) {
    job_in<std::uint16_t>(map, job, input, output);
  } else {
    job_in<float>(map, job, input, output);
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
