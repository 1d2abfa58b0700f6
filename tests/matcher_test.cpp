#include "pipeline/matcher.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/match_angles.h"
#include "tests/support/match_scene.h"

namespace patternd {

// So that failures say what was found.
void PrintTo(const Match& match, std::ostream* out) {
  *out << "(" << match.x_px << ", " << match.y_px << ") at " << match.angle_deg << " score "
       << match.score << " visible " << match.visible;
}

namespace {

using test::MatchScene;
using test::Placed;
using testing::HasSubstr;
using testing::SizeIs;

std::shared_ptr<const Pattern> taught(const Image& picture, const Image& mask = Image()) {
  auto pattern = teach_pattern("part", picture.view(), mask.view(), {});
  EXPECT_TRUE(pattern) << (pattern ? "" : pattern.error().message);
  return pattern ? std::make_shared<const Pattern>(std::move(*pattern)) : nullptr;
}

MatcherConfig config_for(const ImageView& image, const std::shared_ptr<const Pattern>& pattern,
                         const SearchParams& params) {
  MatcherConfig config;
  config.width = image.width;
  config.height = image.height;
  config.format = image.format;
  config.patterns = {{pattern, params}};
  return config;
}

std::vector<Match> matches_with(const MatcherConfig& config, const ImageView& image,
                                ThreadPool* pool = nullptr) {
  auto matcher = Matcher::create(config, pool);
  EXPECT_TRUE(matcher) << (matcher ? "" : matcher.error().message);
  std::vector<Match> matches;
  StageTimes times;
  if (matcher) matcher->match(image, matches, times);
  for (const Match& match : matches) {
    SCOPED_TRACE(testing::Message() << match.x_px << ", " << match.y_px << " at " << match.angle_deg
                                    << " score " << match.score);
    EXPECT_LE(std::abs(match.score), 1);
    EXPECT_TRUE(std::isfinite(match.score + match.x_px + match.y_px + match.angle_deg +
                              match.x_std_px + match.y_std_px + match.angle_std_deg));
    EXPECT_GE(match.angle_deg, -180);
    EXPECT_LT(match.angle_deg, 180);
  }
  return matches;
}

std::vector<Match> matches_in(const Image& image, const std::shared_ptr<const Pattern>& pattern,
                              const SearchParams& params = {}) {
  return matches_with(config_for(image.view(), pattern, params), image.view());
}

void expect_at(const Match& match, const Placed& truth, double within_px, double within_deg) {
  EXPECT_NEAR(match.x_px, truth.x, within_px);
  EXPECT_NEAR(match.y_px, truth.y, within_px);
  EXPECT_NEAR(wrap_deg(match.angle_deg - truth.angle_deg), 0, within_deg);
  EXPECT_NEAR(match.scale, truth.scale, 0.003);
}

Image background(unsigned seed = 77) { return test::made_texture(640, 480, seed); }

TEST(Matcher, FindsThePatternTurnedBy37DegreesBetweenPixels) {
  const Image pattern = test::made_texture(96, 80, 3);
  MatchScene scene;
  scene.placed = {{201.3, 155.8, 37.2}};
  scene.noise_sigma = 5;
  scene.light_gradient = 0.4;
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  const auto matches = matches_in(image, taught(pattern));
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], scene.placed[0], 0.04, 0.04);
  EXPECT_NEAR(matches[0].score,
              test::reference_score(image.view(), pattern.view(), {}, scene.placed[0]), 0.002);
  EXPECT_GT(matches[0].x_std_px, 0);
  EXPECT_LT(matches[0].x_std_px, 0.05);
}

TEST(Matcher, ReportsTheScoreOfTheFormulaAtItsPose) {
  const Image pattern = test::made_texture(61, 47, 8);
  MatchScene scene;
  scene.placed = {{301.0, 155.0, 0}, {121.7, 300.2, -120}};
  scene.noise_sigma = 12;
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  const auto matches = matches_in(image, taught(pattern));
  ASSERT_THAT(matches, SizeIs(2));
  for (const Match& match : matches) {
    const Placed pose{match.x_px, match.y_px, match.angle_deg};
    EXPECT_NEAR(match.score, test::reference_score(image.view(), pattern.view(), {}, pose), 2e-3);
  }
}

