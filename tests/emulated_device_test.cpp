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

TEST(EmulatedDevice, CountsWhatCostsAGpuTime) {
  const u8 pixel = 255;
  const emulated::Texture texture = {&pixel, 1, 1, 1, 1, 1};
  const auto address = static_cast<u64>(reinterpret_cast<std::uintptr_t>(&texture));
  const emulated::Counts before = emulated::counts;
  emulated::launch(3, 1, kThreads, 1, [&] {
    if (block_x() == 2) return;
    const float grey = fetch(address, 0.5F, 0.5F) + gather<0>(address, 0.5F, 0.5F).left_top;
    block_barrier();
    shuffle_xor(fused(grey, 2.0F, 1.0F), 1);
  });
  const emulated::Counts& after = emulated::counts;
  constexpr std::uint64_t kWorking = std::uint64_t{2} * kThreads;
  EXPECT_EQ(after.working_blocks - before.working_blocks, 2U);
  EXPECT_EQ(after.lookups - before.lookups, 2 * kWorking);
  EXPECT_EQ(after.fused - before.fused, kWorking);
  EXPECT_EQ(after.exchanges - before.exchanges, kWorking);
  EXPECT_EQ(after.barriers - before.barriers, kWorking);
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
