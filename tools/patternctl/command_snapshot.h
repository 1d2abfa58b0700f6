// patternctl snapshot: comes with a later version, and says so.
#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_snapshot(CLI::App& program, Context& context);

}  // namespace patternd::tools
