// patternctl latency: how long each stage takes in a running service.
#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_latency(CLI::App& program, Context& context);

}  // namespace patternd::tools
