// `patternctl bench match`: time and error of a search, OpenCV's parts beside it, and how the time
// grows.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "pipeline/matcher.h"
#include "tools/bench/bench.h"
#include "tools/bench/match_scenes.h"
#include "tools/bench/opencv_pyramid.h"
#include "tools/bench/subjects.h"

namespace patternd::bench {
namespace {

constexpr int kRepetitions = 9;
constexpr double kMinScore = 0.7;

const std::vector<MatchSceneSpec>& peer_scenes() {
  static const std::vector<MatchSceneSpec> scenes = {
      {"a", 1024, 1024, 128, 128, 5, 11},
      {"b", 1920, 1080, 200, 150, 10, 12},
      {"c", 4000, 3000, 400, 400, 1, 13},
  };
  return scenes;
}

// A matcher with what one call of it filled in.
struct OurMatch {
  std::unique_ptr<Matcher> matcher;
  std::vector<Match> matches;
  StageTimes times;
};

// `half_range_deg`: angles from minus that to that; 180: all.
Result<OurMatch> make_ours(const MatchSceneData& data, int copies, double half_range_deg) {
  auto pattern = teach_pattern("part", data.pattern.view(), {}, {});
  if (!pattern) return tl::make_unexpected(pattern.error());
  auto shared = std::make_shared<const Pattern>(std::move(*pattern));
  MatcherConfig config;
  config.width = data.picture.width();
  config.height = data.picture.height();
  SearchParams params;
  params.min_score = kMinScore;
  params.max_matches = std::max(1, data.spec.instances);
  if (half_range_deg < 180) params.angle_deg = {{-half_range_deg, half_range_deg}};
  config.patterns.assign(static_cast<std::size_t>(copies), {shared, params});
  auto matcher = Matcher::create(config, nullptr);
  if (!matcher) return tl::make_unexpected(matcher.error());
  OurMatch out;
  out.matcher = std::make_unique<Matcher>(std::move(*matcher));
  out.matches.reserve(static_cast<std::size_t>(params.max_matches) *
                      static_cast<std::size_t>(copies));
  return out;
}

std::vector<Match> as_matches(const std::vector<OpencvPyramid::Hit>& hits) {
  std::vector<Match> out;
  for (const auto& hit : hits) {
    Match match;
    match.x_px = hit.x;
    match.y_px = hit.y;
    match.angle_deg = -hit.angle_deg;
    match.score = hit.score;
    out.push_back(match);
  }
  return out;
}

void print_errors(const Options& options, const MatchSceneSpec& spec, const std::string& who,
                  double time_us, double ratio, const MatchErrors& errors) {
  if (options.json) {
    const nlohmann::json line = {
        {"bench", "match"},         {"scene", spec.name},    {"who", who},
        {"time_us", time_us},       {"times_ours", ratio},   {"there", errors.there},
        {"found", errors.found},    {"wrong", errors.wrong}, {"rms_px", errors.rms_px},
        {"rms_deg", errors.rms_deg}};
    std::printf("%s\n", line.dump().c_str());
    return;
  }
  std::printf("  %-22s %9.2f ms %6.1f x   found %d of %d, wrong %d, rms %.4f px %.4f deg\n",
              who.c_str(), time_us * 1e-3, ratio, errors.found, errors.there, errors.wrong,
              errors.rms_px, errors.rms_deg);
}

Result<void> run_against_peer(const MatchPhotos& photos, const MatchSceneSpec& spec,
                              const Options& options) {
  auto data = make_match_scene(photos, spec);
  if (!data) return tl::make_unexpected(data.error());
  auto ours = make_ours(*data, 1, 180);
  if (!ours) return tl::make_unexpected(ours.error());
  const cv::Mat pattern = cv::Mat(data->pattern.height(), data->pattern.width(), CV_8U,
                                  data->pattern.view().data, data->pattern.view().stride_bytes)
                              .clone();
  const cv::Mat picture(data->picture.height(), data->picture.width(), CV_8U,
                        data->picture.view().data, data->picture.view().stride_bytes);
  OpencvPyramid by_pattern(OpencvPyramid::Turned::kPattern, spec.instances, kMinScore);
  OpencvPyramid by_picture(OpencvPyramid::Turned::kPicture, spec.instances, kMinScore);
  by_pattern.learn(pattern);
  by_picture.learn(pattern);
  std::vector<OpencvPyramid::Hit> pattern_hits;
  std::vector<OpencvPyramid::Hit> picture_hits;
  const int repetitions = options.repetitions > 0 ? options.repetitions : kRepetitions;
  StageTimes total;
  const auto timings = compare(
      {{"patternd", [&] { ours->matcher->match(data->picture.view(), ours->matches, total); }},
       {"OpenCV, pattern turned", [&] { pattern_hits = by_pattern.match(picture); }},
       {"OpenCV, picture turned", [&] { picture_hits = by_picture.match(picture); }}},
      repetitions, Clock::kThreadCpu);
  if (!options.json) {
    std::printf("scene (%s): %dx%d, pattern %dx%d, %d instances; stages, us:", spec.name.c_str(),
                spec.width, spec.height, spec.pattern_width, spec.pattern_height, spec.instances);
    for (Stage stage :
         {Stage::kPyramid, Stage::kSearch, Stage::kNms, Stage::kTrace, Stage::kRefine})
      std::printf(" %s %.0f", kStageNames[static_cast<std::size_t>(stage)],
                  static_cast<double>(total[stage]) * 1e-3 / (repetitions + 1));
    std::printf("\n");
  }
  const std::vector<Match> found[] = {ours->matches, as_matches(pattern_hits),
                                      as_matches(picture_hits)};
  for (std::size_t i = 0; i < timings.size(); ++i) {
    print_errors(options, spec, timings[i].name, timings[i].median_us,
                 timings[i].median_us / timings[0].median_us,
                 compare_with_truth(found[i], data->truth));
  }
  return {};
}

Result<void> run_growth(const MatchPhotos& photos, const Options& options) {
  struct Row {
    MatchSceneSpec spec;
    int patterns = 1;
    double half_range_deg = 180;
  };
  const std::vector<Row> rows = {
      {{"0.3 Mpx", 640, 480, 96, 96, 3, 21}},
      {{"1 Mpx", 1280, 800, 96, 96, 3, 21}},
      {{"3 Mpx", 2048, 1536, 96, 96, 3, 21}},
      {{"12 Mpx", 4000, 3000, 96, 96, 3, 21}},
      {{"48 px", 1280, 800, 48, 48, 3, 22}},
      {{"96 px", 1280, 800, 96, 96, 3, 22}},
      {{"192 px", 1280, 800, 192, 192, 3, 22}},
      {{"384 px", 1280, 800, 384, 384, 1, 22}},
      {{"1 found", 1280, 800, 96, 96, 1, 23}},
      {{"5 found", 1280, 800, 96, 96, 5, 23}},
      {{"20 found", 1280, 800, 96, 96, 20, 23}},
      {{"20 degrees", 1280, 800, 96, 96, 3, 21}, 1, 10},
      {{"90 degrees", 1280, 800, 96, 96, 3, 21}, 1, 45},
      {{"180 degrees", 1280, 800, 96, 96, 3, 21}, 1, 90},
      {{"4 patterns", 1280, 800, 96, 96, 3, 21}, 4},
      {{"32 patterns", 1280, 800, 96, 96, 3, 21}, 32},
  };
  if (!options.json)
    std::printf(
        "growth: one thread; all angles and one pattern of 96x96 in 1280x800 unless said "
        "otherwise;\n"
        "multiply-adds of the coarsest level by eq. 2.5\n");
  for (const Row& row : rows) {
    auto data = make_match_scene(photos, row.spec);
    if (!data) return tl::make_unexpected(data.error());
    auto ours = make_ours(*data, row.patterns, row.half_range_deg);
    if (!ours) return tl::make_unexpected(ours.error());
    const auto timing =
        compare({{"patternd",
                  [&] { ours->matcher->match(data->picture.view(), ours->matches, ours->times); }}},
                options.repetitions > 0 ? options.repetitions : kRepetitions, Clock::kThreadCpu);
    const SearchCost cost = ours->matcher->cost();
    const int found = static_cast<int>(ours->matches.size());
    if (options.json) {
      const nlohmann::json line = {
          {"bench", "match_growth"},           {"what", row.spec.name},
          {"time_us", timing[0].median_us},    {"operations", cost.operations},
          {"memory_bytes", cost.memory_bytes}, {"found", found}};
      std::printf("%s\n", line.dump().c_str());
    } else {
      std::printf("  %-12s %9.2f ms   %8.1f M multiply-adds   %6.1f MB   found %d\n",
                  row.spec.name.c_str(), timing[0].median_us * 1e-3, cost.operations * 1e-6,
                  static_cast<double>(cost.memory_bytes) * 1e-6, found);
      std::fflush(stdout);
    }
  }
  return {};
}

Result<void> run(bool growth, const Options& options) {
  auto photos = load_match_photos();
  if (!photos) return tl::make_unexpected(photos.error());
  cv::setNumThreads(1);
  if (!options.json) std::printf("%s; one thread, its processor time\n", machine_line().c_str());
  if (growth) return run_growth(*photos, options);
  for (const MatchSceneSpec& spec : peer_scenes())
    if (auto ok = run_against_peer(*photos, spec, options); !ok) return ok;
  return {};
}

}  // namespace

void add_match(CLI::App& program, Options& options) {
  auto* command = program.add_subcommand(
      "match", "Times and errors of a search beside OpenCV's parts, on one thread");
  auto growth = std::make_shared<bool>(false);
  command->add_flag("--growth", *growth,
                    "How the time grows with pixels, pattern size, instances, angles and patterns");
  command->callback([growth, &options] {
    if (auto ok = run(*growth, options); !ok) {
      std::fprintf(stderr, "patternctl bench match: %s\n", ok.error().message.c_str());
      options.exit_code = 1;
    }
  });
}

}  // namespace patternd::bench
