// What the GPU's lists of candidates become between the stages, by its kernels run on the CPU: as
// many of the best as a pattern may have, in order, against plain loops.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <tuple>
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
    const int number = 5 + i;
    const TracedLoser& loser = choice.losers[static_cast<std::size_t>(number)];
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

// Planes of scores beside each other, as the coarse search leaves them, with what suppression
// needs.
struct Planes {
  static constexpr int kRows = 24;
  static constexpr int kWidth = 2 * kCoarseBlock;

  // `filled` positions on each, as many scores as differ by a hundredth; the last planes have none.
  Planes(int count, int filled, int peaks_per_plane, std::mt19937& random)
      : planes(static_cast<std::size_t>(count)),
        scores(planes.size(), std::vector<float>(kRows * kWidth)),
        peak_counts(planes.size()),
        peaks(planes.size() * kPeakCapacity),
        limits{{peaks_per_plane, 400}} {
    std::uniform_int_distribution<int> score(1, 40);
    std::uniform_int_distribution<int> at(0, kRows * kWidth - 1);
    for (int i = 0; i < count; ++i) {
      auto& own = scores[static_cast<std::size_t>(i)];
      for (int k = 0; k < filled && i < count - 2; ++k)
        own[static_cast<std::size_t>(at(random))] = 0.01F * static_cast<float>(score(random) - 20);
      for (int place = 0; place < kRows * kWidth; ++place) {
        const float value = own[static_cast<std::size_t>(place)];
        if (value != 0)
          positions.push_back(
              {i, static_cast<short>(place % kWidth), static_cast<short>(place / kWidth), value});
      }
      CoarsePlane& plane = planes[static_cast<std::size_t>(i)];
      plane.scores = address_of(own);
      plane.blocks = kWidth / kCoarseBlock;
      plane.rows = kRows;
      plane.first_x = -3;
      plane.first_y = 5;
      plane.phase_x = i % 2 == 0 ? 0.0F : 0.5F;
      plane.neighbour_begin = static_cast<int>(neighbours.size());
      for (int other = std::max(0, i - 2); other <= std::min(count - 1, i + 2); ++other)
        if (other != i) neighbours.push_back(other);
      plane.neighbour_end = static_cast<int>(neighbours.size());
    }
    std::shuffle(positions.begin(), positions.end(), random);
    counters[0].positions = static_cast<unsigned>(positions.size());
  }
  CoarseParameters parameters() {
    CoarseParameters p{};
    p.planes = address_of(planes);
    p.neighbours = address_of(neighbours);
    p.counters = address_of(counters);
    p.peak_counts = address_of(peak_counts);
    p.found_counts = address_of(found_counts);
    p.positions = address_of(positions);
    p.peaks = address_of(peaks);
    p.found = address_of(found);
    p.limits = address_of(limits);
    p.plane_count = static_cast<int>(planes.size());
    p.search_count = 1;
    p.position_capacity = static_cast<unsigned>(positions.size());
    return p;
  }
  std::vector<CoarsePlane> planes;
  std::vector<std::vector<float>> scores;
  std::vector<int> neighbours;
  std::vector<CoarsePosition> positions;
  std::vector<CoarseCounters> counters = std::vector<CoarseCounters>(1);
  std::vector<u32> peak_counts;
  std::vector<u32> found_counts = {0};
  std::vector<CoarsePeak> peaks;
  std::vector<CoarseFound> found = std::vector<CoarseFound>(kFoundCapacity);
  std::vector<CoarseLimits> limits;
};

bool scores_better(const CoarseFound& a, const CoarseFound& b) {
  if (a.score != b.score) return a.score > b.score;
  return a.y != b.y ? a.y < b.y : a.x < b.x;
}

