// What the GPU's lists of candidates become between the stages, by its kernels run on the CPU: as
// many of the best as a pattern may have, in order, against plain loops.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "cuda/kernels/suppress.cu"
#include "cuda/kernels/trace.cu"

namespace patternd::cuda {
namespace {

template <class T>
Address address_of(std::vector<T>& values) {
  return reinterpret_cast<std::uintptr_t>(values.data());
}

// Candidates of which many score the same and many came to the same pose, in chains too.
std::vector<TracedCandidate> drawn(int count, std::mt19937& random) {
  std::uniform_int_distribution<int> score(0, 12);
  std::uniform_int_distribution<int> place(0, 40);
  std::uniform_int_distribution<int> turn(0, 3);
  std::vector<TracedCandidate> candidates;
  for (int i = 0; i < count; ++i) {
    TracedCandidate candidate = {};
    candidate.pose = {3.0 * place(random), 3.0 * place(random), 358.0 + 1.5 * turn(random), 1.0};
    candidate.score = 0.4 + 0.05 * score(random);
    candidate.search = i;  // to be known by
    candidates.push_back(candidate);
  }
  return candidates;
}

bool goes_first(const TracedCandidate& a, const TracedCandidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.pose.y != b.pose.y) return a.pose.y < b.pose.y;
  if (a.pose.x != b.pose.x) return a.pose.x < b.pose.x;
  return a.pose.angle_deg < b.pose.angle_deg;
}

// One pattern's, in the memory that a frame has for it.
struct Choice {
  explicit Choice(std::vector<TracedCandidate> drawn_candidates)
      : candidates(std::move(drawn_candidates)), counts{static_cast<int>(candidates.size())} {
    pattern.used = 1;
    pattern.image_level = 2;
    pattern.angle_step_deg = 2;
    pattern.period_deg = 360;
    pattern.threshold = 0.6;
    pattern.most_kept = 30;
    patterns = {pattern};
    next.resize(candidates.size() + 1);
  }
  TraceParameters parameters() {
    patterns = {pattern};
    TraceParameters p{};
    p.patterns = address_of(patterns);
    p.candidates = address_of(candidates);
    p.next = address_of(next);
    p.counts = address_of(counts);
    p.losers = address_of(losers);
    p.loser_counts = address_of(loser_counts);
    p.search_count = 1;
    p.select_limit = static_cast<int>(candidates.size());
    return p;
  }
  TracePattern pattern{};
  std::vector<TracePattern> patterns;
  std::vector<TracedCandidate> candidates;
  std::vector<TracedCandidate> next;
  std::vector<int> counts;
  std::vector<TracedLoser> losers = std::vector<TracedLoser>(kMostLosers);
  std::vector<int> loser_counts = {5};
};

bool came_to(const TracePattern& pattern, const TracedPose& a, const TracedPose& b) {
  const double pixel = 1 << pattern.image_level;
  return std::abs(a.x - b.x) <= pixel && std::abs(a.y - b.y) <= pixel &&
         std::abs(std::remainder(a.angle_deg - b.angle_deg, 360)) <= pattern.angle_step_deg;
}

// One after the other, the best first; then those that did not get that far.
struct Kept {
  std::vector<int> going;
  std::vector<int> lost;
};
Kept kept_of(const Choice& choice) {
  std::vector<TracedCandidate> sorted = choice.candidates;
  std::stable_sort(sorted.begin(), sorted.end(), goes_first);
  Kept kept;
  std::vector<TracedPose> poses;
  std::size_t i = 0;
  for (; i < sorted.size() && sorted[i].score >= choice.pattern.threshold &&
         static_cast<int>(poses.size()) < choice.pattern.most_kept;
       ++i) {
    const bool twin = std::any_of(poses.begin(), poses.end(), [&](const TracedPose& pose) {
      return came_to(choice.pattern, pose, sorted[i].pose);
    });
    if (twin) continue;
    poses.push_back(sorted[i].pose);
    kept.going.push_back(sorted[i].search);
  }
  for (; i < sorted.size(); ++i) kept.lost.push_back(static_cast<int>(i));
  return kept;
}

void expect_kept(int count, int most_kept, std::uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(count) + " candidates");
  std::mt19937 random(seed);
  Choice choice(drawn(count, random));
  choice.pattern.most_kept = most_kept;
  const Kept expected = kept_of(choice);
  const TraceParameters p = choice.parameters();
  emulated::launch(1, 1, kKeepThreads, seed, [&] { patternd_trace_keep(p); });
  ASSERT_EQ(static_cast<std::size_t>(choice.counts[0]), expected.going.size());
  for (std::size_t i = 0; i < expected.going.size(); ++i)
    EXPECT_EQ(choice.next[i].search, expected.going[i]) << i;
  const int lost = std::min(static_cast<int>(expected.lost.size()), kMostLosers - 5);
  ASSERT_EQ(choice.loser_counts[0], 5 + lost);
  std::vector<TracedCandidate> sorted = choice.candidates;
  std::stable_sort(sorted.begin(), sorted.end(), goes_first);
  for (int i = 0; i < lost; ++i) {
    const auto from = static_cast<std::size_t>(expected.lost[static_cast<std::size_t>(i)]);
    const TracedLoser& loser = choice.losers[static_cast<std::size_t>(5 + i)];
    EXPECT_EQ(loser.score, sorted[from].score);
    EXPECT_EQ(loser.pose.x, sorted[from].pose.x);
    EXPECT_EQ(loser.level, 2);
  }
}

