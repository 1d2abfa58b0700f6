#include "pipeline/matcher.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/match_angles.h"
#include "tests/support/match_scene.h"

namespace patternd {
namespace {

using test::Placed;

std::shared_ptr<const Pattern> taught(const Image& picture, const Image& mask = Image()) {
  auto pattern = teach_pattern("part", picture.view(), mask.view(), {});
  EXPECT_TRUE(pattern) << (pattern ? "" : pattern.error().message);
  return pattern ? std::make_shared<const Pattern>(std::move(*pattern)) : nullptr;
}

std::vector<Match> matches_in(const ImageView& image, const std::shared_ptr<const Pattern>& pattern,
                              const SearchParams& params = {}, ThreadPool* pool = nullptr) {
  MatcherConfig config;
  config.width = image.width;
  config.height = image.height;
  config.format = image.format;
  config.patterns = {{pattern, params}};
  auto matcher = Matcher::create(config, pool);
  EXPECT_TRUE(matcher) << (matcher ? "" : matcher.error().message);
  std::vector<Match> matches;
  StageTimes times;
  if (matcher) matcher->match(image, matches, times);
  return matches;
}

void expect_at(const Match& match, const Placed& truth, double within_px, double within_deg) {
  EXPECT_NEAR(match.x_px, truth.x, within_px);
  EXPECT_NEAR(match.y_px, truth.y, within_px);
  EXPECT_NEAR(wrap_deg(match.angle_deg - truth.angle_deg), 0, within_deg);
}

TEST(Matcher, FindsThePatternTurnedBy37DegreesBetweenPixels) {
  const Image pattern = test::made_texture(96, 80, 3);
  test::MatchScene scene;
  scene.placed = {{201.3, 155.8, 37.2}};
  scene.noise_sigma = 5;
  scene.light_gradient = 0.4;
  const Image image =
      test::render_scene(scene, pattern.view(), {}, test::made_texture(640, 480, 77).view());
  const auto matches = matches_in(image.view(), taught(pattern));
  ASSERT_EQ(matches.size(), 1U);
  expect_at(matches[0], scene.placed[0], 0.04, 0.04);
  EXPECT_GT(matches[0].score, 0.9);
  EXPECT_LE(matches[0].score, 1.0);
}

}  // namespace
}  // namespace patternd
