// patternd-bench accuracy: made scenes with known truth, ours and the OpenCV pyramid on the same
// pictures, and the Cramér–Rao bound of each scene beside both.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/bench/bench.h"
#include "tools/bench/opencv_pyramid.h"
#include "tools/synth/accuracy.h"
#include "tools/synth/sample_photos.h"
#include "tools/synth/search_scene.h"
#include "tools/usage_error.h"

namespace patternd::bench {
namespace {

using synth::AccuracyScene;
using synth::AccuracyTally;
using synth::Find;

constexpr double kMinScore = 0.7;
constexpr int kMaxMatches = 10;
// The figures hold from this size on.
constexpr int kGradedPx = 96;

struct AccuracyArguments {
  int scenes = 1000;
  std::uint64_t seed = 1;
  bool verbose = false;
  bool peer = true;
};

cv::Mat as_mat(const Image& image) {
  // OpenCV has no view of constant pixels; nothing writes into this one.
  return {image.height(), image.width(), CV_8U,
          const_cast<std::uint8_t*>(image.row<std::uint8_t>(0)), image.view().stride_bytes};
}

Result<std::vector<Find>> find_with_opencv(const AccuracyScene& scene) {
  OpencvPyramid peer(OpencvPyramid::Turned::kPattern, kMaxMatches, kMinScore);
  peer.learn(as_mat(scene.pattern));
  std::vector<Find> finds;
  for (const auto& hit : peer.match(as_mat(scene.picture))) {
    Find find;
    find.x_px = hit.x;
    find.y_px = hit.y;
    find.angle_deg = -hit.angle_deg;
    find.score = hit.score;
    finds.push_back(find);
  }
  return finds;
}

nlohmann::ordered_json json_of(const char* who, std::uint64_t seed, const synth::Verdict& one) {
  const synth::PoseBound bound = one.truth.bound.value_or(synth::PoseBound{});
  nlohmann::ordered_json line = {{"type", "accuracy_instance"},
                                 {"who", who},
                                 {"seed", seed},
                                 {"size_px", one.size_px},
                                 {"x_px", one.truth.x_px},
                                 {"y_px", one.truth.y_px},
                                 {"angle_deg", one.truth.angle_deg},
                                 {"true_score", one.true_score},
                                 {"found", one.find.has_value()}};
  if (one.find) {
    line["score"] = one.find->score;
    line["x_error_px"] = one.x_error_px;
    line["y_error_px"] = one.y_error_px;
    line["angle_error_deg"] = one.angle_error_deg;
    line["x_std_px"] = one.find->x_std_px;
    line["y_std_px"] = one.find->y_std_px;
    line["angle_std_deg"] = one.find->angle_std_deg;
  }
  line["x_bound_px"] = bound.x_std_px;
  line["y_bound_px"] = bound.y_std_px;
  line["angle_bound_deg"] = bound.angle_std_deg;
  return line;
}

// A find where no instance is.
void print_stray(const char* who, unsigned long long seed, const std::string& kind,
                 const Find& find, bool json) {
  if (!json) {
    std::printf("%-8s seed %6llu %s at %7.2f %7.2f %8.2f, score %.3f\n", who, seed, kind.c_str(),
                find.x_px, find.y_px, find.angle_deg, find.score);
    return;
  }
  const nlohmann::ordered_json line = {
      {"type", "accuracy_" + kind}, {"who", who},        {"seed", seed},
      {"x_px", find.x_px},          {"y_px", find.y_px}, {"angle_deg", find.angle_deg},
      {"score", find.score}};
  std::printf("%s\n", line.dump().c_str());
}

void print_instances(const char* who, const synth::SceneVerdict& verdict, bool json) {
  const auto seed = static_cast<unsigned long long>(verdict.seed);
  for (const synth::Verdict& one : verdict.instances) {
    if (json) {
      std::printf("%s\n", json_of(who, verdict.seed, one).dump().c_str());
      continue;
    }
    const synth::PoseBound bound = one.truth.bound.value_or(synth::PoseBound{});
    std::printf("%-8s seed %6llu %4d px at %7.2f %7.2f %8.2f  ", who, seed, one.size_px,
                one.truth.x_px, one.truth.y_px, one.truth.angle_deg);
    if (one.find) {
      std::printf("off by %+.4f %+.4f px %+.4f deg, score %.3f, sigma %.4f %.4f px %.4f deg",
                  one.x_error_px, one.y_error_px, one.angle_error_deg, one.find->score,
                  one.find->x_std_px, one.find->y_std_px, one.find->angle_std_deg);
    } else {
      std::printf("NOT FOUND");
    }
    std::printf("  bound %.4f %.4f px %.4f deg, score at the truth %.3f\n", bound.x_std_px,
                bound.y_std_px, bound.angle_std_deg, one.true_score);
  }
  for (const Find& find : verdict.false_finds) print_stray(who, seed, "false", find, json);
  for (const Find& find : verdict.look_alikes) print_stray(who, seed, "look_alike", find, json);
}

std::string size_text(const AccuracyTally::Row& row) {
  const bool open = row.max_size_px > 100'000;
  return std::to_string(row.min_size_px) +
         (open ? " up" : "-" + std::to_string(row.max_size_px - 1));
}

void print_row(const char* who, const AccuracyTally::Row& row, const std::string& size) {
  std::printf("%-9s %-8s %6lld %6lld %6lld %9.4f %7.4f %9.4f %7.4f %8.2f %8.2f %8.1f\n", who,
              size.c_str(), static_cast<long long>(row.found), static_cast<long long>(row.missed),
              static_cast<long long>(row.under_score), row.position_px, row.position_bound_px,
              row.angle_deg, row.angle_bound_deg, row.position_over_std, row.angle_over_std,
              100 * row.within_two_std);
}

void print_table(const char* who, const AccuracyTally& tally) {
  for (const auto& row : tally.rows()) print_row(who, row, size_text(row));
  print_row(who, tally.total(0), "all");
  print_row(who, tally.total(kGradedPx), std::to_string(kGradedPx) + " up");
  std::printf(
      "%-9s false finds: %lld, look-alikes (clear of the instances, NCC over the minimum by "
      "the formula): %lld\n",
      who, static_cast<long long>(tally.false_finds()),
      static_cast<long long>(tally.look_alikes()));
}

void print_phases(const char* who, const AccuracyTally& tally) {
  for (const auto axis : {AccuracyTally::Axis::kX, AccuracyTally::Axis::kY}) {
    std::printf("%-9s %s", who, axis == AccuracyTally::Axis::kX ? "x" : "y");
    for (const auto& phase : tally.phases(axis, 0))
      std::printf(" %+.4f±%.4f", phase.mean_px, phase.standard_error_px);
    std::printf("\n");
  }
}

void print_scores(const char* who, const AccuracyTally& tally) {
  std::printf("%-9s", who);
  for (const double share : {0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 1.0})
    std::printf(" %6.3f", tally.score_quantile(share));
  std::printf("\n");
}

nlohmann::ordered_json summary_of(const char* who, const AccuracyTally& tally) {
  nlohmann::ordered_json line = {{"type", "accuracy"}, {"who", who}};
  auto add_row = [](const AccuracyTally::Row& row) {
    return nlohmann::ordered_json{{"min_size_px", row.min_size_px},
                                  {"found", row.found},
                                  {"missed", row.missed},
                                  {"under_score", row.under_score},
                                  {"position_rms_px", row.position_px},
                                  {"position_bound_px", row.position_bound_px},
                                  {"angle_rms_deg", row.angle_deg},
                                  {"angle_bound_deg", row.angle_bound_deg},
                                  {"position_over_std", row.position_over_std},
                                  {"angle_over_std", row.angle_over_std},
                                  {"within_two_std", row.within_two_std}};
  };
  line["sizes"] = nlohmann::ordered_json::array();
  for (const auto& row : tally.rows()) line["sizes"].push_back(add_row(row));
  line["all"] = add_row(tally.total(0));
  line["graded"] = add_row(tally.total(kGradedPx));
  line["false"] = tally.false_finds();
  line["look_alikes"] = tally.look_alikes();
  for (const auto axis : {AccuracyTally::Axis::kX, AccuracyTally::Axis::kY}) {
    auto& bias = line[axis == AccuracyTally::Axis::kX ? "phase_bias_x_px" : "phase_bias_y_px"];
    for (const auto& phase : tally.phases(axis, 0)) bias.push_back(phase.mean_px);
  }
  return line;
}

using Contender = std::pair<const char*, AccuracyTally>;

void print_summary(const AccuracyArguments& arguments, const std::vector<Contender>& contenders,
                   bool json) {
  if (json) {
    for (const auto& [who, tally] : contenders)
      std::printf("%s\n", summary_of(who, tally).dump().c_str());
    return;
  }
  std::printf(
      "%s\n%d scenes from seed %llu: 800x600, a photo's part 2 to 4 times, any angle, noise "
      "5, light 1±40 %%, minimum score %.1f\n\n",
      machine_line().c_str(), arguments.scenes, static_cast<unsigned long long>(arguments.seed),
      kMinScore);
  std::printf("%-9s %-8s %6s %6s %6s %9s %7s %9s %7s %8s %8s %8s\n", "", "size px", "found",
              "missed", "under", "rms px", "bound", "rms deg", "bound", "px/sigma", "deg/sig",
              "% in 2");
  for (const auto& [who, tally] : contenders) print_table(who, tally);
  std::printf(
      "\nmean error in px by the eighth of a pixel that the truth lies in, ± its standard "
      "error\n");
  for (const auto& [who, tally] : contenders) print_phases(who, tally);
  std::printf("\nscores: least, 1 %%, 5 %%, quarter, median, three quarters, greatest\n");
  for (const auto& [who, tally] : contenders) print_scores(who, tally);
}

Result<void> measure(const AccuracyArguments& arguments, bool json) {
  const auto paths = synth::sample_photo_paths();
  const auto photos = paths.size() < 2 ? synth::made_textures(1) : synth::load_photos(paths);
  if (!photos) return tl::make_unexpected(photos.error());
  if (paths.size() < 2)
    std::fprintf(stderr, "opencv-doc's photographs are not installed: made textures instead\n");
  std::vector<Contender> contenders = {{"patternd", AccuracyTally(kMinScore)}};
  std::vector<synth::Finder> finders = {
      [](const AccuracyScene& scene) { return synth::search_scene(scene, kMinScore); }};
  if (arguments.peer) {
    cv::setNumThreads(1);  // the scenes are spread over the threads
    contenders.emplace_back("OpenCV", AccuracyTally(kMinScore));
    finders.emplace_back(find_with_opencv);
  }
  ThreadPool pool(0);
  const auto verdicts =
      synth::judge_scenes(*photos, arguments.seed, static_cast<std::size_t>(arguments.scenes),
                          kMinScore, finders, pool);
  if (!verdicts) return tl::make_unexpected(verdicts.error());
  for (const auto& scene : *verdicts) {
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      auto& [who, tally] = contenders[i];
      if (arguments.verbose) print_instances(who, scene[i], json);
      tally.add(scene[i]);
    }
  }
  print_summary(arguments, contenders, json);
  return {};
}

}  // namespace

void add_accuracy(CLI::App& program, Options& options) {
  auto arguments = std::make_shared<AccuracyArguments>();
  CLI::App* command = program.add_subcommand(
      "accuracy", "Finds, misses and errors on made scenes, beside the Cramér–Rao bound");
  command->add_option("--scenes", arguments->scenes, "Number of scenes")
      ->check(tools::between(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "Of the first scene")->capture_default_str();
  command->add_flag("--verbose", arguments->verbose, "Each instance with its error and its bound");
  command->add_flag("!--no-peer", arguments->peer, "Leave the OpenCV pyramid out");
  command->callback([arguments, &options] {
    if (auto ok = measure(*arguments, options.json); !ok) {
      std::fprintf(stderr, "patternctl bench accuracy: %s\n", ok.error().message.c_str());
      options.exit_code = 1;
    }
  });
}

}  // namespace patternd::bench
