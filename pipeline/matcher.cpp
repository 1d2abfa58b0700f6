#include "pipeline/matcher.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "pipeline/match_choice.h"
#include "pipeline/matcher_plan.h"
#include "pipeline/pyramid.h"
#include "pipeline/valid_area.h"

namespace patternd {
namespace {

// Candidates that one item of a thread's work traces.
constexpr std::size_t kCandidatesPerItem = 4;

// A pattern's search: its plan, and what a frame fills in.
struct PatternState {
  PatternPlan plan;
  std::optional<CoarseSearch> coarse;
  std::size_t coarse_image = 0;
  std::vector<PlanePeak> peaks;
  std::vector<Candidate> candidates;
  std::vector<Candidate> losers;
  std::vector<Refinement> refinements;
  std::vector<Match> found;
};

struct CoarseSlot {
  int level = 0;
  CoarseImage image;
};

struct ThreadScratch {
  TraceScratch trace;
  std::vector<CoarseSearch::Scratch> coarse;  // one a pattern
};

struct Task {
  std::size_t pattern = 0;
  std::size_t item = 0;
};

void remember_loser(PatternState& state, const Candidate& loser) {
  if (state.losers.size() < state.losers.capacity()) state.losers.push_back(loser);
}

// Drops all candidates but those that a step follows: the first by coarse score, then the best of
// the others by the score of one look.
void keep_followed(PatternState& state, std::size_t most) {
  auto& all = state.candidates;
  std::sort(all.begin() + static_cast<std::ptrdiff_t>(followed_unseen(most)), all.end(),
            better_candidate);
  // Later losers came nearer to a match: room for their runners-up stays.
  const std::size_t end = std::min(all.size(), most + kMostLosers / 2);
  for (std::size_t i = most; i < end; ++i) remember_loser(state, all[i]);
  all.resize(most);
}

// Sorts, drops what is under the level's threshold, came to the same pose as a better one, or is
// one too many.
void keep_best(PatternState& state, const TraceStep& step) {
  auto& all = state.candidates;
  std::sort(all.begin(), all.end(), better_candidate);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].score < step.threshold || kept == step.most_kept) {
      remember_loser(state, all[i]);
      continue;
    }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(kept);
    const bool twin = std::any_of(all.begin(), end, [&](const Candidate& other) {
      return same_pose(state.plan, step, other, all[i]);
    });
    if (!twin) all[kept++] = all[i];
  }
  all.resize(kept);
}

// Puts a pose that left the allowed angles or scales back to the nearest allowed one. Returns
// whether it had to.
bool bring_inside(const PatternPlan& plan, Candidate& candidate) {
  bool moved = false;
  if (!plan.angles.full() && !plan.angles.contains(candidate.angle_deg)) {
    candidate.angle_deg = plan.angles.nearest(candidate.angle_deg);
    moved = true;
  }
  const Range& scale = plan.search.params.scale;
  const double allowed = std::clamp(candidate.scale, scale.low, scale.high);
  moved = moved || allowed != candidate.scale;
  candidate.scale = allowed;
  return moved;
}

// One level down: by regression where that converges, else by trying the neighbours. Straight from
// the coarsest level a candidate may be too far off for the regression: there the neighbours come
// first.
void follow_down(const TraceStep& step, const TraceImage& image, TraceScratch& scratch,
                 Candidate& candidate) {
  constexpr double kWorthRefining = 0.75;
  constexpr RefineLimits kFarLimits{6, 0.06, 0.5, 0};
  candidate.level = step.level.image_level;
  if (step.by_regression && !step.neighbours_first &&
      refine(step.regression, image, scratch, candidate, kTraceLimits).converged)
    return;
  trace_step(step.level, image, scratch, candidate);
  if (step.by_regression && step.neighbours_first &&
      candidate.score > kWorthRefining * step.threshold)
    static_cast<void>(refine(step.regression, image, scratch, candidate, kFarLimits));
}

// Where rivals are brought down to: the finest level of at most so many pixels that can be followed
// by regression. Poses differ there as they do at level 0, for a fraction of the time.
const TraceStep* rival_step(const PatternPlan& plan) {
  constexpr double kMostPixels = 4096;
  const TraceStep* found = nullptr;
  for (const TraceStep& step : plan.steps)
    if (step.by_regression && step.level.pattern.pixels <= kMostPixels) found = &step;
  return found;
}

}  // namespace

