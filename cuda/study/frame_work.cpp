// Counts what a frame gives the service's kernels to do, from the same plans and tables that they
// run from; needs no GPU. performance_model.py turns the counts into bytes, operations and times.
//   patternd-frame-work [SIDE]  ->  one JSON object
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <nlohmann/json.hpp>

#include "calibration/camera_map.h"
#include "cuda/coarse_octets.h"
#include "cuda/device.h"
#include "cuda/rectify_plan.h"
#include "cuda/study/seeds_bench.h"
#include "cuda/study/seeds_search_scene.h"
#include "pipeline/coarse_search.h"
#include "pipeline/match_choice.h"
#include "pipeline/matcher_plan.h"
#include "tools/synth/plane_camera.h"

namespace patternd::cuda {
namespace {

using nlohmann::ordered_json;

// The part of the input that a rectification reads: pixels under any of the four around a source.
double share_read(const CameraModel& model) {
  const auto width = static_cast<std::size_t>(model.image_width);
  std::vector<bool> read(width * static_cast<std::size_t>(model.image_height));
  const CameraMap map(model);
  for (int y = 0; y < model.output_height(); ++y) {
    for (int x = 0; x < model.output_width(); ++x) {
      const auto source = map.to_input({static_cast<double>(x), static_cast<double>(y)});
      if (!source || !(source->x >= 0) || !(source->y >= 0) || source->x >= model.image_width - 1 ||
          source->y >= model.image_height - 1)
        continue;
      const std::size_t at =
          static_cast<std::size_t>(source->y) * width + static_cast<std::size_t>(source->x);
      read[at] = read[at + 1] = read[at + width] = read[at + width + 1] = true;
    }
  }
  double count = 0;
  for (const bool pixel : read) count += pixel ? 1 : 0;
  return count / static_cast<double>(read.size());
}

ordered_json rectification(int side) {
  const CameraModel model = synth::tilted_plane(side, false);
  const RectifyPlan plan = value_of(plan_rectification(model));
  return {{"width", side},
          {"height", side},
          {"share_read", share_read(model)},
          {"patches", plan.patches.size()},
          {"patch_bytes", sizeof(RectifyPatch)}};
}

ordered_json coarse(const CoarseTables& tables, double operations) {
  double runs = 0;
  double pixels = 0;
  double partly_visible = 0;
  for (const CoarseTables::Plane& plane : tables.planes) {
    pixels += plane.pixels;
    for (const std::int32_t kind : plane.block_class) partly_visible += kind >= 0 ? kBlock : 0;
  }
  for (const CoarseTables::Group& group : tables.groups)
    runs += static_cast<double>(group.common.size());
  const double positions = static_cast<double>(tables.blocks) * kBlock * tables.rows;
  return {{"planes", tables.planes.size()}, {"groups", tables.groups.size()},
          {"positions", positions},         {"pixels_of_planes", pixels},
          {"runs_of_groups", runs},         {"border_positions", partly_visible},
          {"multiply_adds", operations}};
}

// The same search by matrix units: warps that take eight planes at 8×8 positions, and the products
// that they take for them.
ordered_json matrix_units(const CoarseTables& tables, double threshold) {
  constexpr int kPitch = 64;
  constexpr double kProductsAStep = 5 * kScoreRows / 2;
  const auto made = octets_of(tables, {threshold, false}, 0, kPitch);
  double warps = 0;
  double products = 0;
  double mixed = 0;
  double courses = 0;
  if (made) {
    for (const OctetTables& octet : made->octets) {
      for (const int tile : octet.tiles) {
        if (tile == kTileSkipped) continue;
        ++warps;
        mixed += tile == kTileAllVisible ? 0 : 1;
        products += kProductsAStep * octet.octet.products;
        courses += octet.octet.strip_count;
      }
    }
  }
  return {{"warps", warps}, {"mixed_warps", mixed}, {"products", products}, {"courses", courses}};
}

ordered_json trace(const PatternPlan& plan) {
  ordered_json steps = ordered_json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const TraceStep& step = plan.steps[i];
    steps.push_back({{"level", step.level.image_level},
                     {"width", step.level.pattern.width},
                     {"height", step.level.pattern.height},
                     {"traced", plan.traces(i)},
                     {"by_regression", step.by_regression},
                     {"most_kept", step.most_kept}});
  }
  return steps;
}

ordered_json count(int side) {
  const SearchScene scene = make_search_scene(side);
  MatcherConfig config;
  config.width = config.height = side;
  config.patterns.push_back({scene.pattern, {}});
  const PatternPlan plan = value_of(plan_pattern(config.patterns[0], config));
  const CoarseSearch search(plan.pyramid, plan.coarse);
  return {{"rectification", rectification(side)},
          {"top_level", plan.top_level},
          {"coarse_width", plan.coarse.width},
          {"coarse_height", plan.coarse.height},
          {"coarse", coarse(search.tables(), search.operations())},
          {"matrix_units", matrix_units(search.tables(), plan.coarse.threshold)},
          {"most_coarse", most_coarse(plan.search.params)},
          {"steps", trace(plan)}};
}

}  // namespace
}  // namespace patternd::cuda

int main(int argc, char** argv) {
  try {
    const int side = argc > 1 ? std::atoi(argv[1]) : 1024;
    std::printf("%s\n", patternd::cuda::count(side).dump().c_str());
    return 0;
  } catch (const patternd::cuda::StudyFailure& failure) {
    std::fprintf(stderr, "patternd-frame-work: %s\n", failure.error.message.c_str());
    return 1;
  }
}
