#include "cuda/gpu_matcher_plan.h"

#include <algorithm>
#include <utility>

#include "pipeline/match_choice.h"
#include "pipeline/valid_area.h"

namespace patternd::cuda {
namespace {

// The masks of all levels; empty where everything is valid.
Result<std::vector<Image>> valid_levels(const MatcherConfig& config, int levels) {
  std::vector<Image> out;
  if (config.valid.data == nullptr || all_set(config.valid)) return out;
  auto copy = Image::copy_of(config.valid);
  if (!copy) return tl::make_unexpected(copy.error());
  out.push_back(std::move(*copy));
  for (int level = 1; level <= levels; ++level) out.push_back(halved_mask(out.back().view()));
  return out;
}

Result<std::vector<DevicePicture>> on_device(const std::shared_ptr<const Device>& device,
                                             const std::vector<Image>& images) {
  std::vector<DevicePicture> out;
  auto stream = Stream::create(device);
  if (!stream) return tl::make_unexpected(stream.error());
  for (const Image& image : images) {
    auto picture = DevicePicture::create(device, image.width(), image.height(), image.format());
    if (!picture) return tl::make_unexpected(picture.error());
    if (auto ok = upload(*stream, image.view(), picture->view()); !ok)
      return tl::make_unexpected(ok.error());
    out.push_back(std::move(*picture));
  }
  if (auto ok = stream->wait(); !ok) return tl::make_unexpected(ok.error());
  return out;
}

// The tables of a pattern's coarse search. What only they need of the plan is given up.
CoarseJob take_coarse_job(PatternPlan& plan, PixelFormat format, const std::vector<Image>& valid,
                          const std::vector<DevicePicture>& valid_on_device) {
  const auto top = static_cast<std::size_t>(plan.top_level);
  CoarseJob job;
  if (!valid.empty()) {
    plan.coarse.valid = valid[top].view();
    job.valid = valid_on_device[top].view();
  }
  job.tables = CoarseSearch(plan.pyramid, plan.coarse).tables();
  plan.coarse.valid = {};
  plan.pyramid.clear();
  job.config = plan.coarse;
  job.format = format;
  static_assert(kMostCoarse <= kMostCandidates);
  job.most_selected = static_cast<int>(most_coarse(plan.search.params));
  return job;
}

}  // namespace

Result<GpuMatcherPlan> GpuMatcherPlan::create(const std::shared_ptr<const Device>& device,
                                              const MatcherConfig& config, ThreadPool* pool) {
  GpuMatcherPlan made;
  std::vector<Result<PatternPlan>> planned(config.patterns.size());
  ThreadPool::for_each_allocating(pool, planned.size(), [&](std::size_t i) {
    planned[i] = plan_pattern(config.patterns[i], config);
  });
  for (Result<PatternPlan>& plan : planned) {
    if (!plan) return tl::make_unexpected(plan.error());
    made.levels = std::max(made.levels, plan->top_level);
    made.patterns.push_back(std::move(*plan));
  }
  const auto valid = valid_levels(config, made.levels);
  if (!valid) return tl::make_unexpected(valid.error());
  auto masks = on_device(device, *valid);
  if (!masks) return tl::make_unexpected(masks.error());
  made.valid = std::move(*masks);

  std::vector<CoarseJob> jobs(made.patterns.size());
  ThreadPool::for_each_allocating(pool, jobs.size(), [&](std::size_t i) {
    jobs[i] = take_coarse_job(made.patterns[i], config.format, *valid, made.valid);
  });
  std::vector<const PatternPlan*> plans;
  for (const PatternPlan& plan : made.patterns) plans.push_back(&plan);
  auto coarse = CoarsePlan::create(device, jobs);
  if (!coarse) return tl::make_unexpected(coarse.error());
  made.coarse = std::move(*coarse);
  auto trace = TracePlan::create(device, plans);
  if (!trace) return tl::make_unexpected(trace.error());
  made.trace = std::move(*trace);
  return made;
}

}  // namespace patternd::cuda
