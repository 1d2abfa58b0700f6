#include "cuda/gpu_matcher.h"

#include <algorithm>

#include "pipeline/match_choice.h"
#include "pipeline/valid_area.h"

namespace patternd::cuda {
namespace {

Candidate candidate_of(const TracedPose& pose, double score, int level) {
  Candidate out;
  out.x = pose.x;
  out.y = pose.y;
  out.angle_deg = pose.angle_deg;
  out.scale = pose.scale;
  out.score = score;
  out.level = level;
  return out;
}

Refinement refinement_of(const PatternPlan& plan, const TracedCandidate& found,
                         const Candidate& candidate) {
  if (found.converged == 0) return unsettled(plan.refine, candidate);
  const PoseInformation information{found.residual,   found.gain,       found.inverse[0],
                                    found.inverse[1], found.inverse[2], found.inverse[3]};
  return standard_deviations(plan.refine, candidate, information);
}

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

}  // namespace

Result<GpuMatcher> GpuMatcher::create(const std::shared_ptr<const Device>& device,
                                      const MatcherConfig& config, const DeviceView& base) {
  GpuMatcher matcher;
  matcher.base_ = base;
  int levels = 0;
  for (const PatternSearch& search : config.patterns) {
    auto plan = plan_pattern(search, config);
    if (!plan) return tl::make_unexpected(plan.error());
    levels = std::max(levels, plan->top_level);
    PatternState state;
    state.plan = std::move(*plan);
    matcher.patterns_.push_back(std::move(state));
  }
  auto pyramid = PyramidStage::create(device, config.width, config.height, config.format, levels);
  if (!pyramid) return tl::make_unexpected(pyramid.error());
  matcher.pyramid_ = std::move(*pyramid);
  const auto valid = valid_levels(config, levels);
  if (!valid) return tl::make_unexpected(valid.error());
  auto masks = on_device(device, *valid);
  if (!masks) return tl::make_unexpected(masks.error());
  matcher.valid_ = std::move(*masks);

  const auto level_view = [&](int level) {
    return level == 0 ? base : matcher.pyramid_->level(level);
  };
  std::vector<CoarseJob> jobs;
  std::vector<const PatternPlan*> plans;
  for (PatternState& state : matcher.patterns_) {
    PatternPlan& plan = state.plan;
    if (!valid->empty())
      plan.coarse.valid = (*valid)[static_cast<std::size_t>(plan.top_level)].view();
    const CoarseSearch search(plan.pyramid, plan.coarse);
    const std::size_t most = most_coarse(plan.search.params);
    const DeviceView mask = valid->empty()
                                ? DeviceView{}
                                : matcher.valid_[static_cast<std::size_t>(plan.top_level)].view();
    jobs.push_back(
        {search.tables(), plan.coarse, level_view(plan.top_level), mask, static_cast<int>(most)});
    plan.coarse.valid = {};
    plan.pyramid.clear();
    plans.push_back(&plan);
    state.candidates.reserve(most);
    state.refinements.reserve(most);
    state.losers.reserve(patternd::kMostLosers);
  }
  auto coarse = CoarseStage::create(device, jobs);
  if (!coarse) return tl::make_unexpected(coarse.error());
  matcher.coarse_ = std::move(*coarse);

  std::vector<DeviceView> views;
  for (int level = 0; level <= levels; ++level) views.push_back(level_view(level));
  std::vector<DeviceView> mask_views;
  for (const DevicePicture& mask : matcher.valid_) mask_views.push_back(mask.view());
  auto trace = TraceStage::create(device, plans, views, mask_views, *matcher.coarse_);
  if (!trace) return tl::make_unexpected(trace.error());
  matcher.trace_ = std::move(*trace);
  return matcher;
}

Result<void> GpuMatcher::enqueue_pyramid(const Stream& stream) const {
  return pyramid_->enqueue(stream, base_);
}
Result<void> GpuMatcher::enqueue_search(const Stream& stream) const {
  return coarse_->enqueue_search(stream);
}
Result<void> GpuMatcher::enqueue_suppression(const Stream& stream) const {
  return coarse_->enqueue_suppression(stream);
}
Result<void> GpuMatcher::enqueue_trace(const Stream& stream) const {
  return trace_->enqueue_trace(stream);
}
Result<void> GpuMatcher::enqueue_refine(const Stream& stream) const {
  return trace_->enqueue_refine(stream);
}

Result<void> GpuMatcher::collect(std::vector<Match>& matches) {
  for (std::size_t p = 0; p < patterns_.size(); ++p) {
    if (trace_->found(p).overflow) {
      return fail(ErrorCode::kExhausted,
                  "pattern " + patterns_[p].plan.search.pattern->name +
                      ": more candidates than the GPU has room for; raise min_score");
    }
  }
  for (std::size_t p = 0; p < patterns_.size(); ++p) {
    PatternState& state = patterns_[p];
    const FoundPattern found = trace_->found(p);
    state.candidates.clear();
    state.refinements.clear();
    state.losers.clear();
    const int last_level = state.plan.steps.back().level.image_level;
    for (int i = 0; i < found.candidate_count; ++i) {
      const TracedCandidate& from = found.candidates[i];
      Candidate candidate = candidate_of(from.pose, from.score, last_level);
      candidate.visible = from.visible;
      candidate.inverted = from.inverted != 0;
      state.candidates.push_back(candidate);
      state.refinements.push_back(refinement_of(state.plan, from, candidate));
    }
    for (int i = 0; i < found.loser_count; ++i)
      state.losers.push_back(
          candidate_of(found.losers[i].pose, found.losers[i].score, found.losers[i].level));
    choose_matches(state.plan, static_cast<int>(p), state.candidates, state.refinements,
                   state.losers, matches);
  }
  sort_matches(matches);
  return {};
}

}  // namespace patternd::cuda
