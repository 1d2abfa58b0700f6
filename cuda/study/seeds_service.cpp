// The service's own way of the frame that the thesis's variants search.
#include <algorithm>
#include <cmath>

#include "cuda/cuda_processor.h"
#include "cuda/study/seeds.h"
#include "cuda/study/seeds_search_scene.h"

namespace patternd::cuda {
namespace {

// Whether each instance has been found.
bool finds_all(const SearchScene& scene, const std::vector<Match>& matches) {
  return std::all_of(scene.instances.begin(), scene.instances.end(),
                     [&](const SeedInstance& instance) {
                       return std::any_of(matches.begin(), matches.end(), [&](const Match& match) {
                         return std::hypot(match.x_px - instance.x, match.y_px - instance.y) < 1;
                       });
                     });
}

}  // namespace

SeedTable study_service(const SeedBench& bench) {
  const std::string side = std::to_string(bench.options().size);
  SeedTable table("service",
                  "The service's own kernels on the frame of the search and trace tables, " + side +
                      "x" + side + ", 8 bit, all angles in its own steps, to sub-pixel",
                  {{"median_us", "us", 1}});
  const SearchScene scene = make_search_scene(bench.options().size);
  ProcessorConfig config;
  config.width = scene.grey.width();
  config.height = scene.grey.height();
  config.stride_bytes = scene.grey.view().stride_bytes;
  config.patterns.push_back({scene.pattern, {}});
  const auto processor = value_of(make_cuda_processor(bench.device(), "auto", config));
  const RawImageView raw{
      scene.grey.view().data, config.stride_bytes * static_cast<std::size_t>(config.height),
      config.width,           config.height,
      config.stride_bytes,    RawFormat::kGrey,
      BayerOrder::kRggb};
  FrameResult result;
  result.matches.reserve(100);
  std::vector<double> times_us[kStageCount];
  for (int i = -2; i < std::max(bench.options().repetitions, 3); ++i) {
    const std::int64_t start_ns = monotonic_ns();
    require(processor->process(raw, result));
    result.times[Stage::kTotal] = monotonic_ns() - start_ns;
    if (!finds_all(scene, result.matches))
      refuse("the service's kernels do not find an instance that is there");
    for (std::size_t s = 0; s < kStageCount && i >= 0; ++s)
      times_us[s].push_back(static_cast<double>(result.times.ns[s]) * 1e-3);
  }
  for (const Stage stage : {Stage::kRectify, Stage::kPyramid, Stage::kSearch, Stage::kNms,
                            Stage::kTrace, Stage::kRefine, Stage::kTotal}) {
    auto& times = times_us[static_cast<std::size_t>(stage)];
    std::sort(times.begin(), times.end());
    table.add(stage == Stage::kTotal ? "from the host's frame to matches, by the host's clock"
                                     : kStageNames[static_cast<std::size_t>(stage)],
              {times[times.size() / 2]});
  }
  return table;
}

}  // namespace patternd::cuda
