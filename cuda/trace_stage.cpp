#include "cuda/trace_stage.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda/arena.h"

namespace patternd::cuda {
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

}  // namespace

Result<TraceStage> TraceStage::create(const std::shared_ptr<const Device>& device,
                                      std::shared_ptr<const TracePlan> plan,
                                      const std::vector<DeviceView>& levels,
                                      const std::vector<DevicePicture>& valid,
                                      const CoarseStage& coarse, const StageClock& clock) {
  TraceStage stage;
  stage.plan_ = std::move(plan);
  TraceParameters& p = stage.parameters_;
  p.search_count = stage.plan_->search_count;
  p.team_limit = stage.plan_->team_limit;
  p.select_limit = coarse.select_limit();
  p.candidates = coarse.selected();
  p.counts = coarse.selected_counts();
  p.loser_counts = coarse.loser_counts();
  p.counters = coarse.counters();
  if (auto ok = stage.create_levels(device, levels, valid); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = stage.allocate_scratch(device); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage.allocate_results(device); !ok) return tl::make_unexpected(ok.error());
  stage.set_refinement(clock);
  return stage;
}

Result<void> TraceStage::create_levels(const std::shared_ptr<const Device>& device,
                                       const std::vector<DeviceView>& levels,
                                       const std::vector<DevicePicture>& valid) {
  std::vector<TraceImage> images;
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const DeviceView& view = levels[level];
    auto texture = Texture::create(device, view.address, view.width, view.height,
                                   static_cast<std::size_t>(view.stride_bytes), view.format, 1,
                                   FilterMode::kPoint);
    if (!texture) return tl::make_unexpected(texture.error());
    TraceImage image{};
    image.texture = texture->get();
    image.width = view.width;
    image.height = view.height;
    textures_.push_back(std::move(*texture));
    if (!valid.empty()) {
      image.valid = valid[level].view().address;
      image.valid_stride = valid[level].view().stride_bytes;
      image.has_valid = 1;
    }
    images.push_back(image);
  }
  auto copied = DeviceBuffer::copy_of(device, images.data(), images.size() * sizeof(TraceImage));
  if (!copied) return tl::make_unexpected(copied.error());
  images_ = std::move(*copied);
  parameters_.images = images_.address();
  return {};
}

Result<void> TraceStage::allocate_scratch(const std::shared_ptr<const Device>& device) {
  TraceParameters& p = parameters_;
  const auto searches = static_cast<std::size_t>(p.search_count);
  auto scratch = cuda::allocate_scratch(device, [&](ScratchLayout& memory) {
    p.losers = memory.take(searches * kMostLosers * sizeof(TracedLoser));
    p.next =
        memory.take(searches * static_cast<std::size_t>(p.select_limit) * sizeof(TracedCandidate));
    p.glances_done = memory.take(searches * sizeof(unsigned));
    const std::size_t teams = std::max(searches * static_cast<std::size_t>(p.team_limit),
                                       static_cast<std::size_t>(plan_->last.team_limit));
    p.teams = memory.take(teams * sizeof(PoseTeam));
  });
  if (!scratch) return tl::make_unexpected(scratch.error());
  scratch_ = std::move(*scratch);
  return {};
}

Result<void> TraceStage::allocate_results(const std::shared_ptr<const Device>& device) {
  const auto searches = static_cast<std::size_t>(parameters_.search_count);
  const auto limit = static_cast<std::size_t>(plan_->last.result_limit);
  candidates_offset_ = aligned(searches * sizeof(ResultHeader));
  losers_offset_ = candidates_offset_ + aligned(searches * limit * sizeof(TracedCandidate));
  const std::size_t bytes = losers_offset_ + searches * kMostLosers * sizeof(ResultLoser);
  auto results = SharedBuffer::create(device, memory_for_results(*device), bytes);
  if (!results) return tl::make_unexpected(results.error());
  results_ = std::move(*results);
  std::memset(results_.host(), 0, bytes);
  return {};
}

void TraceStage::set_refinement(const StageClock& clock) {
  const TracePlan::LastStep& last = plan_->last;
  parameters_.headers = results_.device();
  refine_.trace = parameters_;
  if (plan_->steps.size() % 2 != 0) refine_.trace.candidates = parameters_.next;
  parameters_.moment = clock.address_of(StageClock::kTrace);
  refine_.trace.moment = clock.address_of(StageClock::kRefine);
  refine_.ends = clock.ends();
  refine_.trace.patterns = last.patterns;
  refine_.trace.regressions = last.regressions;
  refine_.trace.team_limit = last.team_limit;
  refine_.trace.team_blocks = last.team_blocks;
  refine_.loose = last.loose;
  refine_.at_bound = last.at_bound;
  refine_.allowed = last.allowed;
  refine_.result_limit = last.result_limit;
  refine_.results = results_.device() + candidates_offset_;
  refine_.result_losers = results_.device() + losers_offset_;
}

Result<void> TraceStage::enqueue_trace(const Stream& stream) const {
  Shape searches;
  searches.block_x = kKeepThreads;
  searches.grid_x = static_cast<unsigned>(parameters_.search_count);
  TraceParameters p = parameters_;
  for (const TracePlan::Step& step : plan_->steps) {
    p.patterns = step.patterns;
    p.regressions = step.regressions;
    p.team_blocks = step.team_blocks;
    Shape teams = step.shape;
    teams.grid_x *= static_cast<unsigned>(step.team_blocks);
    if (step.chooses) {
      Shape glances = step.shape;
      glances.grid_x = step.glances;
      if (auto ok = stream.launch_early(plan_->glance, glances, p); !ok) return ok;
      p.moment = 0;
    }
    if (auto ok = stream.launch_early(plan_->step, teams, p); !ok) return ok;
    p.moment = 0;
    if (auto ok = stream.launch_early(plan_->keep, searches, p); !ok) return ok;
    // What goes on lies there now.
    std::swap(p.candidates, p.next);
  }
  return {};
}

Result<void> TraceStage::enqueue_refine(const Stream& stream) const {
  if (auto ok = stream.launch_early(plan_->refine, plan_->last.shape, refine_); !ok) return ok;
  return results_.download(stream, results_.size_bytes());
}

FoundPattern TraceStage::found(std::size_t pattern) const {
  const auto& header = results_.host_as<const ResultHeader>()[pattern];
  FoundPattern out;
  out.candidates = reinterpret_cast<const TracedCandidate*>(results_.host() + candidates_offset_) +
                   pattern * static_cast<std::size_t>(refine_.result_limit);
  out.candidate_count = header.candidates;
  out.losers = reinterpret_cast<const ResultLoser*>(results_.host() + losers_offset_) +
               pattern * kMostLosers;
  out.loser_count = header.losers;
  out.overflow = header.overflow != 0;
  out.broken = header.broken != 0;
  return out;
}

}  // namespace patternd::cuda
