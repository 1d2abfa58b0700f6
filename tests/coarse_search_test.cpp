#include "pipeline/coarse_search.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>

#include "tests/support/match_scene.h"

namespace patternd {
namespace {

// Bands of every width and phase against the plain loops; extremes as well as noise.
TEST(CoarseSearchKernel, CorrelatesExactlyAsThePlainVersion) {
  std::mt19937 random(5);
  SCOPED_TRACE("seed 5");
  for (int extreme : {0, 1, 2}) {
    CoarseImage image(83, 40, 40);
    auto level = Image::create(83, 40, PixelFormat::kGray8);
    for (int y = 0; y < 40; ++y)
      for (int x = 0; x < 83; ++x)
        level->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(extreme == 0   ? random() & 0xFF
                                                                   : extreme == 1 ? 0
                                                                                  : 255);
    image.build(level->view());
    for (int pairs = 1; pairs < 12; ++pairs) {
      BandWeights band;
      for (int row = -2; row < 5; ++row) {
        for (int i = 0; i < pairs; ++i) {
          // Every part gets pairs: weights of 0 above, below, around, and none.
          std::int32_t weights[kBand];
          for (int k = 0; k < kBand; ++k)
            weights[k] =
                (random() & 3U) == 0 ? 0 : static_cast<std::int32_t>(random() & 0x3FFF3FFF);
          band.add({row, -pairs + 2 * i}, weights);
        }
      }
      for (int blocks = 1; blocks <= 5; ++blocks) {
        const int width = blocks * kBlock;
        std::vector<std::int32_t> fast(static_cast<std::size_t>(width * kBand) + 1, -7);
        std::vector<std::int32_t> plain = fast;
        correlate_band(band, image.rows(), 3, -9, -9 + width, fast.data(), width);
        correlate_band_reference(band, image.rows(), 3, -9, -9 + width, plain.data(), width);
        ASSERT_EQ(fast, plain) << pairs << " pairs, " << blocks << " blocks";
      }
    }
  }
}

TEST(CoarseSearchKernel, SumsWindowsOverRunsExactly) {
  std::mt19937 random(6);
  SCOPED_TRACE("seed 6");
  for (PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    auto level = Image::create(50, 30, format);
    for (int y = 0; y < 30; ++y)
      for (std::size_t i = 0; i < 50 * bytes_per_pixel(format); ++i)
        level->view().row_bytes(y)[i] = static_cast<std::uint8_t>(random());
    CoarseImage image(50, 30, 48);
    image.build(level->view());
    const std::vector<MaskRun> runs = {{-2, -3, 4}, {-2, 6, 7}, {0, -5, 5}, {1, 0, 1}};
    for (int x : {-12, 0, 31, 40}) {
      BlockSums sums;
      window_sums(runs, image.rows(), x, 4, sums);
      for (int i = 0; i < kBlock; ++i) {
        std::int64_t sum = 0;
        std::int64_t square = 0;
        for (const MaskRun& run : runs) {
          for (int c = run.begin; c < run.end; ++c) {
            const int px = x + i + c;
            if (px < 0 || px >= 50) continue;
            const int s = format == PixelFormat::kGray8
                              ? level->row<std::uint8_t>(4 + run.row)[px] - 128
                              : (level->row<std::uint16_t>(4 + run.row)[px] >> 6) - 512;
            sum += s;
            square += s * s;
          }
        }
        ASSERT_EQ(static_cast<std::int32_t>(sums.sum[i]), sum);
        ASSERT_EQ(sums.square[i], square);
      }
    }
  }
}

struct CoarseScene {
  Pattern pattern;
  std::vector<PatternLevel> pyramid;
  CoarseConfig config;
};

CoarseScene coarse_scene(const Image& picture, const Image& pattern, std::vector<double> angles) {
  CoarseScene out;
  out.pattern = std::move(*teach_pattern("part", pattern.view(), {}, {}));
  out.pyramid = make_pattern_pyramid(out.pattern, 0);
  out.config.width = picture.width();
  out.config.height = picture.height();
  out.config.angles_deg = std::move(angles);
  out.config.scales = {1};
  out.config.peaks_per_plane = 4000;
  return out;
}

std::vector<PlanePeak> search_all(CoarseSearch& search, const Image& picture,
                                  const ImageView& valid = {}) {
  CoarseImage image(picture.width(), picture.height(), search.margin(), valid);
  image.build(picture.view());
  CoarseSearch::Scratch scratch(search);
  for (std::size_t g = 0; g < search.groups(); ++g) search.search_group(g, image.rows(), scratch);
  std::vector<PlanePeak> peaks;
  peaks.reserve(4000);
  search.suppress(peaks);
  return peaks;
}

// NCC by the formula over every position of an unturned pattern: the map's maxima must all be
// there, with their scores, and nothing else.
TEST(CoarseSearch, FindsExactlyTheLocalMaximaOfTheScoreMap) {
  const Image pattern = test::made_texture(17, 14, 4);
  const Image picture = test::made_texture(71, 53, 9);
  CoarseScene scene = coarse_scene(picture, pattern, {0});
  scene.config.threshold = 0.2;
  CoarseSearch search(scene.pyramid, scene.config);
  const auto peaks = search_all(search, picture);

  const int columns = 71 - 17 + 1;
  const int rows = 53 - 14 + 1;
  std::vector<double> map(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
  const auto at = [&](int x, int y) -> double& {
    const int index = y * columns + x;
    return map[static_cast<std::size_t>(index)];
  };
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x)
      at(x, y) = test::reference_score(picture.view(), pattern.view(), {}, {x + 8.0, y + 6.5});
  std::size_t expected = 0;
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      bool is_maximum = at(x, y) > 0.2;
      for (int k = 0; k < 9 && is_maximum; ++k) {
        const int nx = x + k % 3 - 1;
        const int ny = y + k / 3 - 1;
        if (nx >= 0 && ny >= 0 && nx < columns && ny < rows && at(nx, ny) > at(x, y))
          is_maximum = false;
      }
      if (!is_maximum) continue;
      ++expected;
      const bool found = std::any_of(peaks.begin(), peaks.end(), [&](const PlanePeak& peak) {
        const CoarseFind find = search.find(peak);
        return std::abs(find.x - (x + 8.0)) < 0.1 && std::abs(find.y - (y + 6.5)) < 0.1 &&
               std::abs(find.score - at(x, y)) < 2e-4;
      });
      EXPECT_TRUE(found) << x << ", " << y << " score " << at(x, y);
    }
  }
  EXPECT_EQ(peaks.size(), expected);
  EXPECT_GT(expected, 3U);
}

