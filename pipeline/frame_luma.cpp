#include "pipeline/frame_luma.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "pipeline/frame_luma.cpp"
#include <hwy/foreach_target.h>
// Behind foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace patternd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One row: y[x] = row[2x + first].
void packed_yuv_row(const std::uint8_t* row, int first, int width, std::uint8_t* out) {
  int x = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint16_t> d16;
  const hn::RebindToSigned<decltype(d16)> i16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const hn::Repartition<std::uint8_t, decltype(d16)> bytes;
  const int lanes = static_cast<int>(hn::Lanes(d16));
  const auto low_byte = hn::Set(d16, 0xFF);
  for (; x + lanes <= width; x += lanes) {
    const auto pairs = hn::BitCast(d16, hn::LoadU(bytes, row + 2 * x));
    const auto luma = first == 0 ? hn::And(pairs, low_byte) : hn::ShiftRight<8>(pairs);
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(i16, luma)), d8, out + x);
  }
#endif
  for (; x < width; ++x) out[x] = row[2 * x + first];
}

void shifted_row(const std::uint16_t* row, int shift, int width, std::uint16_t* out) {
  const hn::ScalableTag<std::uint16_t> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  int x = 0;
  for (; x + lanes <= width; x += lanes) {
    hn::StoreU(hn::ShiftLeftSame(hn::LoadU(d, row + x), shift), d, out + x);
  }
  for (; x < width; ++x) out[x] = static_cast<std::uint16_t>(row[x] << shift);
}

// (77 R + 150 G + 29 B + 128) / 256 of three bytes a pixel, red first or last.
void colour_row(const std::uint8_t* row, bool red_first, int width, std::uint8_t* out) {
  const std::uint16_t first = red_first ? 77 : 29;
  const std::uint16_t last = red_first ? 29 : 77;
  int x = 0;
#if HWY_MAJOR >= 1 && HWY_TARGET != HWY_SCALAR  // 0.16 cannot load interleaved
  const hn::ScalableTag<std::uint16_t> d16;
  const hn::RebindToSigned<decltype(d16)> i16;
  const hn::Rebind<std::uint8_t, decltype(d16)> d8;
  const int lanes = static_cast<int>(hn::Lanes(d16));
  for (; x + lanes <= width; x += lanes) {
    hn::Vec<decltype(d8)> a;
    hn::Vec<decltype(d8)> g;
    hn::Vec<decltype(d8)> c;
    hn::LoadInterleaved3(d8, row + 3 * x, a, g, c);
    const auto sum =
        hn::Add(hn::Add(hn::Mul(hn::PromoteTo(d16, a), hn::Set(d16, first)),
                        hn::Mul(hn::PromoteTo(d16, g), hn::Set(d16, 150))),
                hn::Add(hn::Mul(hn::PromoteTo(d16, c), hn::Set(d16, last)), hn::Set(d16, 128)));
    hn::StoreU(hn::DemoteTo(d8, hn::BitCast(i16, hn::ShiftRight<8>(sum))), d8, out + x);
  }
#endif
  for (; x < width; ++x) {
    const std::uint8_t* p = row + 3 * x;
    out[x] = static_cast<std::uint8_t>((first * p[0] + 150 * p[1] + last * p[2] + 128) >> 8);
  }
}

// One row of a mosaic. Samples keep `mask`'s bits; the sum of 1024 × luma is shifted up by `shift`
// (to full scale) before it is rounded.
template <class T>
void bayer_row(const BayerRows& rows, const BayerWeights weights[2], std::uint32_t mask, int shift,
               int width, T* out) {
  const T* above = static_cast<const T*>(rows.above);
  const T* row = static_cast<const T*>(rows.row);
  const T* below = static_cast<const T*>(rows.below);
  const auto single = [&](int x) {
    const int left = x > 0 ? x - 1 : std::min(1, width - 1);
    const int right = x + 1 < width ? x + 1 : std::max(width - 2, 0);
    const auto at = [&](const T* line, int column) { return line[column] & mask; };
    const BayerWeights& w = weights[x & 1];
    const std::uint32_t sum =
        w.centre * at(row, x) + w.horizontal * (at(row, left) + at(row, right)) +
        w.vertical * (at(above, x) + at(below, x)) +
        w.diagonal * (at(above, left) + at(above, right) + at(below, left) + at(below, right));
    out[x] = static_cast<T>(((sum << shift) + 512) >> 10);
  };
  single(0);
  int x = 1;
#if HWY_TARGET != HWY_SCALAR
  const hn::ScalableTag<std::uint32_t> d;
  const hn::RebindToSigned<decltype(d)> signed_d;
  const hn::Rebind<T, decltype(d)> narrow;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto keep = hn::Set(d, mask);
  const auto load = [&](const T* p) {
    return hn::And(hn::PromoteTo(d, hn::LoadU(narrow, p)), keep);
  };
  // Lane 0 stands at an odd column.
  const auto both = [&](std::uint32_t BayerWeights::*which) {
    return hn::OddEven(hn::Set(d, weights[0].*which), hn::Set(d, weights[1].*which));
  };
  const auto centre = both(&BayerWeights::centre);
  const auto horizontal = both(&BayerWeights::horizontal);
  const auto vertical = both(&BayerWeights::vertical);
  const auto diagonal = both(&BayerWeights::diagonal);
  const auto half = hn::Set(d, 512);
  for (; x + lanes + 1 <= width; x += lanes) {
    const auto across = hn::Add(load(row + x - 1), load(row + x + 1));
    const auto along = hn::Add(load(above + x), load(below + x));
    const auto corners = hn::Add(hn::Add(load(above + x - 1), load(above + x + 1)),
                                 hn::Add(load(below + x - 1), load(below + x + 1)));
    const auto sum = hn::Add(hn::Add(hn::Mul(load(row + x), centre), hn::Mul(across, horizontal)),
                             hn::Add(hn::Mul(along, vertical), hn::Mul(corners, diagonal)));
    const auto luma = hn::ShiftRight<10>(hn::Add(hn::ShiftLeftSame(sum, shift), half));
    hn::StoreU(hn::DemoteTo(narrow, hn::BitCast(signed_d, luma)), narrow, out + x);
  }
#endif
  for (; x < width; ++x) single(x);
}