// The thesis's way of checking: a picture whose answer is plain by hand.
TEST(Matcher, FindsAnUnturnedCopyExactlyWithScoreOne) {
  const Image pattern = test::made_texture(32, 32, 5);
  MatchScene scene;
  scene.width = 96;
  scene.height = 64;
  const Image empty = test::render_scene(scene, pattern.view(), {}, {});
  Image image = std::move(*Image::copy_of(empty.view()));
  for (int y = 0; y < 32; ++y)
    std::copy_n(pattern.row<std::uint8_t>(y), 32, image.row<std::uint8_t>(20 + y) + 41);
  const auto matches = matches_in(image, taught(pattern));
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], {41 + 15.5, 20 + 15.5, 0}, 0.005, 0.01);
  EXPECT_NEAR(matches[0].score, 1, 1e-4);
  EXPECT_DOUBLE_EQ(matches[0].visible, 1);
}

// Tiny and plain: a white L of 8×8 pixels on black, upright at (7, 4) and on its side at (22, 6).
TEST(Matcher, FindsTheTwoLsThatOneCanPointAt) {
  const auto inside_l = [](int x, int y) { return x < 3 || y >= 5; };
  Image pattern = std::move(*Image::create(8, 8, PixelFormat::kGray8));
  Image image = std::move(*Image::create(37, 21, PixelFormat::kGray8));
  image.fill_bytes(0);
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 8; ++x) {
      const auto grey = static_cast<std::uint8_t>(inside_l(x, y) ? 255 : 0);
      pattern.row<std::uint8_t>(y)[x] = grey;
      image.row<std::uint8_t>(4 + y)[7 + x] = grey;
      image.row<std::uint8_t>(6 + x)[22 + 7 - y] = grey;  // clockwise by 90°
    }
  }
  const auto matches = matches_in(image, taught(pattern));
  ASSERT_THAT(matches, SizeIs(2));
  for (const Match& match : matches) {
    const bool upright = match.x_px < 18;
    expect_at(match, upright ? Placed{10.5, 7.5, 0} : Placed{25.5, 9.5, 90}, 0.01, 0.05);
    EXPECT_NEAR(match.score, 1, 1e-3);
  }
}

TEST(Matcher, FindsPatternsInAllCornersAndAlongTheLastRowAndColumn) {
  const Image pattern = test::made_texture(50, 46, 6);
  for (const auto& [width, height] : {std::pair{321, 243}, std::pair{320, 240}}) {
    MatchScene scene;
    scene.width = width;
    scene.height = height;
    const double right = width - 1 - 24.5;
    const double bottom = height - 1 - 22.5;
    scene.placed = {{24.5, 22.5, 0},    {right, 22.5, 0}, {24.5, bottom, 0},    {right, bottom, 0},
                    {160, bottom, 180}, {right, 120, 0},  {right - 80, 100, 90}};
    const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
    SearchParams params;
    params.min_score = 0.9;
    const auto matches = matches_in(image, taught(pattern), params);
    EXPECT_THAT(matches, SizeIs(scene.placed.size())) << width << "x" << height;
    for (const Placed& placed : scene.placed) {
      const bool found = std::any_of(matches.begin(), matches.end(), [&](const Match& m) {
        return std::hypot(m.x_px - placed.x, m.y_px - placed.y) < 0.05;
      });
      EXPECT_TRUE(found) << placed.x << ", " << placed.y << " in " << width << "x" << height;
    }
  }
}

TEST(Matcher, LooksOnlyAtUnmaskedPixels) {
  const Image pattern = test::made_texture(80, 80, 3);
  auto mask = Image::create(80, 80, PixelFormat::kGray8);
  for (int y = 0; y < 80; ++y) {
    for (int x = 0; x < 80; ++x) {
      const double r = std::hypot(x - 39.5, y - 39.5);
      mask->row<std::uint8_t>(y)[x] = r < 39 && r > 9 ? 1 : 0;  // a ring: round, with a hole
    }
  }
  MatchScene scene;
  scene.placed = {{300.2, 200.7, 66}};
  const Image image = test::render_scene(scene, pattern.view(), mask->view(), background().view());
  const auto matches = matches_in(image, taught(pattern, *mask));
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], scene.placed[0], 0.05, 0.05);
  EXPECT_GT(matches[0].score, 0.98);
}

