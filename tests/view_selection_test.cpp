// Which views of a board are taken out of many.
#include "tools/calibrate/view_selection.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

namespace patternd::calibrate {
namespace {

// A board of 4 × 3 points whose first lies at (x, y).
BoardView view_at(double x, double y) {
  BoardView view{"view", {}, {}};
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 4; ++column) {
      view.board_mm.push_back({column * 10.0, row * 10.0});
      view.image_px.push_back({x + column * 20, y + row * 20});
    }
  }
  return view;
}

Image blank() { return Image::create(64, 48, PixelFormat::kGray8).value(); }

TEST(ViewSelection, TakesOneOfManyThatAreNearlyTheSame) {
  const Image picture = blank();
  ViewSelection selection(40, 640, 480, false);  // 2 % of the diagonal: 16 pixels
  for (std::uint64_t i = 0; i < 500; ++i)
    selection.offer(view_at(100 + static_cast<double>(i % 7), 100), i, picture.view());
  EXPECT_EQ(selection.kept().size(), 1U);
  selection.offer(view_at(130, 100), 500, picture.view());
  EXPECT_EQ(selection.kept().size(), 2U);
}

TEST(ViewSelection, KeepsViewsThatSpreadWhereTooManyCome) {
  const Image picture = blank();
  ViewSelection selection(10, 640, 480, false);
  std::uint64_t seq = 0;
  for (double y = 0; y < 400; y += 20) {
    for (double x = 0; x < 500; x += 20) selection.offer(view_at(x, y), seq++, picture.view());
  }
  ASSERT_LE(selection.kept().size(), 10U);
  ASSERT_GE(selection.kept().size(), 5U);
  double left = 1000;
  double right = 0;
  for (const auto& kept : selection.kept()) {
    left = std::min(left, kept.view.image_px[0].x);
    right = std::max(right, kept.view.image_px[0].x);
    for (const auto& other : selection.kept()) {
      const bool itself = other.seq == kept.seq;
      EXPECT_TRUE(itself || view_distance_px(kept.view, other.view) > 50);
    }
  }
  EXPECT_GT(right - left, 250);
}

TEST(ViewSelection, PrefersTheMomentInWhichTheBoardStoodStill) {
  const Image picture = blank();
  ViewSelection selection(40, 640, 480, true);
  for (const double x : {100.0, 108.0, 112.0, 113.0, 113.1, 117.0})
    selection.offer(view_at(x, 100), static_cast<std::uint64_t>(x * 10), picture.view());
  ASSERT_EQ(selection.kept().size(), 1U);
  EXPECT_EQ(selection.kept()[0].seq, 1131U);
  EXPECT_EQ(selection.kept()[0].picture.width(), 64);
  selection.offer(view_at(300, 100), 9, picture.view());
  selection.stood_still();
  selection.offer(view_at(300.5, 100), 10, picture.view());
  EXPECT_EQ(selection.kept()[1].seq, 9U);
}

TEST(ViewSelection, ComparesBoardsOfWhichOtherPartsShow) {
  BoardView part = view_at(100, 100);
  BoardView shifted = view_at(103, 104);
  part.board_mm.erase(part.board_mm.begin(), part.board_mm.begin() + 3);
  part.image_px.erase(part.image_px.begin(), part.image_px.begin() + 3);
  EXPECT_NEAR(view_distance_px(part, shifted), 5, 1e-9);
  part.board_mm.resize(3);
  part.image_px.resize(3);
  EXPECT_TRUE(std::isinf(view_distance_px(part, shifted)));
}

TEST(SameAsBefore, SeesChangesAndTakesNoiseForNone) {
  Image picture = Image::create(320, 240, PixelFormat::kGray8).value();
  const auto fill = [&picture](int levels, int bright_to_x) {
    for (int y = 0; y < 240; ++y) {
      for (int x = 0; x < 320; ++x)
        picture.row<std::uint8_t>(y)[x] =
            static_cast<std::uint8_t>((x < bright_to_x ? 180 : 60) + (x * 7 + y * 13) % levels);
    }
  };
  SameAsBefore same;
  fill(3, 100);
  EXPECT_FALSE(same(picture.view())) << "there was none before";
  EXPECT_TRUE(same(picture.view()));
  fill(2, 100);
  EXPECT_TRUE(same(picture.view()));
  fill(2, 104);
  EXPECT_FALSE(same(picture.view()));
  EXPECT_TRUE(same(picture.view()));
}

}  // namespace
}  // namespace patternd::calibrate
