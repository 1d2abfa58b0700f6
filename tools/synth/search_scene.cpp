#include "tools/synth/search_scene.h"

#include <memory>
#include <utility>

#include "pipeline/matcher.h"

namespace patternd::synth {

Result<std::vector<Find>> search_scene(const AccuracyScene& scene, double min_score) {
  auto taught = teach_pattern("p", scene.pattern.view(), {}, {});
  if (!taught) return tl::make_unexpected(taught.error());
  PatternSearch search;
  search.pattern = std::make_shared<const Pattern>(std::move(*taught));
  search.params.min_score = min_score;
  MatcherConfig config;
  config.width = scene.picture.width();
  config.height = scene.picture.height();
  config.patterns.push_back(std::move(search));
  auto matcher = Matcher::create(config, nullptr);
  if (!matcher) return tl::make_unexpected(matcher.error());
  std::vector<Match> matches;
  StageTimes times;
  matcher->match(scene.picture.view(), matches, times);
  std::vector<Find> finds;
  for (const Match& match : matches)
    finds.push_back({match.x_px, match.y_px, match.angle_deg, match.score, match.x_std_px,
                     match.y_std_px, match.angle_std_deg});
  return finds;
}

}  // namespace patternd::synth