TEST(Matcher, FindsNothingInPicturesWithoutContrast) {
  const auto pattern = taught(test::made_texture(40, 40, 3));
  for (int level : {0, 128, 255}) {
    auto image = Image::create(161, 99, PixelFormat::kGray8);
    image->fill_bytes(static_cast<std::uint8_t>(level));
    SearchParams params;
    params.min_score = 0.05;
    params.min_visible = 0.5;
    params.polarity = Polarity::kAny;
    EXPECT_THAT(matches_in(*image, pattern, params), SizeIs(0)) << level;
    // One pixel off, and single grey levels of noise: still under min_contrast.
    for (int y = 0; y < 99; y += 2)
      for (int x = 0; x < 161; x += 3) image->row<std::uint8_t>(y)[x] ^= 1;
    EXPECT_THAT(matches_in(*image, pattern, params), SizeIs(0)) << level;
  }
}

TEST(Matcher, FindsFaintCopiesAboveMinContrastOnly) {
  const Image pattern = test::made_texture(64, 64, 3);
  auto faint = Image::create(64, 64, PixelFormat::kGray8);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      faint->row<std::uint8_t>(y)[x] =
          static_cast<std::uint8_t>(100 + pattern.row<std::uint8_t>(y)[x] / 10);
  MatchScene scene;
  scene.width = 200;
  scene.height = 150;
  scene.placed = {{90, 70, 30}};
  const Image image = test::render_scene(scene, faint->view(), {}, {});
  SearchParams params;
  EXPECT_THAT(matches_in(image, taught(pattern), params), SizeIs(1));
  params.min_contrast = 40;
  EXPECT_THAT(matches_in(image, taught(pattern), params), SizeIs(0));
}

// Light stays while the levels average contrast away: at the coarsest level of seed 3 its ramp is
// stronger than the pattern.
TEST(Matcher, FindsBrightPatternsOfLittleContrastUnderUnevenLight) {
  for (unsigned seed : {1U, 2U, 3U}) {
    const Image texture = test::made_texture(242, 212, seed);
    auto faint = Image::create(242, 212, PixelFormat::kGray8);
    for (int y = 0; y < 212; ++y)
      for (int x = 0; x < 242; ++x)
        faint->row<std::uint8_t>(y)[x] =
            static_cast<std::uint8_t>(180 + texture.row<std::uint8_t>(y)[x] / 4);
    MatchScene scene;
    scene.width = 800;
    scene.height = 600;
    scene.placed = {{220.3 + 10 * seed, 300.7, 23.0 * seed}};
    scene.noise_sigma = 5;
    scene.light_gradient = 0.4;
    scene.seed = seed;
    const Image image = test::render_scene(scene, faint->view(), {}, background().view());
    SearchParams params;
    params.max_matches = 1;
    params.min_score =
        test::reference_score(image.view(), faint->view(), {}, scene.placed[0]) - 0.03;
    SCOPED_TRACE(testing::Message() << "seed " << seed << " min_score " << params.min_score);
    const auto matches = matches_in(image, taught(*faint), params);
    ASSERT_THAT(matches, SizeIs(1));
    expect_at(matches[0], scene.placed[0], 0.5, 0.3);
  }
}

TEST(Matcher, FindsPatternsThatSaturate) {
  Image pattern = test::made_texture(64, 64, 3);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      pattern.row<std::uint8_t>(y)[x] = pattern.row<std::uint8_t>(y)[x] > 130 ? 255 : 0;
  MatchScene scene;
  scene.placed = {{150.5, 170.25, -77}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  const auto matches = matches_in(image, taught(pattern));
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], scene.placed[0], 0.05, 0.05);
}

TEST(Matcher, Finds16BitPatternsIn16BitPictures) {
  const Image pattern = test::made_texture(72, 60, 3, PixelFormat::kGray16);
  MatchScene scene;
  scene.format = PixelFormat::kGray16;
  scene.placed = {{310.3, 222.2, 141}};
  scene.noise_sigma = 3;
  const Image image = test::render_scene(
      scene, pattern.view(), {}, test::made_texture(300, 300, 9, PixelFormat::kGray16).view());
  const auto matches = matches_in(image, taught(pattern));
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], scene.placed[0], 0.04, 0.04);
}