struct Matcher::State {
  MatcherConfig config;
  ThreadPool* pool = nullptr;
  Pyramid pyramid;
  std::vector<Image> valid;  // a level each; empty: all valid
  std::vector<CoarseSlot> coarse_images;
  std::vector<PatternState> patterns;
  std::vector<ThreadScratch> threads;
  std::vector<Task> tasks;

  // What create() does, in this order.
  [[nodiscard]] Result<void> make_valid_levels(const ImageView& area, int levels);
  void prepare_patterns();
  void prepare_coarse_images();
  void prepare_threads();

  // Empty where all is valid.
  [[nodiscard]] ImageView valid_at(int level) const {
    return valid.empty() ? ImageView{} : valid[static_cast<std::size_t>(level)].view();
  }

  template <class Body>
  void for_each_task(const Body& body) {
    if (pool == nullptr) {
      for (const Task& task : tasks) body(task, threads[0]);
      return;
    }
    pool->for_each_with_thread(tasks.size(), [&](std::size_t i, int thread) {
      body(tasks[i], threads[static_cast<std::size_t>(thread)]);
    });
  }

  [[nodiscard]] TraceImage image_at(const PatternPlan& plan, int level, double least_visible,
                                    double least_contrast) const {
    TraceImage out;
    out.image = pyramid.level(level);
    out.valid = valid_at(level);
    out.least_visible = least_visible;
    out.least_contrast = least_contrast;
    out.any_polarity = plan.coarse.any_polarity;
    return out;
  }

  template <class First>
  void add_candidate_tasks(const First& first);
  // Calls body(step, image, scratch, candidate) for the candidates of all tasks.
  template <class Body>
  void for_each_candidate(std::size_t s, const Body& body) {
    for_each_task([&](const Task& task, ThreadScratch& scratch) {
      PatternState& state = patterns[task.pattern];
      const TraceStep& step = state.plan.steps[s];
      TraceImage image = image_at(state.plan, step.level.image_level, step.least_visible, 0);
      image.hopeless_score = step.hopeless_score;
      image.regressed_next = step.regressed_next();
      const std::size_t end = std::min(task.item + kCandidatesPerItem, state.candidates.size());
      for (std::size_t i = task.item; i < end; ++i)
        body(step, image, scratch.trace, state.candidates[i]);
    });
  }

  void search_coarsest();
  void suppress_peaks();
  void choose_followed(std::size_t s);
  void follow_all(std::size_t s);
  void trace_down();
  void refine_all();
  void refine_one(PatternState& state, std::size_t index, TraceScratch& scratch) const;
  void score_runners_up(std::vector<Match>& matches);
  [[nodiscard]] double runner_up_of(const PatternState& state, const Candidate& match,
                                    TraceScratch& scratch) const;
};

void Matcher::State::search_coarsest() {
  tasks.clear();
  for (CoarseSlot& slot : coarse_images) slot.image.build(pyramid.level(slot.level));
  for (std::size_t p = 0; p < patterns.size(); ++p)
    for (std::size_t g = 0; g < patterns[p].coarse->groups(); ++g) tasks.push_back({p, g});
  for_each_task([&](const Task& task, ThreadScratch& scratch) {
    PatternState& state = patterns[task.pattern];
    state.coarse->search_group(task.item, coarse_images[state.coarse_image].image.rows(),
                               scratch.coarse[task.pattern]);
  });
}

void Matcher::State::suppress_peaks() {
  for (PatternState& state : patterns) {
    state.coarse->suppress(state.peaks);
    state.candidates.clear();
    state.losers.clear();
    for (const PlanePeak& peak : state.peaks) {
      const CoarseFind find = state.coarse->find(peak);
      Candidate candidate;
      candidate.x = find.x;
      candidate.y = find.y;
      candidate.angle_deg = find.angle_deg;
      candidate.scale = find.scale;
      candidate.score = find.score;
      candidate.level = state.plan.top_level;
      candidate.inverted = find.inverted;
      state.candidates.push_back(candidate);
    }
  }
}

// Tasks of the candidates from first(state) on, kCandidatesPerItem each.
template <class First>
void Matcher::State::add_candidate_tasks(const First& first) {
  tasks.clear();
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    for (std::size_t i = first(patterns[p]); i < patterns[p].candidates.size();
         i += kCandidatesPerItem)
      tasks.push_back({p, i});
  }
}