void bayer_row_8(const BayerRows& rows, const BayerWeights weights[2], int width,
                 std::uint8_t* out) {
  bayer_row<std::uint8_t>(rows, weights, 0xFF, 0, width, out);
}
void bayer_row_16(const BayerRows& rows, const BayerWeights weights[2], std::uint32_t mask,
                  int shift, int width, std::uint16_t* out) {
  bayer_row<std::uint16_t>(rows, weights, mask, shift, width, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace patternd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace patternd {
namespace {

HWY_EXPORT(packed_yuv_row);
HWY_EXPORT(shifted_row);
HWY_EXPORT(colour_row);
HWY_EXPORT(bayer_row_8);
HWY_EXPORT(bayer_row_16);

int bits_of(RawFormat format) {
  switch (format) {
    case RawFormat::kY10:
    case RawFormat::kBayer10:
      return 10;
    case RawFormat::kY12:
    case RawFormat::kBayer12:
      return 12;
    case RawFormat::kBayer14:
      return 14;
    default:
      return 16;
  }
}

void convert_bayer_row(const RawImageView& raw, int y, MutableImageView out) {
  const auto line = [&](int row) {
    return raw.data + static_cast<std::size_t>(row) * raw.stride_bytes;
  };
  const int above = y > 0 ? y - 1 : std::min(1, raw.height - 1);
  const int below = y + 1 < raw.height ? y + 1 : std::max(raw.height - 2, 0);
  const BayerRows rows{line(above), line(y), line(below)};
  const BayerWeights weights[2] = {bayer_weights(raw.bayer, 0, y & 1),
                                   bayer_weights(raw.bayer, 1, y & 1)};
  if (raw.format == RawFormat::kBayer8) {
    HWY_DYNAMIC_DISPATCH(bayer_row_8)(rows, weights, raw.width, out.row<std::uint8_t>(y));
    return;
  }
  const int bits = bits_of(raw.format);
  HWY_DYNAMIC_DISPATCH(bayer_row_16)
  (rows, weights, (1U << bits) - 1, 16 - bits, raw.width, out.row<std::uint16_t>(y));
}

}  // namespace

BayerWeights bayer_weights(BayerOrder order, int column, int row) {
  constexpr BayerWeights kRed = {4 * 77, 150, 150, 29};
  constexpr BayerWeights kBlue = {4 * 29, 150, 150, 77};
  constexpr BayerWeights kGreenBesideRed = {4 * 150, 2 * 77, 2 * 29, 0};
  constexpr BayerWeights kGreenBesideBlue = {4 * 150, 2 * 29, 2 * 77, 0};
  // Where red stands in each 2×2 cell.
  const int red_column = order == BayerOrder::kGrbg || order == BayerOrder::kBggr ? 1 : 0;
  const int red_row = order == BayerOrder::kGbrg || order == BayerOrder::kBggr ? 1 : 0;
  const bool on_red_row = row == red_row;
  if (column == red_column) return on_red_row ? kRed : kGreenBesideBlue;
  return on_red_row ? kGreenBesideRed : kBlue;
}

void convert_to_luma(const RawImageView& raw, MutableImageView out) {
  for (int y = 0; y < raw.height; ++y) {
    const std::uint8_t* row = raw.data + static_cast<std::size_t>(y) * raw.stride_bytes;
    switch (raw.format) {
      case RawFormat::kYuyv:
      case RawFormat::kUyvy:
        HWY_DYNAMIC_DISPATCH(packed_yuv_row)
        (row, raw.format == RawFormat::kYuyv ? 0 : 1, raw.width, out.row<std::uint8_t>(y));
        break;
      case RawFormat::kRgb3:
      case RawFormat::kBgr3:
        HWY_DYNAMIC_DISPATCH(colour_row)
        (row, raw.format == RawFormat::kRgb3, raw.width, out.row<std::uint8_t>(y));
        break;
      case RawFormat::kY10:
      case RawFormat::kY12:
        HWY_DYNAMIC_DISPATCH(shifted_row)
        (reinterpret_cast<const std::uint16_t*>(row), 16 - bits_of(raw.format), raw.width,
         out.row<std::uint16_t>(y));
        break;
      case RawFormat::kBayer8:
      case RawFormat::kBayer10:
      case RawFormat::kBayer12:
      case RawFormat::kBayer14:
      case RawFormat::kBayer16:
        convert_bayer_row(raw, y, out);
        break;
      case RawFormat::kGrey:
      case RawFormat::kY16:
      case RawFormat::kNv12:
      case RawFormat::kYu12:
        return;  // to_luma hands out their luma plane
    }
  }
}

ImageView to_luma(const RawImageView& raw, MutableImageView scratch) {
  if (has_luma_plane(raw.format)) {
    return {raw.data, raw.width, raw.height, raw.stride_bytes, luma_format(raw.format)};
  }
  convert_to_luma(raw, scratch);
  return scratch;
}

}  // namespace patternd
#endif  // HWY_ONCE