TEST(Matcher, FindsOnePixelTexture) {
  // Noise in every pixel: no coarser level shows anything, so the search starts at level 0.
  auto pattern = Image::create(24, 24, PixelFormat::kGray8);
  unsigned state = 1;
  for (int y = 0; y < 24; ++y) {
    for (int x = 0; x < 24; ++x) {
      state = state * 1664525U + 1013904223U;
      pattern->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(state >> 24);
    }
  }
  MatchScene scene;
  scene.width = 90;
  scene.height = 70;
  Image image = test::render_scene(scene, pattern->view(), {}, {});
  for (int y = 0; y < 24; ++y)
    std::copy_n(pattern->row<std::uint8_t>(y), 24, image.row<std::uint8_t>(31 + y) + 47);
  const auto matches = matches_in(image, taught(*pattern));
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], {47 + 11.5, 31 + 11.5, 0}, 0.01, 0.05);
}

TEST(Matcher, TakesAPatternAsLargeAsThePictureAndRefusesALargerOne) {
  const Image pattern = test::made_texture(64, 48, 3);
  const auto shared = taught(pattern);
  const auto matches = matches_in(pattern, shared);
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], {31.5, 23.5, 0}, 0.01, 0.02);
  for (const auto& [width, height] : {std::pair{63, 100}, std::pair{100, 47}}) {
    MatcherConfig config;
    config.width = width;
    config.height = height;
    config.patterns = {{shared, {}}};
    auto refused = Matcher::create(config, nullptr);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("64x48"));
    EXPECT_THAT(refused.error().message,
                HasSubstr(std::to_string(width) + "x" + std::to_string(height)));
  }
}

TEST(Matcher, ReportsAnglesInTheHalfOpenCircle) {
  const Image pattern = test::made_texture(60, 60, 3);
  const auto shared = taught(pattern);
  for (double angle : {-180.0, 179.99, 180.0, -179.99, 0.0, 360.0}) {
    MatchScene scene;
    scene.width = 200;
    scene.height = 160;
    scene.placed = {{100, 80, angle}};
    const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
    const auto matches = matches_in(image, shared);
    ASSERT_THAT(matches, SizeIs(1)) << angle;
    expect_at(matches[0], scene.placed[0], 0.05, 0.05);
  }
}

TEST(Matcher, StaysInsideItsAngleRanges) {
  const Image pattern = test::made_texture(64, 64, 3);
  const auto shared = taught(pattern);
  MatchScene scene;
  scene.placed = {{100, 100, 175}, {300, 100, -172}, {500, 100, 20}, {100, 300, 90}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  SearchParams params;
  params.angle_deg = {{170, 190}, {15, 25}};
  const auto matches = matches_in(image, shared, params);
  EXPECT_THAT(matches, SizeIs(3));
  for (const Match& match : matches)
    EXPECT_TRUE(normalise_angles(params.angle_deg, 1).contains(match.angle_deg));
  // A single angle, and a range that ends just short of the truth: the angle stays at its bound.
  params.angle_deg = {{20, 20}};
  const auto single = matches_in(image, shared, params);
  ASSERT_THAT(single, SizeIs(1));
  EXPECT_DOUBLE_EQ(single[0].angle_deg, 20);
  EXPECT_NEAR(single[0].x_px, 500, 0.05);
  params.angle_deg = {{15, 19.5}};
  const auto bound = matches_in(image, shared, params);
  ASSERT_THAT(bound, SizeIs(1));
  EXPECT_LE(bound[0].angle_deg, 19.5);
  EXPECT_NEAR(bound[0].x_px, 500, 0.2);
}

TEST(Matcher, ReportsAnglesWithinTheDeclaredSymmetry) {
  // Built from its own four turned copies: looks the same every 90 degrees.
  const Image quarter = test::made_texture(65, 65, 3);
  auto pattern = Image::create(65, 65, PixelFormat::kGray8);
  for (int y = 0; y < 65; ++y)
    for (int x = 0; x < 65; ++x)
      pattern->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
          (quarter.row<std::uint8_t>(y)[x] + quarter.row<std::uint8_t>(x)[64 - y] +
           quarter.row<std::uint8_t>(64 - y)[64 - x] + quarter.row<std::uint8_t>(64 - x)[y]) /
          4);
  MatchScene scene;
  scene.placed = {{150, 150, 100}, {350, 250, -50}, {450, 100, 45}};
  const Image image = test::render_scene(scene, pattern->view(), {}, background().view());
  SearchParams params;
  params.symmetry = 4;
  const auto matches = matches_in(image, taught(*pattern), params);
  ASSERT_THAT(matches, SizeIs(3));
  for (const Match& match : matches) {
    EXPECT_GE(match.angle_deg, -45);
    EXPECT_LT(match.angle_deg, 45);
  }
}

