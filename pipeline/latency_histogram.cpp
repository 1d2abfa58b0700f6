#include "pipeline/latency_histogram.h"

#include <algorithm>
#include <cmath>

namespace patternd {
namespace {

// Position of the highest set bit; `value` is positive.
int highest_bit(std::int64_t value) {
  int bit = 0;
  while ((value >>= 1) != 0) ++bit;
  return bit;
}

int shift_of(std::int64_t ns) { return ns < 128 ? 0 : highest_bit(ns) - 6; }

std::size_t bucket_of(std::int64_t ns) {
  const int shift = shift_of(ns);
  return static_cast<std::size_t>(shift) * 64 + static_cast<std::size_t>(ns >> shift);
}

// The middle of a bucket's values.
std::int64_t middle_of(std::size_t bucket) {
  if (bucket < 128) return static_cast<std::int64_t>(bucket);
  const auto shift = static_cast<int>(bucket / 64) - 1;
  const auto low = static_cast<std::int64_t>(bucket % 64 + 64) << shift;
  return low + (std::int64_t{1} << shift) / 2;
}

}  // namespace

void LatencyHistogram::add(std::int64_t ns) {
  const std::int64_t value = std::max<std::int64_t>(ns, 0);
  ++buckets_[bucket_of(std::min(value, kLargestNs))];
  ++count_;
  max_ns_ = std::max(max_ns_, value);
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  for (std::size_t i = 0; i < kBucketCount; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

void LatencyHistogram::clear() {
  if (count_ == 0) return;
  buckets_.fill(0);
  count_ = 0;
  max_ns_ = 0;
}

std::int64_t LatencyHistogram::quantile_ns(double quantile) const {
  if (count_ == 0) return 0;
  const double exact_rank = std::ceil(quantile * static_cast<double>(count_));
  const auto rank =
      static_cast<std::uint64_t>(std::clamp(exact_rank, 1.0, static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::min(middle_of(i), max_ns_);
  }
  return max_ns_;
}

LatencySummary LatencyHistogram::summary() const {
  return {count_, quantile_ns(0.5), quantile_ns(0.95), quantile_ns(0.99), max_ns_};
}

LatencyStatistics::LatencyStatistics() : histograms_(std::make_unique<Histograms>()) {}

void LatencyStatistics::record(const StageTimes& times, std::int64_t now_ns) {
  const std::int64_t number = now_ns / kSliceNs;
  const std::lock_guard<std::mutex> lock(mutex_);
  Slice& slice = histograms_->slices[static_cast<std::size_t>(number % kSliceCount)];
  if (slice.number != number) {
    for (LatencyHistogram& stage : slice.stages) stage.clear();
    slice.number = number;
  }
  for (std::size_t i = 0; i < kStageCount; ++i) {
    if (times.ns[i] <= 0) continue;
    histograms_->since_start[i].add(times.ns[i]);
    slice.stages[i].add(times.ns[i]);
  }
}

LatencySummary LatencyStatistics::since_start(Stage stage) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return histograms_->since_start[static_cast<std::size_t>(stage)].summary();
}

LatencySummary LatencyStatistics::last_minute(Stage stage, std::int64_t now_ns) const {
  const std::int64_t number = now_ns / kSliceNs;
  LatencyHistogram merged;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Slice& slice : histograms_->slices) {
      if (slice.number > number - kSliceCount && slice.number <= number)
        merged.add(slice.stages[static_cast<std::size_t>(stage)]);
    }
  }
  return merged.summary();
}

}  // namespace patternd
