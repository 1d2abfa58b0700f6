// The device that is emulated for the kernels' tests (support/emulated): what it tells.
#include <gtest/gtest.h>
#include <random>
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

// Bytes of a 16×32 and a 32×8 matrix as lanes hold them, and their product by the plain loops.
TEST(EmulatedDevice, MultipliesMatricesOfBytesThatTheWarpHolds) {
  std::mt19937 random(3);
  SCOPED_TRACE("seed 3");
  u8 a[16][32];
  signed char b[32][8];
  for (auto& row : a)
    for (u8& value : row) value = static_cast<u8>(random());
  for (auto& row : b)
    for (signed char& value : row) value = static_cast<signed char>(random());
  const auto words_of_a = [&](int row, int column) {
    u32 word = 0;
    for (int i = 0; i < 4; ++i) word |= static_cast<u32>(a[row][column + i]) << 8 * i;
    return word;
  };
  const auto words_of_b = [&](int row, int column) {
    u32 word = 0;
    for (int i = 0; i < 4; ++i)
      word |= static_cast<u32>(static_cast<u8>(b[row + i][column])) << 8 * i;
    return word;
  };
  int as_signed[16][8] = {};
  int as_unsigned[16][8] = {};
  emulated::launch(1, 1, kWarpSize, 1, [&] {
    const int g = thread_x() / 4;
    const int t = thread_x() % 4;
    const u32 factors[2] = {words_of_b(4 * t, g), words_of_b(16 + 4 * t, g)};
    int sums[4] = {1, 1, 1, 1};
    int unsigned_sums[4] = {};
    const u32 words[4] = {words_of_a(g, 4 * t), words_of_a(g + 8, 4 * t), words_of_a(g, 16 + 4 * t),
                          words_of_a(g + 8, 16 + 4 * t)};
    add_products(sums, words[0], words[1], words[2], words[3], factors);
    add_products_unsigned(unsigned_sums, words[0], words[1], words[2], words[3], factors);
    for (int i = 0; i < 4; ++i) {
      as_signed[g + i / 2 * 8][2 * t + i % 2] = sums[i];
      as_unsigned[g + i / 2 * 8][2 * t + i % 2] = unsigned_sums[i];
    }
  });
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int expected_signed = 1;
      int expected_unsigned = 0;
      for (int k = 0; k < 32; ++k) {
        expected_signed += static_cast<signed char>(a[row][k]) * b[k][column];
        expected_unsigned += a[row][k] * b[k][column];
      }
      EXPECT_EQ(as_signed[row][column], expected_signed) << row << ' ' << column;
      EXPECT_EQ(as_unsigned[row][column], expected_unsigned) << row << ' ' << column;
    }
  }
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
