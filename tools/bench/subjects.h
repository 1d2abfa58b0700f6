// The table of all subjects. To add one: declare it here, add it to the table, and name its file in
// tools/bench/CMakeLists.txt.
#pragma once

#include <array>

#include "tools/bench/bench.h"

namespace patternd::bench {

void add_rectify(CLI::App& program, Options& options);

inline constexpr std::array<AddBench, 1> kSubjects = {add_rectify};

}  // namespace patternd::bench