TEST(TraceChoice, KeepsTheBestOfEachPose) {
  for (std::uint32_t seed = 1; seed <= 8; ++seed) expect_kept(48, 30, seed);
}

TEST(TraceChoice, KeepsTheBestOfAnyNumber) {
  for (const int count : {0, 1, 31, 32, 33, 255, 256, 257, 700}) expect_kept(count, 400, 3);
}

TEST(TraceChoice, KeepsNoMoreThanThereIsRoomFor) {
  for (const int room : {1, 31, 32, 100}) expect_kept(600, room, 4);
}

TEST(TraceChoice, HandsOnTheCandidatesOfAPatternThatIsNotTraced) {
  std::mt19937 random(5);
  Choice choice(drawn(70, random));
  choice.pattern.used = 0;
  const TraceParameters p = choice.parameters();
  emulated::launch(1, 1, kKeepThreads, 5, [&] { patternd_trace_keep(p); });
  EXPECT_EQ(choice.counts[0], 70);
  EXPECT_EQ(choice.loser_counts[0], 5);
  for (std::size_t i = 0; i < 70; ++i)
    EXPECT_EQ(choice.next[i].search, choice.candidates[i].search);
}

TEST(TraceChoice, FollowsTheBestOfThoseThatItGlancedAt) {
  std::mt19937 random(6);
  const std::vector<TracedCandidate> candidates = drawn(300, random);
  Choice choice(candidates);
  choice.pattern.most_followed = 100;
  choice.pattern.followed_unseen = 33;
  const TraceParameters p = choice.parameters();
  emulated::launch(1, 1, 96, 6, [&] { follow_best(p, choice.patterns[0], 0, 300); });
  std::vector<TracedCandidate> expected = candidates;
  std::stable_sort(expected.begin() + 33, expected.end(), goes_first);
  EXPECT_EQ(choice.counts[0], 100);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(choice.candidates[i].search, expected[i].search) << i;
  ASSERT_EQ(choice.loser_counts[0], 5 + 200);
  for (std::size_t i = 0; i < 200; ++i)
    EXPECT_EQ(choice.losers[5 + i].score, expected[100 + i].score) << i;
}

// Finds of the coarse search: those that score the same by plane, row and column.
TEST(SuppressionChoice, SelectsTheBestInOrder) {
  for (const int count : {0, 1, 40, 1500}) {
    SCOPED_TRACE(count);
    std::mt19937 random(7);
    std::uniform_int_distribution<int> score(0, 50);
    std::uniform_int_distribution<int> place(0, 1000);
    std::vector<CoarseFound> found(static_cast<std::size_t>(kFoundCapacity));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      found[i] = {0.5F + 0.01F * static_cast<float>(score(random)), 0, place(random),
                  static_cast<int>(i), place(random) % 2};
    std::vector<CoarsePlane> planes(2);
    for (CoarsePlane& plane : planes) plane.spacing = 1;
    planes[1].angle_deg = 90;
    std::vector<u32> found_counts = {static_cast<u32>(count)};
    std::vector<int> selected_counts = {0};
    std::vector<CoarseLimits> limits = {{128, 400}};
    std::vector<TracedCandidate> selected(400);
    CoarseParameters p{};
    p.found = address_of(found);
    p.found_counts = address_of(found_counts);
    p.planes = address_of(planes);
    p.limits = address_of(limits);
    p.selected = address_of(selected);
    p.selected_counts = address_of(selected_counts);
    p.select_limit = 400;
    emulated::launch(4, 1, kSelectThreads, 7, [&] { patternd_suppress_select(p); });
    std::sort(found.begin(), found.begin() + count, [](const CoarseFound& a, const CoarseFound& b) {
      if (a.score != b.score) return a.score > b.score;
      return a.plane != b.plane ? a.plane < b.plane : a.y < b.y;
    });
    ASSERT_EQ(selected_counts[0], std::min(count, 400));
    for (std::size_t i = 0; i < static_cast<std::size_t>(selected_counts[0]); ++i) {
      EXPECT_EQ(selected[i].pose.y, found[i].y) << i;
      EXPECT_EQ(selected[i].pose.angle_deg, found[i].plane == 1 ? 90 : 0) << i;
    }
  }
}

}  // namespace
}  // namespace patternd::cuda
