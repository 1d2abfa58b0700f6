// A bounded set of threads for one frame's loops. Allocates nothing after construction and
// synchronises through one mutex that is held for a few instructions, so that the frame's path
// stays allocation-free and TSan sees every edge. (oneTBB was looked at: it allocates tasks, and
// Debian's build is opaque to TSan.)
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace patternd {

class ThreadPool {
 public:
  // `threads` in all, the caller's included; 0: as many as the process may use. Never fails: where
  // a thread cannot be started, fewer run.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int thread_count() const;

  // Calls body(i) for i in [0, count), each once, and returns when all have returned. Items are
  // handed out one by one in rising order; the caller works too. `body` must not throw and must not
  // call for_each of the same pool.
  //   pool.for_each(rows, [&](std::size_t y) { … });
  template <class Body>
  void for_each(std::size_t count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        count,
        [](void* context, std::size_t index, int) { (*static_cast<Plain*>(context))(index); },
        &body);
  }
  // The same with the number of the thread, 0..thread_count()-1, for scratch memory.
  template <class Body>
  void for_each_with_thread(std::size_t count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        count,
        [](void* context, std::size_t index, int thread) {
          (*static_cast<Plain*>(context))(index, thread);
        },
        &body);
  }
  // The same for a body that allocates, when something is made: where memory runs out in one, the
  // others end, and then std::bad_alloc is thrown here. `pool` may be null.
  template <class Body>
  static void for_each_allocating(ThreadPool* pool, std::size_t count, const Body& body) {
    std::atomic<bool> exhausted{false};
    auto guarded = [&](std::size_t index) {
      try {
        body(index);
      } catch (const std::bad_alloc&) {
        exhausted = true;
      }
    };
    if (pool != nullptr)
      pool->for_each(count, guarded);
    else
      for (std::size_t i = 0; i < count; ++i) guarded(i);
    if (exhausted) throw std::bad_alloc();
  }

 private:
  using Call = void (*)(void* context, std::size_t index, int thread);
  void run(std::size_t count, Call call, void* context);
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace patternd
