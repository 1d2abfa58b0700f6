#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <ucontext.h>
#include <vector>

#include "cuda/kernels/device.h"

namespace patternd::cuda::emulated {

Place now;
Counts counts;

namespace {

constexpr std::size_t kStackBytes = 64 * 1024;
// One in so many times a thread gives way.
constexpr std::uint32_t kGiveWayEvery = 16;

enum class State { kReady, kAtWarp, kAtBlock, kEnded };

struct Fiber {
  ucontext_t context{};
  std::unique_ptr<char[]> stack;
  State state = State::kEnded;
  Operation operation = Operation::kBarrier;  // at a warp's exchange
};

bool exchanges_wait = true;
std::vector<Fiber> fibers;
std::vector<LaneWords> exchanged[2];
std::vector<int> exchanges;  // how often each thread exchanged
std::minstd_rand random_ways;
ucontext_t scheduler;
const std::function<void()>* running = nullptr;

void run_fiber() {
  (*running)();
  fibers[static_cast<std::size_t>(now.thread)].state = State::kEnded;
  // The end of the fiber goes on where uc_link says: in the scheduler.
}

// A function of its own: getcontext may return twice, which no loop should be exposed to.
void start_fiber(Fiber& fiber) {
  if (!fiber.stack) fiber.stack.reset(new char[kStackBytes]);
  fiber.state = State::kReady;
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStackBytes;
  fiber.context.uc_link = &scheduler;
  makecontext(&fiber.context, run_fiber, 0);
}

void end_program(std::size_t thread, const char* what) {
  std::fprintf(stderr, "emulated: thread %zu %s\n", thread, what);
  std::abort();
}

// Threads first … last − 1 go on where all of them wait; at a block's barrier those that have ended
// need not, in a warp's exchange they must not be missing.
bool release(std::size_t first, std::size_t last, State waiting) {
  bool any = false;
  for (std::size_t i = first; i < last; ++i) {
    const bool excused = waiting == State::kAtBlock && fibers[i].state == State::kEnded;
    if (fibers[i].state != waiting && !excused) return false;
    any |= fibers[i].state == waiting;
  }
  for (std::size_t i = first + 1; waiting == State::kAtWarp && i < last; ++i)
    if (fibers[i].operation != fibers[first].operation)
      end_program(i, "is at another exchange than its warp");
  for (std::size_t i = first; any && i < last; ++i)
    if (fibers[i].state == waiting) fibers[i].state = State::kReady;
  return any;
}

bool release_waiting(std::size_t threads) {
  bool any = release(0, threads, State::kAtBlock);
  for (std::size_t first = 0; first < threads; first += kWarpSize)
    any |= release(first, std::min(first + kWarpSize, threads), State::kAtWarp);
  return any;
}

void run_block(int threads, std::mt19937& random) {
  const auto count = static_cast<std::size_t>(threads);
  for (std::size_t i = 0; i < count; ++i) start_fiber(fibers[i]);
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  bool ran = true;
  while (ran || release_waiting(count)) {
    ran = false;
    std::shuffle(order.begin(), order.end(), random);
    for (const int thread : order) {
      Fiber& fiber = fibers[static_cast<std::size_t>(thread)];
      if (fiber.state != State::kReady) continue;
      now.thread = thread;
      swapcontext(&scheduler, &fiber.context);
      ran = true;
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (fibers[i].state != State::kEnded) end_program(i, "waits for threads that wait elsewhere");
  }
}

void wait_as(State state) {
  const int thread = now.thread;
  Fiber& fiber = fibers[static_cast<std::size_t>(thread)];
  fiber.state = state;
  swapcontext(&fiber.context, &scheduler);
}

}  // namespace

alignas(16) unsigned char dynamic_shared_bytes[kDynamicSharedBytes];

void launch(Extent blocks, Extent threads, std::uint32_t seed,
            const std::function<void()>& kernel) {
  const int of_a_block = threads.x * threads.y;
  const auto count = static_cast<std::size_t>(of_a_block);
  if (fibers.size() < count) fibers.resize(count);
  exchanged[0].assign(count, {});
  exchanged[1].assign(count, {});
  exchanges.assign(count, 0);
  std::mt19937 random(seed);
  random_ways.seed(seed + 1);
  running = &kernel;
  std::vector<int> order(static_cast<std::size_t>(blocks.x) * static_cast<std::size_t>(blocks.y));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  for (const int block : order) {
    now = {0, {block % blocks.x, block / blocks.x}, threads, blocks};
    const Counts before = counts;
    run_block(of_a_block, random);
    const bool worked = counts.lookups + counts.fused + counts.exchanges !=
                        before.lookups + before.fused + before.exchanges;
    counts.working_blocks += worked ? 1U : 0U;
  }
}

void barrier() {
  ++counts.barriers;
  wait_as(State::kAtBlock);
}

void give_way() {
  if (random_ways() % kGiveWayEvery == 0) wait_as(State::kReady);
}

void let_exchanges_wait(bool wait) { exchanges_wait = wait; }

const LaneWords* exchange(Operation operation, const LaneWords& words) {
  // Two places in turn: one wait an exchange suffices.
  const auto thread = static_cast<std::size_t>(now.thread);
  fibers[thread].operation = operation;
  ++counts.exchanges;
  auto& place = exchanged[exchanges[thread]++ % 2];
  place[thread] = words;
  if (exchanges_wait) wait_as(State::kAtWarp);
  return place.data() + thread / kWarpSize * kWarpSize;
}

std::uint64_t exchange(Operation operation, std::uint64_t value, int lane) {
  LaneWords words{};
  std::memcpy(words.data(), &value, sizeof value);
  std::memcpy(&value, exchange(operation, words)[lane].data(), sizeof value);
  return value;
}

}  // namespace patternd::cuda::emulated
