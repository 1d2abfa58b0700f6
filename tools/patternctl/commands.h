// The table of all commands, in the order of `patternctl --help`. To add one: declare it here, add
// it to the table, and name its file in tools/CMakeLists.txt.
#pragma once

#include <array>

#include "tools/patternctl/command.h"

namespace patternd::tools {

inline constexpr std::array<AddCommand, 0> kCommands = {};

}  // namespace patternd::tools
