// Lets a log line through at most once an interval and counts those held back.
#pragma once

#include <cstdint>

namespace patternd {

// Used by one thread.
//   if (limit.allow(now)) spdlog::warn("… held_back={}", limit.take_held_back());
class RateLimit {
 public:
  explicit RateLimit(std::int64_t interval_ns) : interval_ns_(interval_ns) {}
  [[nodiscard]] bool allow(std::int64_t now_ns) {
    if (ever_ && now_ns - last_ns_ < interval_ns_) {
      ++held_back_;
      return false;
    }
    ever_ = true;
    last_ns_ = now_ns;
    return true;
  }
  [[nodiscard]] std::uint64_t take_held_back() {
    const std::uint64_t count = held_back_;
    held_back_ = 0;
    return count;
  }

 private:
  std::int64_t interval_ns_;
  std::int64_t last_ns_ = 0;
  std::uint64_t held_back_ = 0;
  bool ever_ = false;
};

}  // namespace patternd
