// How long stages took, as histograms of bounded relative error: percentiles of any run length in
// constant memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "pipeline/stage.h"

namespace patternd {

// What is said of one stage. Times are nanoseconds, 0 where count is 0.
struct LatencySummary {
  std::uint64_t count = 0;
  std::int64_t p50_ns = 0;
  std::int64_t p95_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;  // exact
};

// Counts in log-linear buckets: exact below 128 ns, above that 64 buckets a doubling, so that a
// bucket's middle is at most 1/128 off any value in it. Values past the last bucket (37 minutes)
// count there; the maximum stays exact.
class LatencyHistogram {
 public:
  static constexpr std::int64_t kLargestNs = (std::int64_t{1} << 41) - 1;
  static constexpr std::size_t kBucketCount = 34 * 64 + 128;

  void add(std::int64_t ns);
  void add(const LatencyHistogram& other);
  void clear();
  [[nodiscard]] std::uint64_t count() const { return count_; }
  // The value that the share `quantile` of all values does not pass (nearest rank), to 1 %:
  //   of 1 … 100 µs, quantile(0.95) is 95 µs
  [[nodiscard]] std::int64_t quantile_ns(double quantile) const;
  [[nodiscard]] LatencySummary summary() const;

 private:
  std::array<std::uint64_t, kBucketCount> buckets_{};
  std::uint64_t count_ = 0;
  std::int64_t max_ns_ = 0;
};

// Every stage's histogram since start and over the last minute (the running five seconds and the
// eleven such before them). Any thread may record and read; each call locks for some microseconds,
// a reader once a stage, so that it never holds up a frame for longer.
class LatencyStatistics {
 public:
  LatencyStatistics();
  // Adds one frame; stages that did not run (0) are left out. `now_ns`: CLOCK_MONOTONIC.
  void record(const StageTimes& times, std::int64_t now_ns);
  [[nodiscard]] LatencySummary since_start(Stage stage) const;
  [[nodiscard]] LatencySummary last_minute(Stage stage, std::int64_t now_ns) const;

 private:
  static constexpr std::int64_t kSliceNs = 5'000'000'000;
  static constexpr std::int64_t kSliceCount = 12;
  struct Slice {
    std::int64_t number = -1;  // now_ns / kSliceNs of its values
    std::array<LatencyHistogram, kStageCount> stages;
  };
  struct Histograms {
    std::array<LatencyHistogram, kStageCount> since_start;
    std::array<Slice, kSliceCount> slices;
  };
  mutable std::mutex mutex_;
  std::unique_ptr<Histograms> histograms_;
};

}  // namespace patternd
