// What the coarse search by matrix units multiplies with, put together again.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <tuple>

#include "cuda/coarse_octets.h"

namespace patternd::cuda {
namespace {

constexpr int kPitch = 96;

// Planes of any box, with masks that have holes, in groups of eight and one of fewer.
CoarseTables make_tables(std::mt19937& random, std::size_t planes) {
  CoarseTables tables;
  tables.first_x = static_cast<int>(random() % 40) - 20;
  tables.first_y = static_cast<int>(random() % 40) - 20;
  tables.blocks = 3;
  tables.rows = 20;
  for (std::size_t p = 0; p < planes; ++p) {
    CoarseTables::Plane plane;
    plane.left = -static_cast<int>(random() % 20);
    plane.top = -static_cast<int>(random() % 20);
    plane.width = 3 + static_cast<int>(random() % 30);
    plane.height = 2 + static_cast<int>(random() % 30);
    plane.group = p / kPlanesPerGroup;
    for (int y = 0; y < plane.height; ++y) {
      const int begin = static_cast<int>(random() % static_cast<unsigned>(plane.width));
      for (int x = 0; x < plane.width; ++x) {
        const bool counts = x >= begin && random() % 8 != 0;
        plane.taps.push_back(
            static_cast<std::int16_t>(counts ? static_cast<int>(random() % 64001) - 32000 : 0));
        if (counts) plane.runs.push_back({plane.top + y, plane.left + x, plane.left + x + 1});
      }
    }
    const int blocks = tables.blocks * tables.rows;
    plane.block_class.assign(static_cast<std::size_t>(blocks), CoarseTables::kAllVisible);
    tables.planes.push_back(std::move(plane));
  }
  tables.groups.resize((planes + kPlanesPerGroup - 1) / kPlanesPerGroup);
  return tables;
}

// What a plane multiplies a pixel with, and whether the pixel counts; pixels relative to the
// position.
struct Tap {
  int weight = 0;
  int counts = 0;
};
bool operator==(const Tap& a, const Tap& b) { return a.weight == b.weight && a.counts == b.counts; }
std::ostream& operator<<(std::ostream& out, const Tap& tap) {
  return out << tap.weight << ' ' << tap.counts;
}
using Taps = std::map<std::tuple<int, int, int>, Tap>;  // of (plane, x, y)

Taps taps_of(const CoarseTables& tables) {
  Taps out;
  for (std::size_t p = 0; p < tables.planes.size(); ++p) {
    const CoarseTables::Plane& plane = tables.planes[p];
    for (const MaskRun& run : plane.runs) {
      for (int x = run.begin; x < run.end; ++x) {
        const int tap = (run.row - plane.top) * plane.width + x - plane.left;
        out[{static_cast<int>(p), x, run.row}] = {plane.taps[static_cast<std::size_t>(tap)], 1};
      }
    }
  }
  return out;
}

int signed_byte(unsigned word, int i) {
  return static_cast<signed char>(static_cast<unsigned char>(word >> 8 * i));
}

// As the kernel's lanes and the units read them.
void collect(const OctetTables& made, const ScoreWindow& window, Taps& out) {
  std::size_t product = 0;
  for (const CoarseStrips& strips : made.strips) {
    for (int step = 0; step < strips.steps; ++step, ++product) {
      for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
        const CoarseFactors& factors = made.factors[product * kWarpSize + lane];
        const CoarseMasks& masks = made.masks[product * kWarpSize + lane];
        const int at = strips.at[lane % kStrips];
        for (int k = 0; k < kStepRows; ++k) {
          const int y = window.top + at / kPitch + kStepRows * step + k;
          for (int i = 0; i < kStripWidth; ++i) {
            const Tap tap = {256 * signed_byte(factors.high[k], i) + signed_byte(factors.low[k], i),
                             signed_byte(masks.counts[k], i)};
            if (tap == Tap{}) continue;
            const int plane = made.octet.first_plane + static_cast<int>(lane) / kStrips;
            const auto key = std::make_tuple(plane, window.left + at % kPitch + i, y);
            EXPECT_EQ(out.count(key), 0U) << "twice";
            out[key] = tap;
          }
        }
      }
    }
  }
}

TEST(CoarseOctets, HaveEachPixelOfEachPlaneOnce) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const CoarseTables tables = make_tables(random, 1 + random() % 20);
    const auto made = octets_of(tables, {0.5, false}, 0, kPitch);
    ASSERT_TRUE(made);
    Taps found;
    for (const OctetTables& octet : made->octets) collect(octet, made->window, found);
    EXPECT_EQ(found, taps_of(tables));
  }
}

