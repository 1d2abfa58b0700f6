// Frames' formats: luma against a scalar reference at every width and remainder.
#include "pipeline/frame.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <random>
#include <vector>

namespace patternd {
namespace {

constexpr RawFormat kAll[] = {
    RawFormat::kGrey,    RawFormat::kY10,     RawFormat::kY12,     RawFormat::kY16,
    RawFormat::kYuyv,    RawFormat::kUyvy,    RawFormat::kNv12,    RawFormat::kRgb3,
    RawFormat::kBgr3,    RawFormat::kYu12,    RawFormat::kBayer8,  RawFormat::kBayer10,
    RawFormat::kBayer12, RawFormat::kBayer14, RawFormat::kBayer16,
};
constexpr BayerOrder kOrders[] = {BayerOrder::kRggb, BayerOrder::kGrbg, BayerOrder::kGbrg,
                                  BayerOrder::kBggr};

bool is_mosaic(RawFormat format) { return format >= RawFormat::kBayer8; }
int bits_of(RawFormat format) {
  if (format == RawFormat::kY10 || format == RawFormat::kBayer10) return 10;
  if (format == RawFormat::kY12 || format == RawFormat::kBayer12) return 12;
  if (format == RawFormat::kBayer14) return 14;
  if (format == RawFormat::kY16 || format == RawFormat::kBayer16) return 16;
  return 8;
}

// A frame in memory of exactly its size.
struct Frame {
  std::vector<std::uint8_t> bytes;
  RawImageView view;
};

enum class Content { kNoise, kZero, kFull };

Frame make_frame(RawFormat format, BayerOrder order, int width, int height, std::size_t padding,
                 Content content, std::mt19937& random) {
  Frame frame;
  const std::size_t stride = min_stride_bytes(format, width) + padding;
  frame.bytes.resize(frame_bytes(format, height, stride));
  for (std::uint8_t& byte : frame.bytes) {
    byte = content == Content::kZero   ? 0
           : content == Content::kFull ? 255
                                       : static_cast<std::uint8_t>(random());
  }
  frame.view = {frame.bytes.data(), frame.bytes.size(), width, height, stride, format, order};
  return frame;
}

int sample(const RawImageView& raw, int x, int y) {
  const std::uint8_t* row = raw.data + static_cast<std::size_t>(y) * raw.stride_bytes;
  const int bits = bits_of(raw.format);
  if (bits == 8) return row[x];
  return (row[2 * x] + 256 * row[2 * x + 1]) & ((1 << bits) - 1);
}

// Colour of a mosaic's site: 0 red, 1 green, 2 blue.
int colour_at(BayerOrder order, int x, int y) {
  const char* cells[] = {"RGGB", "GRBG", "GBRG", "BGGR"};
  const char c = cells[static_cast<int>(order)][2 * (y & 1) + (x & 1)];
  return c == 'R' ? 0 : c == 'G' ? 1 : 2;
}

// The mean of a colour's samples within the 3×3 neighbourhood that bilinear interpolation uses.
double interpolated(const RawImageView& raw, int x, int y, int colour) {
  const int own = colour_at(raw.bayer, x, y);
  if (own == colour) return sample(raw, x, y);
  double sum = 0;
  int count = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      if (colour == 1 && dx != 0 && dy != 0) continue;  // green: the four nearest
      if (colour_at(raw.bayer, x + dx + 2, y + dy + 2) != colour) continue;
      const auto mirrored = [](int v, int size) {
        if (v < 0) v = -v;
        if (v > size - 1) v = 2 * (size - 1) - v;
        return std::clamp(v, 0, size - 1);
      };
      sum += sample(raw, mirrored(x + dx, raw.width), mirrored(y + dy, raw.height));
      ++count;
    }
  }
  return sum / count;
}

int reference_luma(const RawImageView& raw, int x, int y) {
  const std::uint8_t* row = raw.data + static_cast<std::size_t>(y) * raw.stride_bytes;
  switch (raw.format) {
    case RawFormat::kYuyv:
      return row[2 * x];
    case RawFormat::kUyvy:
      return row[2 * x + 1];
    case RawFormat::kRgb3:
      return (77 * row[3 * x] + 150 * row[3 * x + 1] + 29 * row[3 * x + 2] + 128) / 256;
    case RawFormat::kBgr3:
      return (29 * row[3 * x] + 150 * row[3 * x + 1] + 77 * row[3 * x + 2] + 128) / 256;
    default:
      break;
  }
  const int up = bits_of(raw.format) == 8 ? 1 : 1 << (16 - bits_of(raw.format));
  if (!is_mosaic(raw.format)) return sample(raw, x, y) * up;
  const double luma = 77 * interpolated(raw, x, y, 0) + 150 * interpolated(raw, x, y, 1) +
                      29 * interpolated(raw, x, y, 2);
  return static_cast<int>(std::floor((luma * up + 128) / 256));
}