// Where more candidates come down than a step follows, one look tells which.
void Matcher::State::choose_followed(std::size_t s) {
  const auto too_many = [&](const PatternState& state) {
    if (!state.plan.traces(s)) return false;
    const std::size_t most = state.plan.steps[s].most_followed;
    return most > 0 && state.candidates.size() > most;
  };
  add_candidate_tasks([&](const PatternState& state) {
    return too_many(state) ? followed_unseen(state.plan.steps[s].most_followed)
                           : state.candidates.size();
  });
  for_each_candidate(s, [](const TraceStep& step, const TraceImage& image, TraceScratch& scratch,
                           Candidate& candidate) {
    candidate.level = step.level.image_level;
    candidate.score = score_around(step.level, image, scratch, candidate);
  });
  for (PatternState& state : patterns)
    if (too_many(state)) keep_followed(state, state.plan.steps[s].most_followed);
}

void Matcher::State::follow_all(std::size_t s) {
  add_candidate_tasks([&](const PatternState& state) {
    return state.plan.traces(s) ? 0 : state.candidates.size();
  });
  for_each_candidate(s, [&](const TraceStep& step, const TraceImage& image, TraceScratch& scratch,
                            Candidate& candidate) {
    const double coarse_score = candidate.score;
    follow_down(step, image, scratch, candidate);
    // Resampling blurs, and at the coarsest level that can cost a true find more than chance
    // costs a false one: what the coarse search saw there still counts.
    if (s == 0) candidate.score = std::max(candidate.score, coarse_score);
  });
  for (PatternState& state : patterns)
    if (state.plan.traces(s)) keep_best(state, state.plan.steps[s]);
}

void Matcher::State::trace_down() {
  std::size_t most_steps = 0;
  for (const PatternState& state : patterns)
    most_steps = std::max(most_steps, state.plan.steps.size());
  for (std::size_t s = 0; s < most_steps; ++s) {
    choose_followed(s);
    follow_all(s);
  }
}

void Matcher::State::refine_one(PatternState& state, std::size_t index,
                                TraceScratch& scratch) const {
  const PatternPlan& plan = state.plan;
  const TraceStep& last = plan.steps.back();
  Candidate& candidate = state.candidates[index];
  candidate.level = last.level.image_level;
  const TraceImage image = image_at(plan, last.level.image_level, plan.search.params.min_visible,
                                    plan.search.params.min_contrast);
  Refinement& refinement = state.refinements[index];
  refinement = refine(plan.refine, image, scratch, candidate);
  if (!refinement.converged) {
    // Too far off for its basin: one more step of search at this level.
    TraceImage loose = image;
    loose.least_visible = last.least_visible;
    loose.hopeless_score = kHopelessAtLast * plan.search.params.min_score;
    trace_step(last.level, loose, scratch, candidate);
    if (candidate.score >= loose.hopeless_score)
      refinement = refine(plan.refine, image, scratch, candidate);
  }
  const bool moved = bring_inside(plan, candidate);
  if (moved && !plan.refine_at_bound.inverse_gram.empty())
    refinement = refine(plan.refine_at_bound, image, scratch, candidate);
  if (moved || !refinement.converged) {
    bring_inside(plan, candidate);
    score_candidate(plan.refine.level, image, scratch, candidate);
  }
}

void Matcher::State::refine_all() {
  tasks.clear();
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    patterns[p].refinements.resize(patterns[p].candidates.size());
    for (std::size_t i = 0; i < patterns[p].candidates.size(); ++i) tasks.push_back({p, i});
  }
  for_each_task([&](const Task& task, ThreadScratch& scratch) {
    refine_one(patterns[task.pattern], task.item, scratch.trace);
  });
}

