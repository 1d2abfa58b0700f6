// Which candidates become matches: the order among them, when two are one find, and the choice at
// the end, which the CPU's and the GPU's search share.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "pipeline/match.h"
#include "pipeline/matcher_plan.h"
#include "pipeline/refine.h"
#include "pipeline/trace.h"

namespace patternd {

// Candidates that go on from the coarsest level: generous beside the matches wanted. A pattern of
// 60 pixels has 7×8 there, and hundreds of places look as much like it as it does itself.
[[nodiscard]] std::size_t most_coarse(const SearchParams& params);
inline constexpr int kMostCoarse = 4000;  // of any search
// Of those, how many are followed down. The first third goes by the coarse score; for the rest one
// look at the level below decides, which has four times the pixels and tells them apart better.
[[nodiscard]] std::size_t most_followed(const SearchParams& params);
[[nodiscard]] inline std::size_t followed_unseen(std::size_t most) { return most / 3; }
// A candidate that scores less than this share of min_score where it comes down to the finest level
// is not worth following: poses are known to about a pixel there.
inline constexpr double kHopelessAtLast = 0.5;
// Losers remembered for the runners-up of a pattern.
inline constexpr std::size_t kMostLosers = 512;

// Higher score, else further up, further left, smaller angle.
[[nodiscard]] bool better_candidate(const Candidate& a, const Candidate& b);

// Whether two candidates are one find: within a pixel of the step's level, an angle step and a
// scale step.
[[nodiscard]] bool same_pose(const PatternPlan& plan, const TraceStep& step, const Candidate& a,
                             const Candidate& b);

// The losers that may be a match's runner-up: those that came farthest down, then the best by their
// scores where they lost, of those whose rectangles overlap the match's by more than max_overlap
// and that are not its own pose. Returns how many there are, at most `most` (≤ kMostRivals).
inline constexpr std::size_t kMostRivals = 3;
using Rivals = std::array<Candidate, kMostRivals>;
[[nodiscard]] std::size_t rivals_of(const PatternPlan& plan, const Candidate& match,
                                    const std::vector<Candidate>& losers, Rivals& rivals,
                                    std::size_t most = kMostRivals);

// Appends to `matches` the best refined candidates that don't overlap a better one, each with its
// runner-up. The chosen candidates come to the front, in the order of their matches. Reorders
// candidates and refinements, which lie side by side; adds to `losers` up to its capacity.
// Allocates nothing where `matches` has room. The runner-up's score here is the one it had at the
// level where it lost, at most the match's own: an upper estimate, as coarse levels tell poses
// apart less well. Who has the picture at hand scores the rivals at the finest level.
void choose_matches(const PatternPlan& plan, int pattern, std::vector<Candidate>& candidates,
                    std::vector<Refinement>& refinements, std::vector<Candidate>& losers,
                    std::vector<Match>& matches);

// By falling score, then pattern, then place.
void sort_matches(std::vector<Match>& matches);

}  // namespace patternd
