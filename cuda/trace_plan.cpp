#include "cuda/trace_plan.h"

#include <algorithm>
#include <string>
#include <utility>

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
// Pixels of a piece, about: the block's threads take all of them at once.
constexpr int kPixelsPerPiece = 1024;
// Blocks of a launch that work at a time, a multiprocessor.
constexpr int kBlocksPerMultiprocessor = 2;

int most_pose_warps(int width, int height) {
  return std::clamp(width * height / kPixelsPerWarp, 1, kMostWarpsPerPose);
}

unsigned pose_threads(int warps_a_pose) {
  return static_cast<unsigned>(kPosesAtOnce * kWarpSize * warps_a_pose);
}

// Blocks with so many warps a pose that a multiprocessor takes at a time: by registers one of the
// largest (their launch bound), by shared memory what finds room.
int resident_blocks(const DeviceProperties& gpu, int warps_a_pose) {
  constexpr int kBytes =
      kPoseMemoryBytes + 3 * 1024;  // with what a launch and other variables take
  return std::clamp(gpu.shared_bytes_per_multiprocessor / kBytes, 1,
                    kMostWarpsPerPose / warps_a_pose);
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
  const int width = from.level.pattern.width;
  const int height = from.level.pattern.height;
  const int pieces = std::clamp(width * height / kPixelsPerPiece, 1, std::min(height, kMostPieces));
  out.piece_rows = (height + pieces - 1) / pieces;
  out.pieces = (height + out.piece_rows - 1) / out.piece_rows;
  if (from.inverse_gram.empty()) return out;
  std::vector<double> gram = from.gram;
  for (int i = kFirstRamp; i < kNuisances; ++i)
    gram[static_cast<std::size_t>(i) * (kRegressors + 1)] +=
        from.light_prior[static_cast<std::size_t>(i - kFirstRamp)];
  out.gram = arena.put(gram);
  std::copy(from.inverse_gram.begin(), from.inverse_gram.end(), out.inverse_gram);
  out.used = 1;
  return out;
}

TracePattern trace_pattern_of(Arena& arena, const PatternPlan& plan, const TraceStep& step) {
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
  out.hopeless_score = step.hopeless_score;
  out.period_deg = plan.angles.period_deg;
  out.width = pattern.width;
  out.height = pattern.height;
  out.image_level = step.level.image_level;
  out.most_kept = static_cast<int>(step.most_kept);
  out.used = 1;
  out.any_polarity = plan.coarse.any_polarity ? 1 : 0;
  out.neighbours_first = step.neighbours_first ? 1 : 0;
  out.most_followed = static_cast<int>(step.most_followed);
  out.regressed_next = step.regressed_next() ? 1 : 0;
  out.followed_unseen = static_cast<int>(followed_unseen(step.most_followed));
  return out;
}

