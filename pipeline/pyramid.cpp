#include "pipeline/pyramid.h"

#include <algorithm>
#include <string>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/pyramid.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace patternd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The loops after the vector loops take the rest of a row, and all of it where the target is
// HWY_SCALAR, whose vectors hold one lane and so no pairs.
#if HWY_TARGET != HWY_SCALAR
// Pairs of a vector's bytes added: u16 lane i is byte 2i + byte 2i+1.
template <class D16, class V8>
HWY_INLINE auto add_byte_pairs(D16 d, V8 bytes) {
  const auto words = hn::BitCast(d, bytes);
  return hn::Add(hn::And(words, hn::Set(d, std::uint16_t{0xFF})), hn::ShiftRight<8>(words));
}

#endif

void halve_row_8(const std::uint8_t* top, const std::uint8_t* bottom, std::uint8_t* out,
                 std::size_t width, [[maybe_unused]] std::ptrdiff_t ahead) {
  std::size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint8_t> d8;
  const hn::ScalableTag<std::uint16_t> d16;
  const hn::RebindToSigned<decltype(d16)> di16;
  const hn::Rebind<std::uint8_t, decltype(di16)> d_out;
  const std::size_t lanes = hn::Lanes(d16);
  const auto two = hn::Set(d16, std::uint16_t{2});
  for (; x + lanes <= width; x += lanes) {
    hwy::Prefetch(top + 2 * x + ahead);
    hwy::Prefetch(bottom + 2 * x + ahead);
    const auto sum = hn::Add(add_byte_pairs(d16, hn::LoadU(d8, top + 2 * x)),
                             add_byte_pairs(d16, hn::LoadU(d8, bottom + 2 * x)));
    const auto mean = hn::ShiftRight<2>(hn::Add(sum, two));
    hn::StoreU(hn::DemoteTo(d_out, hn::BitCast(di16, mean)), d_out, out + x);
  }
#endif
  for (; x < width; ++x) {
    const int sum = top[2 * x] + top[2 * x + 1] + bottom[2 * x] + bottom[2 * x + 1];
    out[x] = static_cast<std::uint8_t>((sum + 2) >> 2);
  }
}

#if HWY_TARGET != HWY_SCALAR
template <class D32, class V16>
HWY_INLINE auto add_word_pairs(D32 d, V16 words) {
  const auto pairs = hn::BitCast(d, words);
  return hn::Add(hn::And(pairs, hn::Set(d, 0xFFFFU)), hn::ShiftRight<16>(pairs));
}

#endif

void halve_row_16(const std::uint16_t* top, const std::uint16_t* bottom, std::uint16_t* out,
                  std::size_t width) {
  std::size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> d16;
  const hn::ScalableTag<std::uint32_t> d32;
  const hn::RebindToSigned<decltype(d32)> di32;
  const hn::Rebind<std::uint16_t, decltype(di32)> d_out;
  const std::size_t lanes = hn::Lanes(d32);
  const auto two = hn::Set(d32, 2U);
  for (; x + lanes <= width; x += lanes) {
    const auto sum = hn::Add(add_word_pairs(d32, hn::LoadU(d16, top + 2 * x)),
                             add_word_pairs(d32, hn::LoadU(d16, bottom + 2 * x)));
    const auto mean = hn::ShiftRight<2>(hn::Add(sum, two));
    hn::StoreU(hn::DemoteTo(d_out, hn::BitCast(di32, mean)), d_out, out + x);
  }
#endif
  for (; x < width; ++x) {
    const int sum = top[2 * x] + top[2 * x + 1] + bottom[2 * x] + bottom[2 * x + 1];
    out[x] = static_cast<std::uint16_t>((sum + 2) >> 2);
  }
}

}  // namespace patternd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {
namespace {

HWY_EXPORT(halve_row_8);
HWY_EXPORT(halve_row_16);

template <class Pixel>
void halve_rows_plainly(const ImageView& in, MutableImageView out, int first_row, int rows) {
  for (int y = first_row; y < first_row + rows; ++y) {
    const auto* top = in.row<Pixel>(2 * y);
    const auto* bottom = in.row<Pixel>(2 * y + 1);
    auto* to = out.row<Pixel>(y);
    for (int x = 0; x < out.width; ++x) {
      const int sum = top[2 * x] + top[2 * x + 1] + bottom[2 * x] + bottom[2 * x + 1];
      to[x] = static_cast<Pixel>((sum + 2) / 4);
    }
  }
}

// Levels made together from a strip of rows, so that each reads what was just written from the
// second cache, and the strip's rows of the finest.
constexpr int kLevelsTogether = 5;
constexpr int kStripRows = 1 << kLevelsTogether;

}  // namespace

