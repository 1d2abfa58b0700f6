#include "pipeline/thread_pool.h"

#include <condition_variable>
#include <mutex>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

namespace patternd {

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work;
  std::condition_variable done;
  Call call = nullptr;
  void* context = nullptr;
  std::size_t next = 0;
  std::size_t count = 0;
  std::size_t unfinished = 0;
  bool ending = false;
  std::vector<std::thread> threads;

  // Takes items until none is left; called and left with the lock held.
  void take_items(std::unique_lock<std::mutex>& lock, int thread) {
    while (next < count) {
      const std::size_t index = next++;
      const Call item_call = call;
      void* const item_context = context;
      lock.unlock();
      item_call(item_context, index, thread);
      lock.lock();
      if (--unfinished == 0) done.notify_one();
    }
  }

  void work_until_end(int thread) {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      work.wait(lock, [this] { return ending || next < count; });
      if (ending) return;
      take_items(lock, thread);
    }
  }
};

namespace {

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  const int wanted = threads > 0 ? threads : usable_cpus();
  state_->threads.reserve(static_cast<std::size_t>(wanted));
  for (int i = 1; i < wanted; ++i) {
    try {
      state_->threads.emplace_back([state = state_.get(), i] { state->work_until_end(i); });
    } catch (const std::system_error&) {
      break;  // fewer threads: slower, still right
    }
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->ending = true;
  }
  state_->work.notify_all();
  for (auto& thread : state_->threads) thread.join();
}

int ThreadPool::thread_count() const { return 1 + static_cast<int>(state_->threads.size()); }

void ThreadPool::run(std::size_t count, Call call, void* context) {
  if (count == 0) return;
  if (state_->threads.empty() || count == 1) {
    for (std::size_t i = 0; i < count; ++i) call(context, i, 0);
    return;
  }
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->call = call;
  state_->context = context;
  state_->next = 0;
  state_->count = count;
  state_->unfinished = count;
  state_->work.notify_all();
  state_->take_items(lock, 0);
  state_->done.wait(lock, [this] { return state_->unfinished == 0; });
  state_->next = state_->count = 0;
}

}  // namespace patternd
