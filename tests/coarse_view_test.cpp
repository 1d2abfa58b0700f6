#include "pipeline/coarse_view.h"

#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace patternd {
namespace {

constexpr int kWidth = 23;
constexpr int kHeight = 17;

CoarseTemplate random_template(std::mt19937& random) {
  TurnedPattern shape;
  shape.left = -static_cast<int>(random() % 6);
  shape.top = -static_cast<int>(random() % 6);
  shape.width = 1 + static_cast<int>(random() % 9);
  shape.height = 1 + static_cast<int>(random() % 9);
  for (std::size_t i = 0; i < shape.index(0, shape.height); ++i) {
    shape.counts.push_back(random() % 4 != 0 ? 1 : 0);
    shape.value.push_back(shape.counts.back() != 0 ? static_cast<float>(random() % 256) : 0.0F);
  }
  return make_coarse_template(std::move(shape), 128);
}

// Invalid: nothing; a corner; a corner and single pixels; nearly all.
std::vector<std::uint8_t> random_mask(int kind, std::mt19937& random) {
  std::vector<std::uint8_t> mask;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const bool hidden = (kind >= 1 && x + y < 9) || (kind == 2 && random() % 11 == 0) ||
                          (kind == 3 && random() % 9 != 0);
      mask.push_back(hidden ? 0 : 255);
    }
  }
  return mask;
}

// Pixel by pixel.
TemplateSums plain_sums(const CoarseTemplate& t, const std::vector<std::uint8_t>& mask, int x,
                        int y) {
  TemplateSums out;
  for (int j = 0; j < t.shape.height; ++j) {
    for (int i = 0; i < t.shape.width; ++i) {
      const int column = x + t.shape.left + i;
      const int row = y + t.shape.top + j;
      if (column < 0 || row < 0 || column >= kWidth || row >= kHeight) continue;
      if (!mask.empty() && mask[row_major(row, column, kWidth)] == 0) continue;
      const std::int64_t weight = t.weights[t.shape.index(i, j)];
      out.sum += weight;
      out.square += weight * weight;
      out.pixels += t.shape.counts[t.shape.index(i, j)];
    }
  }
  return out;
}

bool operator==(const TemplateSums& a, const TemplateSums& b) {
  return a.sum == b.sum && a.square == b.square && a.pixels == b.pixels;
}

// Calls body(view, template, mask) for pictures without and with masks of each kind.
template <class Body>
void for_each_view(const Body& body) {
  std::mt19937 random(31);
  SCOPED_TRACE("seed 31");
  for (int kind = -1; kind < 4; ++kind) {
    SCOPED_TRACE(kind);
    for (int i = 0; i < 12; ++i) {
      std::vector<std::uint8_t> mask;
      if (kind >= 0) mask = random_mask(kind, random);
      ImageView valid;
      if (kind >= 0) valid = {mask.data(), kWidth, kHeight, kWidth, PixelFormat::kGray8};
      body(CoarseView(kWidth, kHeight, valid), random_template(random), mask);
    }
  }
}

TEST(CoarseView, SeesAtEachPositionWhatCountingPixelsFinds) {
  for_each_view([](const CoarseView& view, const CoarseTemplate& t, const auto& mask) {
    for (int y = -12; y < kHeight + 12; ++y)
      for (int x = -12; x < kWidth + 12; ++x)
        ASSERT_TRUE(view.seen(t, x, y) == plain_sums(t, mask, x, y)) << x << ' ' << y;
  });
}

TEST(CoarseView, CallsPositionsAlikeOnlyWhereTheyAre) {
  constexpr int kCount = 5;
  int all = 0;
  int above = 0;
  int left = 0;
  for_each_view([&](const CoarseView& view, const CoarseTemplate& t, const auto& mask) {
    for (int y = -12; y < kHeight + 12; ++y) {
      for (int x = -12; x < kWidth + 12; ++x) {
        const bool see_all = view.see_all(t, x, y, kCount);
        const bool as_above = view.see_as_above(t, x, y, kCount);
        const bool as_left = view.see_as_left(t, x, y, kCount);
        for (int i = x; i < x + kCount; ++i) {
          const TemplateSums seen = plain_sums(t, mask, i, y);
          ASSERT_TRUE(!see_all || seen.pixels == t.pixels) << i << ' ' << y;
          ASSERT_TRUE(!as_above || seen == plain_sums(t, mask, i, y - 1)) << i << ' ' << y;
          ASSERT_TRUE(!as_left || seen == plain_sums(t, mask, i - kCount, y)) << i << ' ' << y;
        }
        all += see_all ? 1 : 0;
        above += as_above ? 1 : 0;
        left += as_left ? 1 : 0;
      }
    }
  });
  // And they do where it is plain: in the midst of a picture, at its sides, at its top and bottom.
  EXPECT_GT(all, 1000);
  EXPECT_GT(above, all);
  EXPECT_GT(left, all / 2);
}

}  // namespace
}  // namespace patternd
