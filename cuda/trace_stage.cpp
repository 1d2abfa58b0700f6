#include "cuda/trace_stage.h"

#include <algorithm>
#include <cstring>

#include "cuda/arena.h"
#include "pipeline/match_choice.h"

namespace patternd::cuda {
namespace {

static_assert(kRegressors == kMostRegressors);
static_assert(kByX == kNuisances);
static_assert(kMostLosers == static_cast<int>(patternd::kMostLosers));

// Pixels of a pattern that a warp works on, about; each of the poses that the trace looks at has
// its own warps.
constexpr int kPixelsPerWarp = 256;
constexpr int kPosesAtOnce = 3;
constexpr int kMostWarpsPerPose = 4;
// Of the strips that a pattern is sampled in.
constexpr int kMostStripWidth = 126;
// Pixels that a block sums over at least before another one helps it.
constexpr int kPixelsPerPiece = 1536;
// Blocks of a launch that work at a time, a multiprocessor.
constexpr int kBlocksPerMultiprocessor = 2;

unsigned pose_threads(int width, int height) {
  const int warps = std::clamp(width * height / kPixelsPerWarp, 1, kMostWarpsPerPose);
  return static_cast<unsigned>(kPosesAtOnce * kWarpSize * warps);
}

// Blocks that work on a candidate together: as many as it has pieces, but no more than the GPU has
// room for when each pattern is found as often as it may be.
int team_for(const Device& device, const std::vector<const PatternPlan*>& plans, int pieces) {
  int candidates = 0;
  for (const PatternPlan* plan : plans) candidates += plan->search.params.max_matches;
  const int room = kBlocksPerMultiprocessor * device.properties().multiprocessors;
  return std::clamp(room / std::max(candidates, 1), 1, pieces);
}

// T and mask of each pixel, without the host's row padding.
std::vector<float> pixels_of(const UprightPattern& pattern) {
  std::vector<float> out;
  for (int y = 0; y < pattern.height; ++y) {
    for (int x = 0; x < pattern.width; ++x) {
      const auto i = static_cast<std::size_t>(y * pattern.stride + x);
      out.push_back(pattern.values[i]);
      out.push_back(pattern.mask[i]);
    }
  }
  return out;
}

// The mask's code (1: counts for the score, 2: is regressed too), T and its derivatives.
std::vector<float> refine_pixels_of(const patternd::RefinePattern& refine) {
  const UprightPattern& pattern = refine.level.pattern;
  std::vector<float> out;
  for (int y = 0; y < pattern.height; ++y) {
    for (int x = 0; x < pattern.width; ++x) {
      const auto i = static_cast<std::size_t>(y * pattern.stride + x);
      out.push_back(pattern.mask[i] + refine.mask[i]);
      out.push_back(pattern.values[i]);
      out.push_back(refine.gradient_x[i]);
      out.push_back(refine.gradient_y[i]);
    }
  }
  return out;
}

RefinePattern put_refine(Arena& arena, const patternd::RefinePattern& from) {
  RefinePattern out{};
  if (from.mask.empty()) return out;
  out.pixels = arena.put(refine_pixels_of(from));
  out.first_column = static_cast<double>(from.columns[0]);
  out.first_row = from.first_row;
  out.counted = from.pixels;
  out.regressors = from.regressors();
  out.with_angle = from.with_angle ? 1 : 0;
  out.with_scale = from.with_scale ? 1 : 0;
  if (from.inverse_gram.empty()) return out;
  std::vector<double> gram = from.gram;
  for (int i = kFirstRamp; i < kNuisances; ++i)
    gram[static_cast<std::size_t>(i) * (kRegressors + 1)] +=
        from.light_prior[static_cast<std::size_t>(i - kFirstRamp)];
  out.gram = arena.put(gram);
  out.inverse_gram = arena.put(from.inverse_gram);
  const int width = from.level.pattern.width;
  const int height = from.level.pattern.height;
  const int pieces = std::clamp(width * height / kPixelsPerPiece, 1, std::min(height, kMostPieces));
  out.piece_rows = (height + pieces - 1) / pieces;
  out.pieces = (height + out.piece_rows - 1) / out.piece_rows;
  out.used = 1;
  return out;
}

TracePattern put_step(Arena& arena, const PatternPlan& plan, const TraceStep& step) {
  TracePattern out{};
  const UprightPattern& pattern = step.level.pattern;
  out.pixels = arena.put(pixels_of(pattern));
  out.to_level = 1.0 / static_cast<double>(1 << step.level.image_level);
  out.spacing = step.level.spacing;
  out.first_column = static_cast<float>(step.level.origin_x / out.spacing);
  out.first_row = static_cast<float>(step.level.origin_y / out.spacing);
  out.pixel_in_level = static_cast<float>(out.spacing * out.to_level);
  out.strip_width = std::min(pattern.width, kMostStripWidth);
  const int fit = kTileFloats / (out.strip_width + 2) - 2;
  const int strips = (pattern.height + fit - 1) / fit;
  out.strip_rows = (pattern.height + strips - 1) / strips;
  out.counted = pattern.pixels;
  out.energy = pattern.energy;
  out.angle_step_deg = step.level.angle_step_deg;
  out.scale_step = step.level.scale_step;
  out.least_visible = step.least_visible;
  out.threshold = step.threshold;
  out.hopeless_score = kHopeless * step.threshold;
  out.period_deg = plan.angles.period_deg;
  out.width = pattern.width;
  out.height = pattern.height;
  out.image_level = step.level.image_level;
  out.most_kept = static_cast<int>(step.most_kept);
  out.used = 1;
  out.any_polarity = plan.coarse.any_polarity ? 1 : 0;
  out.neighbours_first = step.neighbours_first ? 1 : 0;
  out.most_followed = static_cast<int>(step.most_followed);
  out.followed_unseen = static_cast<int>(followed_unseen(step.most_followed));
  return out;
}

AllowedPoses allowed_of(const PatternPlan& plan) {
  AllowedPoses out{};
  out.period_deg = plan.angles.period_deg;
  out.low_scale = plan.search.params.scale.low;
  out.high_scale = plan.search.params.scale.high;
  if (plan.angles.full()) return out;
  out.ranges = static_cast<int>(plan.angles.ranges.size());
  for (std::size_t i = 0; i < plan.angles.ranges.size(); ++i) {
    out.low_deg[i] = plan.angles.ranges[i].low;
    out.high_deg[i] = plan.angles.ranges[i].high;
  }
  return out;
}

Result<void> check_ranges(const std::vector<const PatternPlan*>& plans) {
  for (const PatternPlan* plan : plans) {
    if (plan->angles.ranges.size() <= static_cast<std::size_t>(kMostAngleRanges)) continue;
    return fail(ErrorCode::kUnsupported,
                "pattern " + plan->search.pattern->name + ": the GPU searches at most " +
                    std::to_string(kMostAngleRanges) + " separate ranges of angles, not " +
                    std::to_string(plan->angles.ranges.size()));
  }
  return {};
}

int most_pieces(const std::vector<RefinePattern>& patterns) {
  int most = 1;
  for (const RefinePattern& pattern : patterns) most = std::max(most, pattern.pieces);
  return most;
}

// Candidates that are left before a step; all of the coarsest's where none was traced before.
std::size_t kept_before(const PatternPlan& plan, std::size_t step) {
  for (std::size_t s = step; s > 0; --s)
    if (plan.traces(s - 1)) return plan.steps[s - 1].most_kept;
  return most_coarse(plan.search.params);
}

}  // namespace

Result<TraceStage> TraceStage::create(const std::shared_ptr<const Device>& device,
                                      const std::vector<const PatternPlan*>& plans,
                                      const std::vector<DeviceView>& levels,
                                      const std::vector<DeviceView>& valid,
                                      const CoarseStage& coarse) {
  if (auto ok = check_ranges(plans); !ok) return tl::make_unexpected(ok.error());
  TraceStage stage;
  const std::pair<Kernel*, const char*> wanted[] = {
      {&stage.glance_, "patternd_trace_glance"},
      {&stage.follow_, "patternd_trace_follow"},
      {&stage.step_, "patternd_trace_step"},
      {&stage.keep_, "patternd_trace_keep"},
      {&stage.refine_kernel_, "patternd_refine_pose"}};
  for (const auto& [kernel, name] : wanted) {
    auto found = device->kernel(name);
    if (!found) return tl::make_unexpected(found.error());
    *kernel = *found;
  }
  TraceParameters& p = stage.parameters_;
  p.search_count = static_cast<int>(plans.size());
  p.select_limit = coarse.select_limit();
  p.candidates = coarse.selected();
  p.counts = coarse.selected_counts();
  p.loser_counts = coarse.loser_counts();
  p.counters = coarse.counters();
  if (auto ok = stage.create_levels(device, levels, valid); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = stage.create_tables(device, plans); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = stage.create_results(device); !ok) return tl::make_unexpected(ok.error());
  return stage;
}

Result<void> TraceStage::create_levels(const std::shared_ptr<const Device>& device,
                                       const std::vector<DeviceView>& levels,
                                       const std::vector<DeviceView>& valid) {
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
      image.valid = valid[level].address;
      image.valid_stride = valid[level].stride_bytes;
      image.has_valid = 1;
    }
    images_.push_back(image);
  }
  return {};
}