void halve(const ImageView& in, MutableImageView out, int first_row, int rows) {
  const auto width = static_cast<std::size_t>(out.width);
  for (int y = first_row; y < first_row + rows; ++y) {
    if (in.format == PixelFormat::kGray8) {
      // The next two rows: hardware fetches ahead along a row, but not from one to another.
      const std::ptrdiff_t ahead =
          2 * y + 3 < in.height ? static_cast<std::ptrdiff_t>(2 * in.stride_bytes) : 0;
      HWY_DYNAMIC_DISPATCH(halve_row_8)
      (in.row<std::uint8_t>(2 * y), in.row<std::uint8_t>(2 * y + 1), out.row<std::uint8_t>(y),
       width, ahead);
    } else {
      HWY_DYNAMIC_DISPATCH(halve_row_16)
      (in.row<std::uint16_t>(2 * y), in.row<std::uint16_t>(2 * y + 1), out.row<std::uint16_t>(y),
       width);
    }
  }
}

void halve_reference(const ImageView& in, MutableImageView out, int first_row, int rows) {
  if (in.format == PixelFormat::kGray8)
    halve_rows_plainly<std::uint8_t>(in, out, first_row, rows);
  else
    halve_rows_plainly<std::uint16_t>(in, out, first_row, rows);
}

int deepest_level(int width, int height) {
  int level = 0;
  while ((std::min(width, height) >> (level + 1)) >= 1) ++level;
  return level;
}

Result<Pyramid> Pyramid::create(int width, int height, PixelFormat format, int levels) {
  if (levels < 0 || levels > deepest_level(width, height)) {
    return fail(ErrorCode::kInvalidArgument,
                "a picture of " + std::to_string(width) + "x" + std::to_string(height) +
                    " has 0 to " + std::to_string(deepest_level(width, height)) +
                    " pyramid levels above its own, not " + std::to_string(levels));
  }
  Pyramid pyramid;
  for (int l = 1; l <= levels; ++l) {
    auto image = Image::create(width >> l, height >> l, format);
    if (!image) return tl::make_unexpected(image.error());
    pyramid.halved_.push_back(std::move(*image));
  }
  return pyramid;
}

void Pyramid::build(const ImageView& image, ThreadPool* pool) {
  base_ = image;
  for (int first = 0; first < levels(); first += kLevelsTogether) {
    const int last = std::min(first + kLevelsTogether, levels());
    const int strips = (level(first).height + kStripRows - 1) / kStripRows;
    if (pool == nullptr || strips <= 2) {
      for (int strip = 0; strip < strips; ++strip) build_strip(first, last, strip);
      continue;
    }
    pool->for_each(static_cast<std::size_t>(strips),
                   [&](std::size_t strip) { build_strip(first, last, static_cast<int>(strip)); });
  }
}

// The part of levels (first, last] that lies over kStripRows rows of level `first`.
void Pyramid::build_strip(int first, int last, int strip) {
  for (int l = first + 1; l <= last; ++l) {
    const MutableImageView out = halved_[static_cast<std::size_t>(l) - 1].view();
    const int rows = kStripRows >> (l - first);
    const int from = strip * rows;
    if (from >= out.height) break;
    halve(level(l - 1), out, from, std::min(rows, out.height - from));
  }
}

}  // namespace patternd
#endif  // HWY_ONCE
