#include "pipeline/thread_pool.h"

#include <atomic>
#include <gtest/gtest.h>
#include <new>
#include <vector>

namespace patternd {
namespace {

TEST(ThreadPool, CallsEachItemOnceOnAnyNumberOfThreads) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (std::size_t count : {0U, 1U, 2U, 7U, 1000U}) {
      std::vector<std::atomic<int>> calls(count);
      pool.for_each(count, [&](std::size_t i) { ++calls[i]; });
      for (const auto& c : calls) EXPECT_EQ(c.load(), 1);
    }
  }
}

TEST(ThreadPool, NumbersThreadsBelowItsCount) {
  ThreadPool pool(4);
  std::atomic<bool> wrong{false};
  pool.for_each_with_thread(500, [&](std::size_t, int thread) {
    if (thread < 0 || thread >= pool.thread_count()) wrong = true;
  });
  EXPECT_FALSE(wrong);
}

TEST(ThreadPool, MakesResultsVisibleToTheCaller) {
  ThreadPool pool(4);
  std::vector<int> values(256, 0);
  for (int round = 1; round <= 200; ++round) {
    pool.for_each(values.size(), [&](std::size_t i) { values[i] += 1; });
    for (int v : values) ASSERT_EQ(v, round);
  }
}

TEST(ThreadPool, TellsTheCallerThatMemoryRanOutWhenAllHaveEnded) {
  ThreadPool pool(3);
  for (ThreadPool* const with : {&pool, static_cast<ThreadPool*>(nullptr)}) {
    std::atomic<int> calls{0};
    const auto body = [&](std::size_t i) {
      ++calls;
      if (i == 5) throw std::bad_alloc();
    };
    EXPECT_THROW(ThreadPool::for_each_allocating(with, 40, body), std::bad_alloc);
    EXPECT_EQ(calls, 40);
    ThreadPool::for_each_allocating(with, 5, body);
    EXPECT_EQ(calls, 45);
  }
}

}  // namespace
}  // namespace patternd