Result<void> TraceStage::create_tables(const std::shared_ptr<const Device>& device,
                                       const std::vector<const PatternPlan*>& plans) {
  std::size_t most_steps = 0;
  for (const PatternPlan* plan : plans) most_steps = std::max(most_steps, plan->steps.size());
  auto tables = fill_arena(device, [&](Arena& arena) {
    steps_.clear();
    parameters_.images = arena.put(images_);
    std::vector<TracePattern> patterns;
    std::vector<RefinePattern> refines;
    for (std::size_t s = 0; s < most_steps; ++s) {
      patterns.clear();
      refines.clear();
      Step step;
      int width = 1;
      int height = 1;
      for (const PatternPlan* plan : plans) {
        patterns.emplace_back();
        refines.emplace_back();
        if (!plan->traces(s)) continue;
        const TraceStep& from = plan->steps[s];
        step.chooses = step.chooses || from.most_followed > 0;
        patterns.back() = put_step(arena, *plan, from);
        patterns.back().coarsest = s == 0 ? 1 : 0;
        if (from.by_regression) refines.back() = put_refine(arena, from.regression);
        width = std::max(width, patterns.back().width);
        height = std::max(height, patterns.back().height);
      }
      if (width == 1 && height == 1) continue;
      step.patterns = arena.put(patterns);
      step.regressions = arena.put(refines);
      step.team_blocks = team_for(*device, plans, most_pieces(refines));
      step.shape.block_x = pose_threads(width, height);
      std::size_t before = 1;
      std::size_t followed = 1;
      for (const PatternPlan* plan : plans) {
        if (!plan->traces(s)) continue;
        const std::size_t kept = kept_before(*plan, s);
        const std::size_t most = plan->steps[s].most_followed;
        before = std::max(before, kept);
        followed = std::max(followed, most > 0 ? std::min(kept, most) : kept);
      }
      step.glances = static_cast<unsigned>(before);
      step.shape.grid_x = static_cast<unsigned>(followed);
      step.shape.grid_y = static_cast<unsigned>(plans.size());
      if (step.team_blocks > 1)
        parameters_.team_limit =
            std::max(parameters_.team_limit, static_cast<int>(step.shape.grid_x));
      steps_.push_back(step);
    }

    patterns.clear();
    refines.clear();
    std::vector<TracePattern> loose;
    std::vector<RefinePattern> at_bound;
    std::vector<AllowedPoses> allowed;
    int width = 1;
    int height = 1;
    std::size_t most = 1;
    for (const PatternPlan* plan : plans) {
      TracePattern pattern = put_step(arena, *plan, plan->steps.back());
      pattern.least_contrast = plan->search.params.min_contrast;
      pattern.hopeless_score = kHopelessAtLast * plan->search.params.min_score;
      loose.push_back(pattern);
      pattern.least_visible = plan->search.params.min_visible;
      width = std::max(width, pattern.width);
      height = std::max(height, pattern.height);
      patterns.push_back(pattern);
      refines.push_back(put_refine(arena, plan->refine));
      at_bound.push_back(put_refine(arena, plan->refine_at_bound));
      allowed.push_back(allowed_of(*plan));
      most = std::max(most, kept_before(*plan, plan->steps.size()));
    }
    refine_.trace.patterns = arena.put(patterns);
    refine_.trace.regressions = arena.put(refines);
    refine_.loose = arena.put(loose);
    refine_.at_bound = arena.put(at_bound);
    refine_.allowed = arena.put(allowed);
    refine_.result_limit = static_cast<int>(most);
    refine_shape_.block_x = pose_threads(width, height);
    refine_.trace.team_blocks = team_for(*device, plans, most_pieces(refines));
    refine_shape_.grid_x =
        1 + static_cast<unsigned>(most) * static_cast<unsigned>(refine_.trace.team_blocks);
    if (refine_.trace.team_blocks > 1)
      parameters_.team_limit = std::max(parameters_.team_limit, static_cast<int>(most));
    refine_shape_.grid_y = static_cast<unsigned>(plans.size());
  });
  if (!tables) return tl::make_unexpected(tables.error());
  tables_ = std::move(*tables);
  return {};
}

