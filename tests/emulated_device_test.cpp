// The device that is emulated for the kernels' tests (support/emulated): what it tells.
#include <gtest/gtest.h>
#include <vector>

#include "cuda/kernels/device.h"
#include "cuda/kernels/warp_words.h"

namespace patternd::cuda {
namespace {

constexpr int kThreads = 2 * kWarpSize;

// Each thread's place in the sum over its warp, which lanes enter by ways of different length.
std::vector<u32> sums_of_warps(std::uint32_t seed) {
  std::vector<u32> sums(kThreads, 0);
  std::vector<u32> ways(kThreads, 0);
  emulated::launch(1, 1, kThreads, seed, [&] {
    const auto thread = static_cast<std::size_t>(thread_x());
    for (int i = 0; i < thread_x() % 7; ++i) store_through(&ways[thread], 1);
    sums[thread] = warp_sum_up_to(1);
  });
  return sums;
}

std::vector<u32> expected_sums() {
  std::vector<u32> sums;
  for (u32 i = 0; i < kThreads; ++i) sums.push_back(i % kWarpSize + 1);
  return sums;
}

TEST(EmulatedDevice, ExchangesWithinWarpsWhoseLanesRunApart) {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) EXPECT_EQ(expected_sums(), sums_of_warps(seed));
}

// As PTX of before Volta does on a GPU of since.
TEST(EmulatedDevice, TellsAnExchangeThatDoesNotWaitForItsLanes) {
  emulated::let_exchanges_wait(false);
  for (std::uint32_t seed = 1; seed <= 50; ++seed) EXPECT_NE(expected_sums(), sums_of_warps(seed));
  emulated::let_exchanges_wait(true);
}

TEST(EmulatedDevice, EndsWhereALaneIsMissingInItsWarpsExchange) {
  EXPECT_DEATH(emulated::launch(1, 1, kThreads, 1,
                                [] {
                                  if (thread_x() != 3) warp_sum(1);
                                }),
               "waits for threads that wait elsewhere");
}

TEST(EmulatedDevice, EndsWhereALaneComesWithAnotherExchangeThanItsWarp) {
  EXPECT_DEATH(emulated::launch(1, 1, kThreads, 1,
                                [] {
                                  if (thread_x() == 3) {
                                    shuffle_up(1, 1);
                                  } else {
                                    shuffle_xor(1, 1);
                                  }
                                }),
               "thread 3 is at another exchange than its warp");
}

}  // namespace
}  // namespace patternd::cuda
