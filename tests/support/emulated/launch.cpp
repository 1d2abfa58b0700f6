#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <ucontext.h>
#include <vector>

#include "cuda/kernels/device.h"

namespace patternd::cuda::emulated {

Place now;

namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  bool ended = false;
};

std::vector<Fiber> fibers;
std::vector<std::uint64_t> exchanged[2];
std::vector<int> exchanges;  // how often each thread exchanged
ucontext_t scheduler;
const std::function<void()>* running = nullptr;

void run_fiber() {
  (*running)();
  fibers[static_cast<std::size_t>(now.thread_x)].ended = true;
  // The end of the fiber goes on where uc_link says: in the scheduler.
}

// A function of its own: getcontext may return twice, which no loop should be exposed to.
void start_fiber(Fiber& fiber) {
  if (!fiber.stack) fiber.stack.reset(new char[kStackBytes]);
  fiber.ended = false;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = &scheduler;
  makecontext(&fiber.context, run_fiber, 0);
}

void start_fibers(int threads) {
  for (int i = 0; i < threads; ++i) start_fiber(fibers[static_cast<std::size_t>(i)]);
}

// All threads to the next barrier or their end, again and again until all have ended.
void run_block(int threads, std::mt19937& random) {
  start_fibers(threads);
  std::vector<int> order(static_cast<std::size_t>(threads));
  std::iota(order.begin(), order.end(), 0);
  for (bool alive = true; alive;) {
    alive = false;
    std::shuffle(order.begin(), order.end(), random);
    for (const int thread : order) {
      Fiber& fiber = fibers[static_cast<std::size_t>(thread)];
      if (fiber.ended) continue;
      now.thread_x = thread;
      swapcontext(&scheduler, &fiber.context);
      alive |= !fiber.ended;
    }
  }
}

}  // namespace

void launch(int blocks_x, int blocks_y, int threads, std::uint32_t seed,
            const std::function<void()>& kernel) {
  const auto count = static_cast<std::size_t>(threads);
  if (fibers.size() < count) fibers.resize(count);
  exchanged[0].assign(count, 0);
  exchanged[1].assign(count, 0);
  exchanges.assign(count, 0);
  std::mt19937 random(seed);
  running = &kernel;
  std::vector<int> blocks(static_cast<std::size_t>(blocks_x * blocks_y));
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (const int block : blocks) {
    now = {0, block % blocks_x, block / blocks_x, threads, blocks_x};
    run_block(threads, random);
  }
}

void barrier() {
  const int thread = now.thread_x;
  swapcontext(&fibers[static_cast<std::size_t>(thread)].context, &scheduler);
}

std::uint64_t exchange(std::uint64_t value, int lane) {
  // Two places in turn: one barrier an exchange suffices.
  const auto thread = static_cast<std::size_t>(now.thread_x);
  auto& place = exchanged[exchanges[thread]++ % 2];
  place[thread] = value;
  barrier();
  return place[thread / kWarpSize * kWarpSize + static_cast<std::size_t>(lane)];
}

}  // namespace patternd::cuda::emulated
