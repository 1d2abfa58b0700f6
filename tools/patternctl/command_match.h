#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_match(CLI::App& program, Context& context);

}  // namespace patternd::tools