AllowedPoses allowed_of(const PatternPlan& plan) {
  AllowedPoses out{};
  out.period_deg = plan.angles.period_deg;
  out.low_scale = plan.search.params.scale.low;
  out.high_scale = plan.search.params.scale.high;
  out.max_overlap = static_cast<float>(plan.search.params.max_overlap);
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

// The most of any pattern that takes part in a launch.
struct Most {
  int width = 1;
  int height = 1;
  std::size_t candidates = 1;  // that come down
  std::size_t followed = 1;    // of these
};

class Planner {
 public:
  Planner(const std::shared_ptr<const Device>& device, const std::vector<const PatternPlan*>& plans)
      : device_(device), plans_(plans) {}
  [[nodiscard]] Result<TracePlan> run();

 private:
  [[nodiscard]] Result<void> find_kernels();
  void put_tables(Arena& arena);
  void put_step(Arena& arena, std::size_t number);
  void put_last(Arena& arena);
  [[nodiscard]] Most most_of_step(std::size_t number) const;
  [[nodiscard]] Most most_of_last() const;
  // Blocks a candidate, of which a launch has `candidates` at most.
  [[nodiscard]] int team_of(const std::vector<RefinePattern>& regressions, std::size_t candidates);

  const std::shared_ptr<const Device>& device_;
  const std::vector<const PatternPlan*>& plans_;
  TracePlan plan_;
};

Result<void> Planner::find_kernels() {
  const std::pair<Kernel*, const char*> wanted[] = {{&plan_.glance, "patternd_trace_glance"},
                                                    {&plan_.step, "patternd_trace_step"},
                                                    {&plan_.keep, "patternd_trace_keep"},
                                                    {&plan_.refine, "patternd_refine_pose"}};
  for (const auto& [kernel, name] : wanted) {
    auto found = device_->kernel(name);
    if (!found) return tl::make_unexpected(found.error());
    *kernel = *found;
  }
  return {};
}

Most Planner::most_of_step(std::size_t number) const {
  Most most;
  for (const PatternPlan* plan : plans_) {
    if (!plan->traces(number)) continue;
    const TraceStep& step = plan->steps[number];
    const std::size_t before = kept_before(*plan, number);
    const std::size_t followed =
        step.most_followed > 0 ? std::min(before, step.most_followed) : before;
    most.width = std::max(most.width, step.level.pattern.width);
    most.height = std::max(most.height, step.level.pattern.height);
    most.candidates = std::max(most.candidates, before);
    most.followed = std::max(most.followed, followed);
  }
  return most;
}

Most Planner::most_of_last() const {
  Most most;
  for (const PatternPlan* plan : plans_) {
    const UprightPattern& pattern = plan->steps.back().level.pattern;
    most.width = std::max(most.width, pattern.width);
    most.height = std::max(most.height, pattern.height);
    most.candidates = std::max(most.candidates, kept_before(*plan, plan->steps.size()));
  }
  most.followed = most.candidates;
  return most;
}

int Planner::team_of(const std::vector<RefinePattern>& regressions, std::size_t candidates) {
  const int blocks = team_for(*device_, plans_, most_pieces(regressions));
  if (blocks > 1) plan_.team_limit = std::max(plan_.team_limit, static_cast<int>(candidates));
  return blocks;
}

// One launch of the trace.
void Planner::put_step(Arena& arena, std::size_t number) {
  TracePlan::Step step;
  std::vector<TracePattern> patterns(plans_.size());
  std::vector<RefinePattern> regressions(plans_.size());
  for (std::size_t i = 0; i < plans_.size(); ++i) {
    const PatternPlan& plan = *plans_[i];
    if (!plan.traces(number)) continue;
    const TraceStep& from = plan.steps[number];
    step.chooses = step.chooses || from.most_followed > 0;
    patterns[i] = trace_pattern_of(arena, plan, from);
    patterns[i].coarsest = number == 0 ? 1 : 0;
    if (from.by_regression) regressions[i] = put_refine(arena, from.regression);
  }
  step.patterns = arena.put(patterns);
  step.regressions = arena.put(regressions);
  const Most most = most_of_step(number);
  step.team_blocks = team_of(regressions, most.followed);
  step.glances = static_cast<unsigned>(most.candidates);
  step.shape.block_x = pose_threads(
      pose_warps(device_->properties(), most.width, most.height, most.followed * plans_.size()));
  step.shape.grid_x = static_cast<unsigned>(most.followed);
  step.shape.grid_y = static_cast<unsigned>(plans_.size());
  plan_.steps.push_back(step);
}

// The finest level.
void Planner::put_last(Arena& arena) {
  std::vector<TracePattern> patterns;
  std::vector<TracePattern> loose;
  std::vector<RefinePattern> regressions;
  std::vector<RefinePattern> at_bound;
  std::vector<AllowedPoses> allowed;
  for (const PatternPlan* plan : plans_) {
    TracePattern pattern = trace_pattern_of(arena, *plan, plan->steps.back());
    pattern.least_contrast = plan->search.params.min_contrast;
    pattern.hopeless_score = kHopelessAtLast * plan->search.params.min_score;
    pattern.regressed_next = 0;
    loose.push_back(pattern);
    pattern.least_visible = plan->search.params.min_visible;
    patterns.push_back(pattern);
    regressions.push_back(put_refine(arena, plan->refine));
    at_bound.push_back(put_refine(arena, plan->refine_at_bound));
    allowed.push_back(allowed_of(*plan));
  }
  TracePlan::LastStep& last = plan_.last;
  last.patterns = arena.put(patterns);
  last.regressions = arena.put(regressions);
  last.loose = arena.put(loose);
  last.at_bound = arena.put(at_bound);
  last.allowed = arena.put(allowed);
  const Most most = most_of_last();
  last.result_limit = static_cast<int>(most.candidates);
  last.team_blocks = most_pieces(regressions);
  last.shape.block_x = std::min(pose_threads(most_pose_warps(most.width, most.height)),
                                static_cast<unsigned>(kMostRefineThreads));
  const int workers = kBlocksPerMultiprocessor * device_->properties().multiprocessors;
  // Whoever has helpers has one at least.
  last.team_limit = workers / 2;
  last.shape.grid_x = static_cast<unsigned>(workers) + static_cast<unsigned>(plans_.size());
}

void Planner::put_tables(Arena& arena) {
  plan_.steps.clear();
  std::size_t most_steps = 0;
  for (const PatternPlan* plan : plans_) most_steps = std::max(most_steps, plan->steps.size());
  for (std::size_t number = 0; number < most_steps; ++number) {
    const bool any = std::any_of(plans_.begin(), plans_.end(),
                                 [&](const PatternPlan* plan) { return plan->traces(number); });
    if (any) put_step(arena, number);
  }
  put_last(arena);
}

Result<TracePlan> Planner::run() {
  if (auto ok = check_ranges(plans_); !ok) return tl::make_unexpected(ok.error());
  if (auto ok = find_kernels(); !ok) return tl::make_unexpected(ok.error());
  plan_.search_count = static_cast<int>(plans_.size());
  auto tables = fill_arena(device_, [&](Arena& arena) { put_tables(arena); });
  if (!tables) return tl::make_unexpected(tables.error());
  plan_.tables = std::move(*tables);
  return std::move(plan_);
}

}  // namespace

int pose_warps(const DeviceProperties& gpu, int width, int height, std::size_t blocks) {
  int best = most_pose_warps(width, height);
  for (int warps = best; warps > 0; warps /= 2) {
    const int room = resident_blocks(gpu, warps);
    if (room * warps < resident_blocks(gpu, best) * best) break;
    best = warps;
    if (blocks / 2 <=
        static_cast<std::size_t>(room) * static_cast<std::size_t>(gpu.multiprocessors))
      break;
  }
  return best;
}

Result<TracePlan> TracePlan::create(const std::shared_ptr<const Device>& device,
                                    const std::vector<const PatternPlan*>& plans) {
  return Planner(device, plans).run();
}

}  // namespace patternd::cuda