TEST(CoarseSearch, ScoresPartsCutOffByTheBorderOverWhatIsVisible) {
  const Image pattern = test::made_texture(24, 24, 4);
  test::MatchScene made;
  made.width = 80;
  made.height = 60;
  made.placed = {{4.0, 30.5, 0}};  // a third hangs out on the left
  const Image picture = test::render_scene(made, pattern.view(), {}, {});
  CoarseScene scene = coarse_scene(picture, pattern, {0});
  scene.config.least_visible = 0.6;
  scene.config.threshold = 0.8;
  CoarseSearch search(scene.pyramid, scene.config);
  const auto peaks = search_all(search, picture);
  ASSERT_FALSE(peaks.empty());
  const CoarseFind best = search.find(peaks[0]);
  EXPECT_NEAR(best.x, 4.0, 0.6);
  EXPECT_NEAR(best.y, 30.5, 0.6);
  EXPECT_GT(best.score, 0.9);
}

// The bounds that rule windows out, at borders too, where a window's mean is not the template's.
TEST(CoarseSearch, LosesNothingOverAThresholdThatALowerOneFinds) {
  const Image pattern = test::made_texture(19, 13, 4);
  for (unsigned seed : {21U, 22U, 23U}) {
    for (bool any_polarity : {false, true}) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " any polarity " << any_polarity);
      Image picture = test::made_texture(67, 49, seed);
      for (int y = 0; y < 49; ++y)
        for (int x = 0; x < 67; ++x)
          picture.row<std::uint8_t>(y)[x] =
              static_cast<std::uint8_t>(picture.row<std::uint8_t>(y)[x] / 2 + 2 * y);
      auto valid = Image::create(67, 49, PixelFormat::kGray8);
      for (int y = 0; y < 49; ++y)
        for (int x = 0; x < 67; ++x)
          valid->row<std::uint8_t>(y)[x] = x + y > 20 && y < 45 ? 255 : 0;
      CoarseScene scene = coarse_scene(picture, pattern, {0, 9, 18, 27, 36, 45, 54, 63, 72, 81});
      scene.config.least_visible = 0.4;
      scene.config.any_polarity = any_polarity;
      scene.config.valid = valid->view();
      const auto finds = [&](double threshold) {
        scene.config.threshold = threshold;
        CoarseSearch search(scene.pyramid, scene.config);
        std::vector<CoarseFind> out;
        for (const PlanePeak& peak : search_all(search, picture, valid->view()))
          if (static_cast<double>(peak.peak.score) > 0.4) out.push_back(search.find(peak));
        return out;
      };
      const auto all = finds(0.01);
      const auto bounded = finds(0.4);
      ASSERT_EQ(bounded.size(), all.size());
      EXPECT_GT(all.size(), 5U);
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(bounded[i].x, all[i].x);
        EXPECT_EQ(bounded[i].y, all[i].y);
        EXPECT_EQ(bounded[i].angle_deg, all[i].angle_deg);
        EXPECT_EQ(bounded[i].score, all[i].score);
      }
    }
  }
}

