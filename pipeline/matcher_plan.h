// What a matcher works out once for each pattern: levels, steps, thresholds and the memory of its
// search.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/coarse_search.h"
#include "pipeline/match_angles.h"
#include "pipeline/matcher.h"
#include "pipeline/refine.h"
#include "pipeline/trace.h"

namespace patternd {

// One level of the way down.
struct TraceStep {
  TraceLevel level;
  RefinePattern regression;  // where the level has enough pixels to follow by regression
  bool by_regression = false;
  bool neighbours_first = false;
  double threshold = 0;           // candidates that score less are dropped
  double hopeless_score = 0;      // those that score less where they come down, not followed
  double least_visible = 0;       // share of pixels
  std::size_t most_followed = 0;  // of the candidates that come down (match_choice.h); 0: all
  std::size_t most_kept = 0;      // the best that go on from here

  // Whether a regression follows the trace by neighbours.
  [[nodiscard]] bool regressed_next() const { return by_regression && neighbours_first; }
};

struct PatternPlan {
  PatternSearch search;
  AngleRanges angles;
  bool fixed_angle = false;
  int top_level = 0;             // of the picture
  double light = 0;              // energy of uneven light at level 0, of the pattern's own
  std::vector<TraceStep> steps;  // from top_level down
  RefinePattern refine;
  RefinePattern refine_at_bound;  // with the angle fixed; where the angles are limited
  CoarseConfig coarse;
  double center_dx = 0;  // from the reference point to the pattern's centre, pattern pixels
  double center_dy = 0;
  std::vector<PatternLevel> pyramid;

  // Whether candidates are traced at a step. The coarsest level has just been searched with turned
  // patterns, which match the picture's pixels better than a sampled upright one does; the finest
  // is refined. Short pyramids trace there all the same.
  [[nodiscard]] bool traces(std::size_t step) const {
    if (step >= steps.size()) return false;
    if (step == 0) return steps.size() < 3;
    return step + 1 < steps.size();
  }
};

// What is wrong with a parameter: {"min_score", "2", "it must be over 0 and at most 1"}.
struct ParamFault {
  std::string key;
  std::string value;
  std::string accepted;
};
// The first parameter out of its range, whatever the pattern and the picture.
[[nodiscard]] std::optional<ParamFault> find_fault(const SearchParams& params);

// Checks the parameters against the pattern and the picture and plans the search; `what` begins the
// messages. The coarse valid mask is filled in by the matcher.
[[nodiscard]] Result<PatternPlan> plan_pattern(const PatternSearch& search,
                                               const MatcherConfig& config);

}  // namespace patternd