Result<void> TraceStage::create_results(const std::shared_ptr<const Device>& device) {
  const auto searches = static_cast<std::size_t>(parameters_.search_count);
  TraceParameters& p = parameters_;
  auto scratch = allocate_scratch(device, [&](ScratchLayout& memory) {
    p.losers = memory.take(searches * kMostLosers * sizeof(TracedLoser));
    p.sorted =
        memory.take(searches * static_cast<std::size_t>(p.select_limit) * sizeof(TracedCandidate));
    p.teams = memory.take(searches * static_cast<std::size_t>(p.team_limit) * sizeof(PoseTeam));
  });
  if (!scratch) return tl::make_unexpected(scratch.error());
  scratch_ = std::move(*scratch);
  auto stream = Stream::create(device);
  if (!stream) return tl::make_unexpected(stream.error());
  if (auto ok = stream->fill(scratch_.pointer(), 0, scratch_.size_bytes()); !ok) return ok;
  if (auto ok = stream->wait(); !ok) return ok;

  const auto limit = static_cast<std::size_t>(refine_.result_limit);
  candidates_offset_ = (searches * sizeof(ResultHeader) + 255) / 256 * 256;
  losers_offset_ =
      candidates_offset_ + (searches * limit * sizeof(TracedCandidate) + 255) / 256 * 256;
  const std::size_t bytes = losers_offset_ + searches * kMostLosers * sizeof(TracedLoser);
  // Few bytes that the GPU writes once: mapped memory on every GPU that can.
  const MemoryMode mode =
      device->properties().can_map_host_memory ? MemoryMode::kMapped : MemoryMode::kCopy;
  auto results = SharedBuffer::create(device, mode, bytes);
  if (!results) return tl::make_unexpected(results.error());
  results_ = std::move(*results);
  std::memset(results_.host(), 0, bytes);
  refine_.headers = results_.device();
  refine_.results = results_.device() + candidates_offset_;
  refine_.result_losers = results_.device() + losers_offset_;

  const Address patterns = refine_.trace.patterns;
  const Address regressions = refine_.trace.regressions;
  const int team_blocks = refine_.trace.team_blocks;
  refine_.trace = p;
  refine_.trace.team_blocks = team_blocks;
  refine_.trace.patterns = patterns;
  refine_.trace.regressions = regressions;
  return {};
}

