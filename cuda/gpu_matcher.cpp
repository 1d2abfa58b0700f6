#include "cuda/gpu_matcher.h"

#include <algorithm>
#include <utility>

#include "pipeline/match_choice.h"

namespace patternd::cuda {
namespace {

Candidate candidate_of(const TracedCandidate& from, int level) {
  Candidate out;
  out.x = from.pose.x;
  out.y = from.pose.y;
  out.angle_deg = from.pose.angle_deg;
  out.scale = from.pose.scale;
  out.score = from.score;
  out.visible = from.visible;
  out.inverted = from.inverted != 0;
  out.level = level;
  return out;
}

Candidate candidate_of(const ResultLoser& from) {
  Candidate out;
  out.x = static_cast<double>(from.x);
  out.y = static_cast<double>(from.y);
  out.angle_deg = static_cast<double>(from.angle_deg);
  out.scale = static_cast<double>(from.scale);
  out.score = static_cast<double>(from.score);
  out.level = from.level;
  return out;
}

Refinement refinement_of(const PatternPlan& plan, const TracedCandidate& found,
                         const Candidate& candidate) {
  if (found.converged == 0) return unsettled(plan.refine, candidate);
  const PoseInformation information{found.residual,   found.gain,       found.inverse[0],
                                    found.inverse[1], found.inverse[2], found.inverse[3]};
  return standard_deviations(plan.refine, candidate, information);
}

}  // namespace

Result<GpuMatcher> GpuMatcher::create(const std::shared_ptr<const Device>& device,
                                      std::shared_ptr<const GpuMatcherPlan> plan,
                                      const DeviceView& base) {
  GpuMatcher matcher;
  matcher.base_ = base;
  matcher.reserve(*plan);
  auto clock = StageClock::create(device, plan->trace.most_results());
  if (!clock) return tl::make_unexpected(clock.error());
  matcher.clock_ = std::move(*clock);
  auto pyramid = PyramidStage::create(device, base.width, base.height, base.format, plan->levels);
  if (!pyramid) return tl::make_unexpected(pyramid.error());
  matcher.pyramid_ = std::move(*pyramid);
  std::vector<DeviceView> levels{base};
  for (int level = 1; level <= plan->levels; ++level)
    levels.push_back(matcher.pyramid_->level(level));
  // (Owned with the whole plan.)
  auto coarse = CoarseStage::create(device, {plan, &plan->coarse}, levels, *matcher.clock_);
  if (!coarse) return tl::make_unexpected(coarse.error());
  matcher.coarse_ = std::move(*coarse);
  auto trace = TraceStage::create(device, {plan, &plan->trace}, levels, plan->valid,
                                  *matcher.coarse_, *matcher.clock_);
  if (!trace) return tl::make_unexpected(trace.error());
  matcher.trace_ = std::move(*trace);
  matcher.plan_ = std::move(plan);
  return matcher;
}

void GpuMatcher::reserve(const GpuMatcherPlan& plan) {
  std::size_t most = 0;
  for (const PatternPlan& pattern : plan.patterns)
    most = std::max(most, most_coarse(pattern.search.params));
  candidates_.reserve(most);
  refinements_.reserve(most);
  losers_.reserve(patternd::kMostLosers);
}

Result<void> GpuMatcher::enqueue_pyramid(const Stream& stream) const {
  return pyramid_->enqueue(stream, base_, clock_->address_of(StageClock::kPyramid));
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
  if (auto ok = trace_->enqueue_refine(stream); !ok) return ok;
  return clock_->download(stream);
}

void GpuMatcher::read_times(StageTimes& times) const {
  constexpr std::pair<Stage, StageClock::Moment> kStages[] = {
      {Stage::kPyramid, StageClock::kPyramid},
      {Stage::kSearch, StageClock::kSearch},
      {Stage::kNms, StageClock::kSuppression},
      {Stage::kTrace, StageClock::kTrace},
      {Stage::kRefine, StageClock::kRefine}};
  for (const auto& [stage, begun] : kStages)
    times[stage] = clock_->ns_between(begun, static_cast<StageClock::Moment>(begun + 1));
}

// A fault of the GPU's first: what it says of its candidates counts for nothing then.
Result<void> GpuMatcher::check_found() const {
  const auto name = [this](std::size_t p) {
    return "pattern " + plan_->patterns[p].search.pattern->name;
  };
  for (std::size_t p = 0; p < plan_->patterns.size(); ++p) {
    if (trace_->found(p).broken) {
      return fail(ErrorCode::kDevice,
                  name(p) +
                      ": the GPU's blocks lost each other; where it comes again, "
                      "search on the CPU, and tell us which GPU and driver");
    }
  }
  for (std::size_t p = 0; p < plan_->patterns.size(); ++p) {
    if (trace_->found(p).overflow) {
      return fail(ErrorCode::kExhausted,
                  name(p) + ": more candidates than the GPU has room for; raise min_score");
    }
  }
  return {};
}

Result<void> GpuMatcher::collect(std::vector<Match>& matches) {
  if (auto ok = check_found(); !ok) return ok;
  for (std::size_t p = 0; p < plan_->patterns.size(); ++p) {
    const PatternPlan& plan = plan_->patterns[p];
    take(plan, trace_->found(p));
    choose_matches(plan, static_cast<int>(p), candidates_, refinements_, losers_, matches);
  }
  sort_matches(matches);
  return {};
}

void GpuMatcher::take(const PatternPlan& plan, const FoundPattern& found) {
  candidates_.clear();
  refinements_.clear();
  losers_.clear();
  const int last_level = plan.steps.back().level.image_level;
  for (int i = 0; i < found.candidate_count; ++i) {
    const TracedCandidate& from = found.candidates[i];
    candidates_.push_back(candidate_of(from, last_level));
    refinements_.push_back(refinement_of(plan, from, candidates_.back()));
  }
  for (int i = 0; i < found.loser_count; ++i) losers_.push_back(candidate_of(found.losers[i]));
}

}  // namespace patternd::cuda
