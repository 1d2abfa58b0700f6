#include "tools/bench/bench.h"

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <thread>

#include "tools/version.h"

namespace patternd::bench {
namespace {

std::int64_t now_ns(Clock clock) {
  if (clock == Clock::kWall) return monotonic_ns();
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

double timed_us(const std::function<void()>& run, Clock clock) {
  const std::int64_t start_ns = now_ns(clock);
  run();
  return static_cast<double>(now_ns(clock) - start_ns) * 1e-3;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) == 0 || line.rfind("Model", 0) == 0) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

std::string compiler_name() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

}  // namespace

std::vector<Timing> compare(const std::vector<Contestant>& contestants, int repetitions,
                            Clock clock) {
  std::vector<std::vector<double>> times(contestants.size());
  for (int round = -1; round < repetitions; ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const double time_us = timed_us(contestants[i].run, clock);
      if (round >= 0) times[i].push_back(time_us);
    }
  }
  std::vector<Timing> result;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    std::sort(times[i].begin(), times[i].end());
    if (times[i].empty()) continue;
    result.push_back({contestants[i].name, times[i][times[i].size() / 2], times[i].front()});
  }
  return result;
}

std::string machine_line() {
  return processor_name() + ", " + std::to_string(std::thread::hardware_concurrency()) +
         " cores, " + compiler_name() + ", commit " + version_commit();
}

}  // namespace patternd::bench