Result<void> TraceStage::enqueue_trace(const Stream& stream) const {
  Shape searches;
  searches.block_x = kKeepThreads;
  searches.grid_x = static_cast<unsigned>(parameters_.search_count);
  for (const Step& step : steps_) {
    TraceParameters p = parameters_;
    p.patterns = step.patterns;
    p.regressions = step.regressions;
    p.team_blocks = step.team_blocks;
    Shape teams = step.shape;
    teams.grid_x *= static_cast<unsigned>(step.team_blocks);
    if (step.chooses) {
      Shape glances = step.shape;
      glances.grid_x = step.glances;
      if (auto ok = stream.launch(glance_, glances, p); !ok) return ok;
      if (auto ok = stream.launch(follow_, searches, p); !ok) return ok;
    }
    if (auto ok = stream.launch(step_, teams, p); !ok) return ok;
    if (auto ok = stream.launch(keep_, searches, p); !ok) return ok;
  }
  return {};
}

Result<void> TraceStage::enqueue_refine(const Stream& stream) const {
  if (auto ok = stream.launch(refine_kernel_, refine_shape_, refine_); !ok) return ok;
  return results_.download(stream, results_.size_bytes());
}

FoundPattern TraceStage::found(std::size_t pattern) const {
  const auto& header = results_.host_as<const ResultHeader>()[pattern];
  FoundPattern out;
  out.candidates = reinterpret_cast<const TracedCandidate*>(results_.host() + candidates_offset_) +
                   pattern * static_cast<std::size_t>(refine_.result_limit);
  out.candidate_count = header.candidates;
  out.losers = reinterpret_cast<const TracedLoser*>(results_.host() + losers_offset_) +
               pattern * kMostLosers;
  out.loser_count = header.losers;
  out.overflow = header.overflow != 0 || header.broken != 0;
  return out;
}

}  // namespace patternd::cuda