void expect_exact(RawFormat format, BayerOrder order, int width, int height, Content content,
                  std::mt19937& random) {
  const Frame frame = make_frame(format, order, width, height, 6, content, random);
  Image scratch = Image::create(width, height, luma_format(format)).value();
  const ImageView luma = to_luma(frame.view, scratch.view());
  ASSERT_EQ(luma.width, width);
  ASSERT_EQ(luma.height, height);
  ASSERT_EQ(luma.format, luma_format(format));
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int actual = luma.format == PixelFormat::kGray8 ? luma.row<std::uint8_t>(y)[x]
                                                            : luma.row<std::uint16_t>(y)[x];
      ASSERT_EQ(actual, reference_luma(frame.view, x, y))
          << name_of(format, order) << " " << width << "x" << height << " at " << x << ", " << y;
    }
  }
}

TEST(Frame, BecomesLumaExactlyAtEveryWidth) {
  const unsigned seed = 11;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const RawFormat format : kAll) {
    for (int width = 1; width <= 70; ++width) {
      expect_exact(format, BayerOrder::kRggb, width, 5, Content::kNoise, random);
    }
    for (const Content content : {Content::kZero, Content::kFull}) {
      expect_exact(format, BayerOrder::kGrbg, 67, 4, content, random);
    }
    for (int height = 1; height <= 4; ++height) {
      expect_exact(format, BayerOrder::kRggb, 33, height, Content::kNoise, random);
    }
  }
}

TEST(Frame, BecomesLumaExactlyInEveryOrderOfColours) {
  const unsigned seed = 12;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const BayerOrder order : kOrders) {
    expect_exact(RawFormat::kBayer8, order, 41, 7, Content::kNoise, random);
    expect_exact(RawFormat::kBayer12, order, 41, 7, Content::kNoise, random);
  }
}

#if HWY_MAJOR >= 1
TEST(Frame, BecomesLumaExactlyByEveryInstructionSetOfThisProcessor) {
  std::mt19937 random(13);
  for (auto rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    SCOPED_TRACE(hwy::TargetName(rest & -rest));
    hwy::SetSupportedTargetsForTest(rest & -rest);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const RawFormat format : kAll) {
      for (const int width : {1, 15, 16, 17, 40, 67}) {
        expect_exact(format, BayerOrder::kGbrg, width, 4, Content::kNoise, random);
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}
#endif

TEST(Frame, LeavesLumaPlanesWhereTheyAre) {
  std::mt19937 random(1);
  for (const RawFormat format : kAll) {
    const Frame frame = make_frame(format, BayerOrder::kRggb, 16, 8, 0, Content::kNoise, random);
    Image scratch = Image::create(16, 8, luma_format(format)).value();
    const ImageView luma = to_luma(frame.view, scratch.view());
    EXPECT_EQ(luma.data == frame.bytes.data(), has_luma_plane(format)) << name_of(format);
  }
}

TEST(Frame, WritesNothingBesideTheScratch) {
  std::mt19937 random(2);
  for (const RawFormat format : kAll) {
    if (has_luma_plane(format)) continue;
    const Frame frame = make_frame(format, BayerOrder::kRggb, 37, 3, 0, Content::kNoise, random);
    Image scratch = Image::create(64, 5, luma_format(format)).value();
    scratch.fill_bytes(0xA5);
    (void)to_luma(frame.view, scratch.view().crop(8, 1, 37, 3));
    const std::size_t size = bytes_per_pixel(luma_format(format));
    for (int y = 0; y < 5; ++y) {
      for (std::size_t b = 0; b < 64 * size; ++b) {
        const bool inside = y >= 1 && y < 4 && b >= 8 * size && b < 45 * size;
        if (inside) continue;
        ASSERT_EQ(scratch.view().row_bytes(y)[b], 0xA5) << name_of(format);
      }
    }
  }
}

}  // namespace
}  // namespace patternd
