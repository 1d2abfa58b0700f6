// What the GPU hands to the host as possible runners-up, compared with the host's exact overlap.
// The kernels' arithmetic runs on the CPU (support/emulated).
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <string>

#include "cuda/kernels/rivals.h"
#include "pipeline/match_angles.h"

namespace patternd::cuda {
namespace {

struct Pair {
  float width, height;
  TracedPose first, second;
};

double overlap(const Pair& pair, const TracedPose& first) {
  const auto rectangle = [&](const TracedPose& pose) {
    return TurnedRectangle{pose.x, pose.y, static_cast<double>(pair.width) * pose.scale,
                           static_cast<double>(pair.height) * pose.scale, pose.angle_deg};
  };
  return overlap_of(rectangle(first), rectangle(pair.second));
}

class RandomPairs {
 public:
  explicit RandomPairs(unsigned seed) : random_(seed) {}
  double between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  Pair next() {
    Pair out{};
    out.width = static_cast<float>(between(20, 200));
    out.height = static_cast<float>(between(20, 200));
    out.first = {between(0, 400), between(0, 400), between(-180, 180), between(0.5, 2)};
    out.second = {between(0, 400), between(0, 400), between(-180, 180), between(0.5, 2)};
    return out;
  }

 private:
  std::mt19937 random_;
};

TEST(CudaRivals, MissesNoneThatOverlapsWhereverTheFirstOneMoves) {
  constexpr unsigned kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomPairs pairs(kSeed);
  int overlapping = 0;
  int left_out = 0;
  for (int i = 0; i < 20000; ++i) {
    const Pair pair = pairs.next();
    const float least = static_cast<float>(pairs.between(0, 0.9));
    const double margin = pairs.between(0, 10);
    const double way = pairs.between(0, 360) * kDegToRad;
    TracedPose moved = pair.first;
    moved.x += margin * std::cos(way);
    moved.y += margin * std::sin(way);
    const bool rival = may_overlap({pair.width, pair.height, static_cast<float>(margin)}, least,
                                   pair.first, pair.second);
    const bool overlaps = overlap(pair, moved) > static_cast<double>(least) + 1e-4;
    EXPECT_TRUE(rival || !overlaps) << i;
    overlapping += overlaps ? 1 : 0;
    left_out += rival ? 0 : 1;
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_GT(left_out, 5000);
}

TEST(CudaRivals, AreExactWhereTheRectanglesAreUprightBesideEachOther) {
  const TracedPose here{0, 0, 30, 1};
  const auto beside = [](double share) {
    const double way = 30 * kDegToRad;
    return TracedPose{10 * share * std::cos(way), 10 * share * std::sin(way), 120, 1};
  };
  EXPECT_TRUE(may_overlap({10, 10, 0}, 0.3F, here, beside(0.69)));
  EXPECT_FALSE(may_overlap({10, 10, 0}, 0.3F, here, beside(0.71)));
  EXPECT_TRUE(may_overlap({10, 10, 1}, 0.3F, here, beside(0.71)));
}

}  // namespace
}  // namespace patternd::cuda
