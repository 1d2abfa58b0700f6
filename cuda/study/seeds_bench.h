// What the studies of the seed documents share: the device with both sets of kernels, and clocks.
//
// A study is a straight line of fifty calls that can fail, and a failure ends it: so here, and only
// here, they throw StudyFailure, which run_seed_study (seeds.h) turns into an Error.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device.h"
#include "cuda/stream.h"
#include "cuda/study/study_image.h"
#include "pipeline/stage.h"

namespace patternd::cuda {

struct StudyFailure {
  Error error;
};
template <class T>
[[nodiscard]] T value_of(Result<T> result) {
  if (!result) throw StudyFailure{result.error()};
  return std::move(*result);
}
inline void require(const Result<void>& result) {
  if (!result) throw StudyFailure{result.error()};
}
// A variant's result is not the CPU's: the study ends before its time is shown.
[[noreturn]] inline void refuse(const std::string& what) {
  throw StudyFailure{Error{ErrorCode::kInternal, what}};
}

struct SeedOptions {
  int size = 1024;       // side of the pictures
  int repetitions = 51;  // of each timing; fewer where one takes long
  std::string image = "auto";
  SettingNames names;  // for messages
};

class SeedBench {
 public:
  // Errors: those of Driver, Device and StudyImage. `driver` is another file in tests only.
  [[nodiscard]] static Result<SeedBench> open(const SeedOptions& options,
                                              const std::string& driver = "libcuda.so.1");

  [[nodiscard]] const SeedOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<const Device>& device() const { return device_; }
  [[nodiscard]] const Stream& stream() const { return stream_; }
  // The processors p of the metrics: single-precision units of the whole GPU.
  [[nodiscard]] int processors() const;
  // "NVIDIA H200 (9.0, image sm_90), study image sm_90, 132 multiprocessors of 128 units".
  [[nodiscard]] std::string description() const;
  // One of the study's kernels.
  [[nodiscard]] Kernel kernel(const char* name) const { return value_of(study_.kernel(name)); }

  // Median time by the device's events of what `enqueue` enqueues; `prepare` enqueues before, not
  // timed.
  template <class Prepare, class Enqueue>
  [[nodiscard]] double event_us(const Prepare& prepare, const Enqueue& enqueue) const {
    const Event start = value_of(Event::create(device_));
    const Event end = value_of(Event::create(device_));
    return median_us([&] {
      require(prepare());
      require(stream_.record(start));
      require(enqueue());
      require(stream_.record(end));
      require(stream_.wait());
      return static_cast<double>(value_of(end.ns_since(start))) * 1e-3;
    });
  }
  template <class Enqueue>
  [[nodiscard]] double event_us(const Enqueue& enqueue) const {
    return event_us([] { return Result<void>{}; }, enqueue);
  }

  // Median time by the host's clock of `run`, which waits for what it began; `prepare` runs before,
  // not timed.
  template <class Prepare, class Run>
  [[nodiscard]] double host_us(const Prepare& prepare, const Run& run) const {
    return median_us([&] {
      prepare();
      const std::int64_t start_ns = monotonic_ns();
      run();
      return static_cast<double>(monotonic_ns() - start_ns) * 1e-3;
    });
  }
  template <class Run>
  [[nodiscard]] double host_us(const Run& run) const {
    return host_us([] {}, run);
  }

 private:
  // After one run to warm up; long ones are repeated less often, three times at least.
  template <class Measure>
  [[nodiscard]] double median_us(const Measure& measure) const {
    constexpr double kMostTotalUs = 1e6;
    const double first_us = std::max(measure(), 1.0);
    const int runs = std::max(
        3, static_cast<int>(std::min<double>(options_.repetitions, kMostTotalUs / first_us)));
    std::vector<double> times_us;
    for (int i = 0; i < runs; ++i) times_us.push_back(measure());
    std::sort(times_us.begin(), times_us.end());
    return times_us[times_us.size() / 2];
  }

  SeedOptions options_;
  std::shared_ptr<const Device> device_;
  StudyImage study_;
  Stream stream_;
};

}  // namespace patternd::cuda