double Matcher::State::runner_up_of(const PatternState& state, const Candidate& match,
                                    TraceScratch& scratch) const {
  constexpr RefineLimits kRivalLimits{4, 0.06, 0.5, 0};
  // A pose from a coarse level is good enough for the score of a pattern larger than this.
  constexpr double kMostRefinedPixels = 8192;
  const PatternPlan& plan = state.plan;
  const TraceStep& last = plan.steps.back();
  const TraceStep* coarse = rival_step(plan);
  const TraceStep& step = coarse != nullptr ? *coarse : last;
  const RefinePattern& regression = coarse != nullptr ? coarse->regression : plan.refine;
  const TraceImage image = image_at(plan, step.level.image_level, step.least_visible, 0);
  Rivals rivals;
  const std::size_t count = rivals_of(plan, match, state.losers, rivals);
  Candidate best;
  for (std::size_t i = 0; i < count; ++i) {
    Candidate rival = rivals[i];
    if (!refine(regression, image, scratch, rival, kRivalLimits).converged)
      score_candidate(regression.level, image, scratch, rival);
    if (!same_pose(plan, step, match, rival) && rival.score > best.score) best = rival;
  }
  if (!(best.score > 0)) return 0;
  const TraceImage finest =
      image_at(plan, last.level.image_level, last.least_visible, plan.search.params.min_contrast);
  const bool small = last.level.pattern.pixels <= kMostRefinedPixels;
  if (!small || !refine(plan.refine, finest, scratch, best, kRivalLimits).converged)
    score_candidate(plan.refine.level, finest, scratch, best);
  return same_pose(plan, last, match, best) ? 0 : best.score;
}

// Of matches still pattern by pattern: `candidates` begin with those that became them.
void Matcher::State::score_runners_up(std::vector<Match>& matches) {
  tasks.clear();
  std::size_t match = 0;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    for (std::size_t i = 0; match < matches.size() && matches[match].pattern == static_cast<int>(p);
         ++i, ++match)
      tasks.push_back({p, i});
  }
  for_each_task([&](const Task& task, ThreadScratch& scratch) {
    PatternState& state = patterns[task.pattern];
    Candidate& winner = state.candidates[task.item];
    winner.runner_up = runner_up_of(state, winner, scratch.trace);
  });
  for (std::size_t t = 0; t < tasks.size(); ++t)
    matches[t].runner_up = patterns[tasks[t].pattern].candidates[tasks[t].item].runner_up;
}

Result<void> Matcher::State::make_valid_levels(const ImageView& area, int levels) {
  if (area.data == nullptr || all_set(area)) return {};
  auto copy = Image::copy_of(area);
  if (!copy) return tl::make_unexpected(copy.error());
  valid.push_back(std::move(*copy));
  for (int l = 1; l <= levels; ++l) valid.push_back(halved_mask(valid.back().view()));
  return {};
}

// Each pattern's coarse search, and room for all that a frame brings.
void Matcher::State::prepare_patterns() {
  ThreadPool::for_each_allocating(pool, patterns.size(), [&](std::size_t i) {
    PatternPlan& plan = patterns[i].plan;
    plan.coarse.valid = valid_at(plan.top_level);
    patterns[i].coarse.emplace(plan.pyramid, plan.coarse);
  });
  std::size_t most_tasks = 0;
  for (PatternState& pattern : patterns) {
    PatternPlan& plan = pattern.plan;
    const std::size_t most = most_coarse(plan.search.params);
    pattern.peaks.reserve(most);
    pattern.candidates.reserve(most);
    pattern.refinements.reserve(most);
    pattern.losers.reserve(kMostLosers);
    most_tasks += std::max(pattern.coarse->groups(), most);
    plan.pyramid.clear();
    plan.pyramid.shrink_to_fit();
  }
  tasks.reserve(most_tasks);
}

// One a level, shared by the patterns that are searched there, with the widest margin of theirs.
void Matcher::State::prepare_coarse_images() {
  for (PatternState& pattern : patterns) {
    const int level = pattern.plan.top_level;
    const auto slot = std::find_if(coarse_images.begin(), coarse_images.end(),
                                   [&](const CoarseSlot& s) { return s.level == level; });
    pattern.coarse_image = static_cast<std::size_t>(slot - coarse_images.begin());
    const int margin = pattern.coarse->margin();
    if (slot != coarse_images.end() && slot->image.margin() >= margin) continue;
    CoarseImage image(config.width >> level, config.height >> level, margin, valid_at(level));
    if (slot == coarse_images.end())
      coarse_images.push_back({level, std::move(image)});
    else
      slot->image = std::move(image);
  }
}

void Matcher::State::prepare_threads() {
  int width = 1;
  int height = 1;
  for (const PatternState& pattern : patterns) {
    for (const TraceStep& step : pattern.plan.steps) {
      width = std::max(width, step.level.pattern.width);
      height = std::max(height, step.level.pattern.height);
    }
  }
  const int count = pool == nullptr ? 1 : pool->thread_count();
  for (int t = 0; t < count; ++t) {
    ThreadScratch scratch;
    scratch.trace = TraceScratch(width, height);
    for (const PatternState& pattern : patterns) scratch.coarse.emplace_back(*pattern.coarse);
    threads.push_back(std::move(scratch));
  }
}

