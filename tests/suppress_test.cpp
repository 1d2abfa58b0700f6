#include "pipeline/suppress.h"

#include <gtest/gtest.h>
#include <random>

namespace patternd {
namespace {

TEST(PeakList, KeepsTheBestInAnyOrderOfComing) {
  std::vector<Peak> peaks;
  for (int i = 0; i < 100; ++i)
    peaks.push_back({static_cast<float>((i * 37) % 50), i, i / 7, false});
  PeakList forward(10);
  PeakList backward(10);
  for (const Peak& peak : peaks) forward.add(peak);
  for (auto it = peaks.rbegin(); it != peaks.rend(); ++it) backward.add(*it);
  forward.sort_by_place();
  backward.sort_by_place();
  ASSERT_EQ(forward.peaks().size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(forward.peaks()[i].x, backward.peaks()[i].x);
    EXPECT_GE(forward.peaks()[i].score, 45);
  }
}

TEST(RowMaxima, AreThoseOfTheEightNeighbours) {
  std::mt19937 random(3);
  SCOPED_TRACE("seed 3");
  constexpr int kSize = 23;
  float map[kSize][kSize];
  for (auto& row : map)
    for (float& v : row) v = static_cast<float>(random() % 8);  // many ties
  PeakList list(1000);
  RowMaxima maxima(kSize);
  maxima.start(&list);
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x)
      if (map[y][x] > 2) maxima.add({map[y][x], x, y, false});
    maxima.finish_row();
  }
  maxima.finish();
  std::size_t expected = 0;
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x) {
      bool best = map[y][x] > 2;
      for (int k = 0; k < 9 && best; ++k) {
        const int nx = x + k % 3 - 1;
        const int ny = y + k / 3 - 1;
        if (k == 4 || nx < 0 || ny < 0 || nx >= kSize || ny >= kSize || map[ny][nx] <= 2) continue;
        best = better({map[y][x], x, y, false}, {map[ny][nx], nx, ny, false});
      }
      expected += best ? 1 : 0;
    }
  }
  EXPECT_EQ(list.peaks().size(), expected);
}

TEST(SuppressAcrossPlanes, KeepsOneOfNeighbouringAnglesAroundTheCircle) {
  // Four planes in a circle; the same object in planes 3, 0 and 1, another in plane 2.
  std::vector<PeakList> lists(4, PeakList(4));
  lists[3].add({0.7F, 5, 5, false});
  lists[0].add({0.9F, 5, 6, false});
  lists[1].add({0.8F, 6, 5, false});
  lists[2].add({0.6F, 5, 5, false});
  std::vector<PlaneNeighbours> neighbours(4);
  for (std::size_t p = 0; p < 4; ++p) neighbours[p].planes = {(p + 1) % 4, (p + 3) % 4};
  std::vector<PlanePeak> out;
  out.reserve(10);
  suppress_across_planes(lists, neighbours, out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].plane, 0);
}

TEST(SuppressAcrossPlanes, BreaksTiesTheSameWay) {
  std::vector<PeakList> lists(2, PeakList(4));
  lists[0].add({0.5F, 5, 5, false});
  lists[1].add({0.5F, 5, 5, false});
  std::vector<PlaneNeighbours> neighbours(2);
  neighbours[0].planes = {1};
  neighbours[1].planes = {0};
  std::vector<PlanePeak> out;
  out.reserve(10);
  suppress_across_planes(lists, neighbours, out);
  ASSERT_EQ(out.size(), 1U);
  EXPECT_EQ(out[0].plane, 0);
}

}  // namespace
}  // namespace patternd
