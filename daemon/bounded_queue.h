// A queue of fixed capacity between two threads; allocates nothing after its construction.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace patternd {

// Values come out in the order in which they went in. Any thread may call anything.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : ring_(capacity) {}

  // False where the queue is full or closed.
  bool try_push(T value) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (closed_ || size_ == ring_.size()) return false;
      put(std::move(value));
    }
    changed_.notify_all();
    return true;
  }
  // Puts `value` in; where the queue is full the oldest comes out to make room.
  std::optional<T> push_newest(T value) {
    std::optional<T> oldest;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (size_ == ring_.size()) oldest = take();
      put(std::move(value));
    }
    changed_.notify_all();
    return oldest;
  }
  // Waits for room. False when the queue was closed or `timeout` passed.
  bool push(T value, std::chrono::milliseconds timeout) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, timeout, [this] { return closed_ || size_ < ring_.size(); });
      if (closed_ || size_ == ring_.size()) return false;
      put(std::move(value));
    }
    changed_.notify_all();
    return true;
  }
  // Waits for a value; nothing when `timeout` passed or the queue is closed and empty.
  std::optional<T> pop(std::chrono::nanoseconds timeout) {
    std::optional<T> value;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, timeout, [this] { return closed_ || size_ > 0; });
      if (size_ > 0) value = take();
    }
    if (value) changed_.notify_all();
    return value;
  }
  // Does not wait: waiting for no time would be a system call.
  std::optional<T> try_pop() {
    std::optional<T> value;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (size_ > 0) value = take();
    }
    if (value) changed_.notify_all();
    return value;
  }

  // Nothing goes in any more; what is inside still comes out.
  void close() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  void reopen() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = false;
  }
  [[nodiscard]] bool closed() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return size_;
  }

 private:
  void put(T value) {
    ring_[(first_ + size_) % ring_.size()] = std::move(value);
    ++size_;
  }
  T take() {
    T value = std::move(ring_[first_]);
    first_ = (first_ + 1) % ring_.size();
    --size_;
    return value;
  }

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> ring_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
  bool closed_ = false;
};

}  // namespace patternd
