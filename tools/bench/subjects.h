// The table of all subjects. To add one: declare it here, add it to the table, and name its file in
// tools/bench/CMakeLists.txt.
#pragma once

#include "tools/bench/bench.h"

namespace patternd::bench {

void add_accuracy(CLI::App& program, Options& options);
void add_components(CLI::App& program, Options& options);
void add_match(CLI::App& program, Options& options);
void add_rectify(CLI::App& program, Options& options);
void add_seeds(CLI::App& program, Options& options);

inline constexpr AddBench kSubjects[] = {
    add_accuracy, add_components, add_match, add_rectify, add_seeds,
};

}  // namespace patternd::bench