// A plane's best positions that no neighbour in the plane beats.
std::vector<CoarseFound> best_of_plane(const Planes& all, int plane) {
  std::vector<CoarseFound> own;
  for (const CoarsePosition& position : all.positions)
    if (position.plane == plane)
      own.push_back({std::abs(position.score), position.score < 0 ? 1 : 0, position.x - 3,
                     position.y + 5, plane});
  std::vector<CoarseFound> best;
  for (const CoarseFound& one : own) {
    if (std::none_of(own.begin(), own.end(), [&](const CoarseFound& other) {
          return std::abs(other.x - one.x) <= 1 && std::abs(other.y - one.y) <= 1 &&
                 scores_better(other, one);
        }))
      best.push_back(one);
  }
  std::sort(best.begin(), best.end(), scores_better);
  if (best.size() > static_cast<std::size_t>(all.limits[0].peaks_per_plane))
    best.resize(static_cast<std::size_t>(all.limits[0].peaks_per_plane));
  return best;
}

// Of these, those that none of a neighbouring plane beats within a pixel and a half.
std::vector<CoarseFound> found_in(const Planes& all) {
  std::vector<std::vector<CoarseFound>> best;
  for (int i = 0; i < static_cast<int>(all.planes.size()); ++i)
    best.push_back(best_of_plane(all, i));
  std::vector<CoarseFound> found;
  for (std::size_t i = 0; i < best.size(); ++i) {
    const CoarsePlane& plane = all.planes[i];
    for (const CoarseFound& one : best[i]) {
      bool beaten = false;
      for (int n = plane.neighbour_begin; n < plane.neighbour_end; ++n) {
        const int other = all.neighbours[static_cast<std::size_t>(n)];
        const CoarsePlane& beside = all.planes[static_cast<std::size_t>(other)];
        for (const CoarseFound& theirs : best[static_cast<std::size_t>(other)]) {
          const float dx = static_cast<float>(theirs.x - one.x) + beside.phase_x - plane.phase_x;
          beaten |= std::abs(dx) <= 1.5F && std::abs(theirs.y - one.y) <= 1 &&
                    (theirs.score > one.score ||
                     (theirs.score == one.score && other < static_cast<int>(i)));
        }
      }
      if (!beaten) found.push_back(one);
    }
  }
  return found;
}

void expect_found(int planes, int filled, int peaks_per_plane, std::uint32_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", at most " + std::to_string(peaks_per_plane));
  std::mt19937 random(seed);
  Planes all(planes, filled, peaks_per_plane, random);
  std::vector<CoarseFound> expected = found_in(all);
  const CoarseParameters p = all.parameters();
  emulated::launch(4, 1, 128, seed, [&] { patternd_suppress_peaks(p); });
  emulated::launch(p.plane_count + kClearBlocks, 1, 256, seed,
                   [&] { patternd_suppress_across(p); });
  ASSERT_EQ(all.found_counts[0], expected.size());
  all.found.resize(expected.size());
  const auto by_place = [](const CoarseFound& a, const CoarseFound& b) {
    return std::tie(a.plane, a.y, a.x) < std::tie(b.plane, b.y, b.x);
  };
  std::sort(expected.begin(), expected.end(), by_place);
  std::sort(all.found.begin(), all.found.end(), by_place);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(all.found[i].plane, expected[i].plane);
    EXPECT_EQ(all.found[i].x, expected[i].x);
    EXPECT_EQ(all.found[i].y, expected[i].y);
    EXPECT_EQ(all.found[i].score, expected[i].score);
    EXPECT_EQ(all.found[i].inverted, expected[i].inverted);
  }
  EXPECT_EQ(all.counters[0].overflow, 0U);
  for (const std::vector<float>& scores : all.scores)
    EXPECT_EQ(std::count(scores.begin(), scores.end(), 0.0F),
              static_cast<std::ptrdiff_t>(scores.size()));
}

TEST(SuppressionChoice, LeavesTheBestOfEachPlaceAndClearsTheScores) {
  for (std::uint32_t seed = 1; seed <= 4; ++seed) expect_found(7, 60, 128, seed);
}

TEST(SuppressionChoice, ComparesNoMoreOfAPlaneThanItMayHave) {
  for (const int limit : {1, 5, 33}) expect_found(6, 150, limit, 5);
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