TEST(Matcher, FindsNegativesOnlyWherePolarityIsAny) {
  const Image pattern = test::made_texture(64, 64, 3);
  MatchScene scene;
  Placed negative{200.4, 150.6, 33};
  negative.inverted = true;
  scene.placed = {negative, {420.2, 300.1, -60}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  SearchParams params;
  EXPECT_THAT(matches_in(image, taught(pattern), params), SizeIs(1));
  params.polarity = Polarity::kAny;
  const auto both = matches_in(image, taught(pattern), params);
  ASSERT_THAT(both, SizeIs(2));
  for (const Match& match : both) {
    EXPECT_GT(match.score, 0.9);
    const Placed& truth = match.inverted ? scene.placed[0] : scene.placed[1];
    expect_at(match, truth, 0.05, 0.05);
  }
  EXPECT_NE(both[0].inverted, both[1].inverted);
}

TEST(Matcher, FindsScalesWithinTheRange) {
  const Image pattern = test::made_texture(96, 96, 3);
  MatchScene scene;
  scene.placed = {{120, 120, 10, 0.82}, {350, 130, 77, 1.0}, {250, 330, -140, 1.22}};
  scene.noise_sigma = 3;
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  SearchParams params;
  params.scale = {0.8, 1.25};
  const auto matches = matches_in(image, taught(pattern), params);
  ASSERT_THAT(matches, SizeIs(3));
  for (const Placed& placed : scene.placed) {
    const auto found = std::find_if(matches.begin(), matches.end(), [&](const Match& m) {
      return std::hypot(m.x_px - placed.x, m.y_px - placed.y) < 1;
    });
    ASSERT_NE(found, matches.end());
    expect_at(*found, placed, 0.08, 0.08);
  }
}

TEST(Matcher, FindsPartsCutOffByTheBorderWithTheirVisibleShare) {
  const Image pattern = test::made_texture(80, 80, 3);
  MatchScene scene;
  scene.placed = {{16, 200, 0}, {620, 240, 90}, {300, 2, 30}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  SearchParams params;
  EXPECT_THAT(matches_in(image, taught(pattern), params), SizeIs(0));
  params.min_visible = 0.6;
  const auto matches = matches_in(image, taught(pattern), params);
  ASSERT_THAT(matches, SizeIs(2));  // of the third only about half is there
  for (const Match& match : matches) {
    const Placed& truth = match.x_px < 300 ? scene.placed[0] : scene.placed[1];
    expect_at(match, truth, 0.06, 0.06);
    EXPECT_NEAR(match.visible, match.x_px < 300 ? 56.5 / 80 : 59.5 / 80, 0.02);
  }
}

TEST(Matcher, KeepsToTheValidArea) {
  const Image pattern = test::made_texture(64, 64, 3);
  MatchScene scene;
  scene.placed = {{100, 100, 15}, {420, 300, 15}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  auto valid = Image::create(640, 480, PixelFormat::kGray8);
  for (int y = 0; y < 480; ++y)
    for (int x = 0; x < 640; ++x) valid->row<std::uint8_t>(y)[x] = x > 120 ? 255 : 0;
  MatcherConfig config = config_for(image.view(), taught(pattern), {});
  config.valid = valid->view();
  const auto matches = matches_with(config, image.view());
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], scene.placed[1], 0.05, 0.05);
}

TEST(Matcher, FindsTwoWhereTenAreWantedAndTheBestWhereFewerAre) {
  const Image pattern = test::made_texture(64, 64, 3);
  MatchScene scene;
  scene.placed = {{100, 100, 15}, {420, 300, -100}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  SearchParams params;
  params.max_matches = 10;
  EXPECT_THAT(matches_in(image, taught(pattern), params), SizeIs(2));
  params.max_matches = 1;
  EXPECT_THAT(matches_in(image, taught(pattern), params), SizeIs(1));
}

TEST(Matcher, ReportsOneObjectOnceAndTouchingObjectsEach) {
  const Image pattern = test::made_texture(48, 48, 3);
  MatchScene scene;
  for (int i = 0; i < 4; ++i) scene.placed.push_back({100.0 + 48 * i, 100, 0});
  for (int i = 0; i < 4; ++i) scene.placed.push_back({100.0 + 48 * i, 148, 180});
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  SearchParams params;
  params.min_score = 0.9;
  const auto matches = matches_in(image, taught(pattern), params);
  EXPECT_THAT(matches, SizeIs(8));
}

TEST(Matcher, LimitsWhereTheReferencePointMayLie) {
  const Image pattern = test::made_texture(64, 64, 3);
  TeachOptions options;
  options.ref_x = 0;
  options.ref_y = 0;
  auto made = teach_pattern("part", pattern.view(), {}, options);
  const auto shared = std::make_shared<const Pattern>(std::move(*made));
  MatchScene scene;
  scene.placed = {{200, 200, 90}, {400, 200, 90}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  SearchParams params;
  // Turned by 90 degrees the upper left corner comes to lie at the upper right.
  params.roi = Roi{225, 160, 20, 20};
  const auto matches = matches_in(image, shared, params);
  ASSERT_THAT(matches, SizeIs(1));
  expect_at(matches[0], {200 + 31.5, 200 - 31.5, 90}, 0.05, 0.05);
}

TEST(Matcher, SearchesManyPatternsInOnePicture) {
  const Image a = test::made_texture(64, 64, 3);
  const Image b = test::made_texture(90, 70, 4);
  MatchScene scene;
  scene.placed = {{150, 150, 15}};
  const Image with_a = test::render_scene(scene, a.view(), {}, background().view());
  scene.placed = {{420, 300, 99}};
  const Image image = test::render_scene(scene, b.view(), {}, with_a.view());
  MatcherConfig config = config_for(image.view(), taught(a), {});
  config.patterns.push_back({taught(b), {}});
  const auto matches = matches_with(config, image.view());
  ASSERT_THAT(matches, SizeIs(2));
  for (const Match& match : matches) {
    if (match.pattern == 0)
      expect_at(match, {150, 150, 15}, 0.05, 0.05);
    else
      expect_at(match, {420, 300, 99}, 0.05, 0.05);
  }
  EXPECT_GE(matches[0].score, matches[1].score);
}

TEST(Matcher, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Image pattern = test::made_texture(64, 64, 3);
  MatchScene scene;
  scene.placed = {{100, 100, 15}, {420, 300, -100}, {300, 100, 70}};
  scene.noise_sigma = 8;
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  const MatcherConfig config = config_for(image.view(), taught(pattern), {});
  const auto alone = matches_with(config, image.view());
  for (int threads : {2, 5}) {
    ThreadPool pool(threads);
    const auto together = matches_with(config, image.view(), &pool);
    ASSERT_EQ(alone.size(), together.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(alone[i].x_px, together[i].x_px);
      EXPECT_EQ(alone[i].y_px, together[i].y_px);
      EXPECT_EQ(alone[i].angle_deg, together[i].angle_deg);
      EXPECT_EQ(alone[i].score, together[i].score);
      EXPECT_EQ(alone[i].runner_up, together[i].runner_up);
    }
  }
}

TEST(Matcher, HasNoBiasBySubPixelPhase) {
  const Image pattern = test::made_texture(96, 96, 3);
  const auto shared = taught(pattern);
  for (int k = 0; k < 8; ++k) {
    MatchScene scene;
    scene.width = 200;
    scene.height = 160;
    scene.placed = {{100 + k / 8.0, 80 + ((k * 3) % 8) / 8.0, 0}};
    const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
    const auto matches = matches_in(image, shared);
    ASSERT_THAT(matches, SizeIs(1));
    expect_at(matches[0], scene.placed[0], 0.01, 0.01);
  }
}

// A texture of which the given share looks the same turned by half a circle.
Image half_symmetric_texture(int side, double share, unsigned seed) {
  const Image texture = test::made_texture(side, side, seed);
  Image out = std::move(*Image::create(side, side, PixelFormat::kGray8));
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const double here = texture.row<std::uint8_t>(y)[x];
      const double turned = texture.row<std::uint8_t>(side - 1 - y)[side - 1 - x];
      out.row<std::uint8_t>(y)[x] =
          static_cast<std::uint8_t>(here * (1 - share / 2) + turned * share / 2 + 0.5);
    }
  }
  return out;
}

TEST(Matcher, GivesTheRunnerUpTheScoreOfTheFormulaAndNoCoarseLevelsScore) {
  SCOPED_TRACE("seed 12");
  const Image pattern = half_symmetric_texture(80, 0.7, 12);
  MatchScene scene;
  scene.placed = {{300.3, 200.6, 25}};
  scene.noise_sigma = 3;
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  const double turned =
      test::reference_score(image.view(), pattern.view(), {}, {300.3, 200.6, 25 - 180});
  ASSERT_GT(turned, 0.65);
  ASSERT_LT(turned, 0.8);
  SearchParams params;
  params.max_matches = 1;
  params.min_score = turned - 0.05;
  const auto matches = matches_in(image, taught(pattern), params);
  ASSERT_THAT(matches, SizeIs(1));
  EXPECT_NEAR(matches[0].runner_up, turned, 0.02);
  // Dropped on the way down, where scores are higher, it doesn't come out higher.
  for (const double more : {0.02, 0.1, 0.2}) {
    params.min_score = turned + more;
    const auto fewer = matches_in(image, taught(pattern), params);
    ASSERT_THAT(fewer, SizeIs(1)) << params.min_score;
    EXPECT_LT(fewer[0].runner_up, turned + 0.02) << params.min_score;
  }
}

TEST(Matcher, GivesNoRunnerUpWhereNothingElseIsLikeThePattern) {
  const Image pattern = test::made_texture(80, 80, 12);
  MatchScene scene;
  scene.placed = {{300.3, 200.6, 25}};
  const Image image = test::render_scene(scene, pattern.view(), {}, background().view());
  const auto matches = matches_in(image, taught(pattern));
  ASSERT_THAT(matches, SizeIs(1));
  EXPECT_GE(matches[0].runner_up, 0);
  EXPECT_LT(matches[0].runner_up, 0.6);
}

TEST(Matcher, FindsADiscWithoutAnAngle) {
  auto disc = Image::create(64, 64, PixelFormat::kGray8);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      disc->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(
          std::clamp(200 - 30 * (std::hypot(x - 31.5, y - 31.5) - 22), 60.0, 200.0));
  const auto pattern = taught(*disc);
  ASSERT_TRUE(pattern->round);
  MatchScene scene;
  scene.placed = {{200.25, 100.5, 40}};
  const Image image = test::render_scene(scene, disc->view(), {}, {});
  const auto matches = matches_in(image, pattern);
  ASSERT_THAT(matches, SizeIs(1));
  EXPECT_NEAR(matches[0].x_px, 200.25, 0.05);
  EXPECT_NEAR(matches[0].y_px, 100.5, 0.05);
}

TEST(Matcher, RefusesParametersOutOfRangeByName) {
  const auto pattern = taught(test::made_texture(48, 48, 3));
  const auto message = [&](const SearchParams& params) {
    MatcherConfig config;
    config.width = 200;
    config.height = 200;
    config.patterns = {{pattern, params}};
    auto refused = Matcher::create(config, nullptr);
    return refused ? std::string("accepted") : refused.error().message;
  };
  SearchParams params;
  params.min_score = 0;
  EXPECT_EQ(message(params), "pattern part: min_score is 0; it must be over 0 and at most 1");
  params = {};
  params.min_score = std::nan("");
  EXPECT_THAT(message(params), HasSubstr("min_score is nan"));
  params = {};
  params.max_matches = 1001;
  EXPECT_THAT(message(params), HasSubstr("max_matches is 1001; it must be 1 to 1000"));
  params = {};
  params.angle_deg = {{20, 10}};
  EXPECT_THAT(message(params), HasSubstr("angle is [20, 10]"));
  params = {};
  params.scale = {0, 1};
  EXPECT_THAT(message(params), HasSubstr("scale is [0, 1]"));
  params = {};
  params.symmetry = 0;
  EXPECT_THAT(message(params), HasSubstr("symmetry is 0"));
  params = {};
  params.levels = 30;
  EXPECT_THAT(message(params), HasSubstr("levels is 30"));
  params = {};
  params.min_visible = 0;
  EXPECT_THAT(message(params), HasSubstr("min_visible is 0"));
}

TEST(Matcher, PredictsItsCostByItsSizes) {
  const auto pattern = taught(test::made_texture(96, 96, 3));
  const auto cost = [&](int width, int height) {
    MatcherConfig config;
    config.width = width;
    config.height = height;
    config.patterns = {{pattern, {}}};
    return Matcher::create(config, nullptr)->cost();
  };
  EXPECT_NEAR(cost(1280, 1280).operations / cost(640, 640).operations, 4, 0.5);
  EXPECT_GT(cost(640, 640).memory_bytes, 100'000U);
}

}  // namespace
}  // namespace patternd