TEST(CoarseSearch, DoesNotSeeWhatInvalidPixelsHold) {
  const Image pattern = test::made_texture(24, 24, 4);
  test::MatchScene made;
  made.width = 80;
  made.height = 60;
  made.placed = {{30.0, 30.5, 0}};  // a sixth lies in the invalid area
  const Image scene_picture = test::render_scene(made, pattern.view(), {}, {});
  auto valid = Image::create(80, 60, PixelFormat::kGray8);
  for (int y = 0; y < 60; ++y)
    for (int x = 0; x < 80; ++x) valid->row<std::uint8_t>(y)[x] = x >= 22 ? 255 : 0;
  for (std::uint8_t filling : {0, 77, 255}) {
    SCOPED_TRACE(static_cast<int>(filling));
    auto picture = Image::copy_of(scene_picture.view());
    for (int y = 0; y < 60; ++y)
      for (int x = 0; x < 22; ++x) picture->row<std::uint8_t>(y)[x] = filling;
    CoarseScene scene = coarse_scene(*picture, pattern, {0});
    scene.config.least_visible = 0.6;
    scene.config.threshold = 0.8;
    scene.config.valid = valid->view();
    CoarseSearch search(scene.pyramid, scene.config);
    const auto peaks = search_all(search, *picture, valid->view());
    ASSERT_EQ(peaks.size(), 1U);
    const CoarseFind best = search.find(peaks[0]);
    EXPECT_NEAR(best.x, 30.0, 0.6);
    EXPECT_NEAR(best.y, 30.5, 0.6);
    EXPECT_GT(best.score, 0.95);
  }
}

TEST(CoarseSearch, FlatPicturesHaveNoPeaksWhateverTheirGreyLevel) {
  const Image pattern = test::made_texture(20, 20, 4);
  for (std::uint8_t level : {0, 1, 127, 128, 255}) {
    auto picture = Image::create(64, 64, PixelFormat::kGray8);
    picture->fill_bytes(level);
    CoarseScene scene = coarse_scene(*picture, pattern, {0, 45, 90});
    scene.config.threshold = 0.01;
    scene.config.least_visible = 0.5;
    scene.config.any_polarity = true;
    CoarseSearch search(scene.pyramid, scene.config);
    EXPECT_TRUE(search_all(search, *picture).empty()) << static_cast<int>(level);
  }
}

}  // namespace
}  // namespace patternd