// The word of the last position's last strip, with what the kernel loads below it.
TEST(CoarseOctets, ReadNothingOutsideTheirTile) {
  constexpr int kWarps = 4;
  for (unsigned seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const CoarseTables tables = make_tables(random, 1 + random() % 20);
    const auto made = octets_of(tables, {0.5, false}, 0, kPitch);
    ASSERT_TRUE(made);
    EXPECT_EQ((tables.first_x + made->window.left) % 4, 0);
    for (const OctetTables& octet : made->octets) {
      for (const CoarseStrips& strips : octet.strips) {
        for (const int at : strips.at) {
          const int last_column = at % kPitch + kWarps * kScoreColumns - 1;
          EXPECT_LT(last_column, made->window.tile_columns(kWarps));
          const int rows = kScoreRows - 1 + kStepRows * strips.steps;
          EXPECT_LE(at / kPitch + rows, made->window.tile_rows());
        }
      }
      // One product is loaded ahead.
      int products = 1;
      for (const CoarseStrips& strips : octet.strips) products += strips.steps;
      EXPECT_EQ(octet.factors.size(), static_cast<std::size_t>(products) * kWarpSize);
      EXPECT_EQ(octet.masks.size(), octet.factors.size());
    }
  }
}

TEST(CoarseOctets, MultiplyLittleMoreThanTheStripsOfTheirMasks) {
  // A diamond of 23 rows: as wide strips as the planes of a square turned by 45 degrees.
  CoarseTables tables;
  tables.blocks = 1;
  tables.rows = 8;
  CoarseTables::Plane plane;
  plane.left = plane.top = -11;
  plane.width = plane.height = 23;
  plane.taps.assign(23 * 23, 1);
  for (int row = -11; row <= 11; ++row)
    plane.runs.push_back({row, -11 + std::abs(row), 12 - std::abs(row)});
  plane.block_class.assign(8, CoarseTables::kAllVisible);
  tables.planes.push_back(plane);
  tables.groups.resize(1);
  const auto made = octets_of(tables, {0.5, false}, 0, kPitch);
  ASSERT_TRUE(made);
  int steps = 0;
  for (const CoarseStrips& strips : made->octets[0].strips) steps += strips.steps;
  // 88 times four pixels; all of the box were 138.
  EXPECT_LE(steps * kStrips * kStepRows, 96);
}

TEST(CoarseOctets, TellWhichTilesSeeAllAndWhichAreNotSearched) {
  std::mt19937 random(5);
  CoarseTables tables = make_tables(random, 9);
  for (CoarseTables::Plane& plane : tables.planes) plane.pixels = 40;
  const auto set = [&](std::size_t plane, int row, int block, std::int32_t kind) {
    const int number = row * tables.blocks + block;
    tables.planes[plane].block_class[static_cast<std::size_t>(number)] = kind;
  };
  // A border block in the first octet's first row of tiles: what is not searched, in part, and all.
  CoarseTables::Border border{};
  std::fill(std::begin(border.pixels), std::end(border.pixels), 40);
  border.pixels[0] = 0;
  border.pixels[1] = 39;
  border.sum[1] = -78;
  border.inverse_norm[1] = 0.1;
  tables.planes[3].border.push_back(border);
  set(3, 2, 1, 0);
  for (int row = 8; row < 16; ++row) set(8, row, 2, CoarseTables::kSkip);
  const auto made = octets_of(tables, {0.5, false}, 0, kPitch);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->octets.size(), 2U);
  const auto& first = made->octets[0].tiles;
  const auto& second = made->octets[1].tiles;
  // Three rows of six tiles, two a block; the last row has four of eight positions only.
  ASSERT_EQ(first.size(), 18U);
  EXPECT_EQ(first[0], kTileAllVisible);
  ASSERT_EQ(first[2], 0);
  EXPECT_EQ(first[3], kTileAllVisible);
  EXPECT_EQ(second[2], kTileAllVisible);
  EXPECT_EQ(second[9], kTileAllVisible);
  EXPECT_EQ(second[10], kTileSkipped);
  EXPECT_EQ(second[11], kTileSkipped);
  EXPECT_EQ(first[12], 1);
  const auto& kinds = made->octets[0].tile_kinds;
  EXPECT_EQ(kinds[0].kinds[3][3], kCoarseAllVisible);
  EXPECT_EQ(kinds[1].kinds[7][3], kCoarseAllVisible);
  EXPECT_EQ(kinds[1].kinds[7][4], kCoarseSkip);
  const int part = kinds[0].kinds[3][2];
  ASSERT_GE(part, 0);
  const CoarseTerms* terms = &made->octets[0].parts[static_cast<std::size_t>(part) * 8];
  EXPECT_EQ(terms[0].gain, 0.0F);
  EXPECT_EQ(terms[1].pixels, 39.0F);
  EXPECT_EQ(terms[1].mean, -2.0F);
  EXPECT_GT(terms[1].gain, 0.0F);
  EXPECT_EQ(terms[2].pixels, 40.0F);
  // The second octet has one plane.
  EXPECT_EQ(made->octets[1].terms[1].gain, 0.0F);
}

TEST(CoarseOctets, RefuseAWeightOfMoreThanTwoSignedBytes) {
  std::mt19937 random(6);
  CoarseTables tables = make_tables(random, 1);
  tables.planes[0].taps[0] = 32639;
  EXPECT_TRUE(octets_of(tables, {0.5, false}, 0, kPitch));
  tables.planes[0].taps[0] = 32640;
  EXPECT_FALSE(octets_of(tables, {0.5, false}, 0, kPitch));
}

}  // namespace
}  // namespace patternd::cuda