Matcher::Matcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

namespace {

Result<void> check_config(const MatcherConfig& config) {
  if (config.width < 1 || config.height < 1 || config.width > kMaxImageSide ||
      config.height > kMaxImageSide) {
    return fail(ErrorCode::kInvalidArgument, "searched picture of " + std::to_string(config.width) +
                                                 "x" + std::to_string(config.height) +
                                                 "; both must be 1 to " +
                                                 std::to_string(kMaxImageSide));
  }
  if (config.format != PixelFormat::kGray8 && config.format != PixelFormat::kGray16)
    return fail(ErrorCode::kInvalidArgument, std::string("searched picture is ") +
                                                 name_of(config.format) +
                                                 "; gray8 or gray16 is needed");
  if (config.valid.data != nullptr &&
      (config.valid.format != PixelFormat::kGray8 || config.valid.width != config.width ||
       config.valid.height != config.height)) {
    return fail(ErrorCode::kInvalidArgument,
                "the valid area must be gray8 and as large as the searched picture");
  }
  return {};
}

}  // namespace

Result<Matcher> Matcher::create(const MatcherConfig& config, ThreadPool* pool) {
  if (auto ok = check_config(config); !ok) return tl::make_unexpected(ok.error());
  auto state = std::make_unique<State>();
  state->config = config;
  state->config.valid = {};
  state->pool = pool;
  int levels = 0;
  for (const PatternSearch& search : config.patterns) {
    auto plan = plan_pattern(search, config);
    if (!plan) return tl::make_unexpected(plan.error());
    levels = std::max(levels, plan->top_level);
    state->patterns.emplace_back();
    state->patterns.back().plan = std::move(*plan);
  }
  auto pyramid = Pyramid::create(config.width, config.height, config.format, levels);
  if (!pyramid) return tl::make_unexpected(pyramid.error());
  state->pyramid = std::move(*pyramid);
  if (auto made = state->make_valid_levels(config.valid, levels); !made)
    return tl::make_unexpected(made.error());
  state->prepare_patterns();
  state->prepare_coarse_images();
  state->prepare_threads();
  return Matcher(std::move(state));
}

void Matcher::match(const ImageView& image, std::vector<Match>& matches, StageTimes& times) {
  matches.clear();
  {
    const StageTimer timer(times, Stage::kPyramid);
    state_->pyramid.build(image, state_->pool);
  }
  {
    const StageTimer timer(times, Stage::kSearch);
    state_->search_coarsest();
  }
  {
    const StageTimer timer(times, Stage::kNms);
    state_->suppress_peaks();
  }
  {
    const StageTimer timer(times, Stage::kTrace);
    state_->trace_down();
  }
  const StageTimer timer(times, Stage::kRefine);
  state_->refine_all();
  for (std::size_t p = 0; p < state_->patterns.size(); ++p) {
    PatternState& state = state_->patterns[p];
    choose_matches(state.plan, static_cast<int>(p), state.candidates, state.refinements,
                   state.losers, matches);
  }
  state_->score_runners_up(matches);
  sort_matches(matches);
}

SearchCost Matcher::cost() const {
  SearchCost cost;
  const auto& config = state_->config;
  cost.memory_bytes = static_cast<std::size_t>(config.width) *
                      static_cast<std::size_t>(config.height) * bytes_per_pixel(config.format) / 3;
  for (const CoarseSlot& slot : state_->coarse_images)
    cost.memory_bytes += slot.image.memory_bytes();
  for (const PatternState& pattern : state_->patterns) {
    cost.memory_bytes += pattern.coarse->memory_bytes();
    cost.operations += pattern.coarse->operations();
    for (const TraceStep& step : pattern.plan.steps) {
      const UprightPattern& upright = step.level.pattern;
      cost.memory_bytes += upright.values.size() * 2 * sizeof(float);
      cost.operations += pattern.plan.search.params.max_matches * upright.pixels;
    }
    cost.memory_bytes += pattern.plan.refine.values.size() * 4 * sizeof(float);
  }
  return cost;
}

}  // namespace patternd
