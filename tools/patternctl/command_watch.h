// patternctl watch: the results of a running service, as they come.
#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_watch(CLI::App& program, Context& context);

}  // namespace patternd::tools
