// patternd-bench: every figure that a README quotes. One file a subject; peers run in the same
// process, interleaved with ours, and a figure is the median of many repetitions: on a shared
// machine ratios hold where times do not.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "pipeline/stage.h"

namespace patternd::bench {

// What all subjects share.
struct Options {
  bool json = false;    // one compact object a line instead of the table
  int repetitions = 0;  // 0: the subject's own choice
  int exit_code = 0;
};

// Adds one subject; its action runs when the command line names it.
using AddBench = void (*)(CLI::App& program, Options& options);

// One contestant of a comparison.
struct Contestant {
  std::string name;
  std::function<void()> run;
};

struct Timing {
  std::string name;
  double median_us = 0;
  double best_us = 0;
};

enum class Clock {
  kWall,
  kThreadCpu,  // the calling thread's processor time: for one-core contests on a shared machine
};

// Runs all contestants in turn, `repetitions` times (one more to warm up), so that a disturbance
// hits all of them.
[[nodiscard]] std::vector<Timing> compare(const std::vector<Contestant>& contestants,
                                          int repetitions, Clock clock = Clock::kWall);

// "AMD EPYC, 2 cores, GCC 12.2.0, commit abc1234": printed at the head of every table.
[[nodiscard]] std::string machine_line();

}  // namespace patternd::bench
