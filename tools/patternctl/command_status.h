// patternctl status: what a running service is doing.
#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_status(CLI::App& program, Context& context);

}  // namespace patternd::tools
