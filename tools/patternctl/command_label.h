#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

// patternctl label: connected components of one picture.
void add_label(CLI::App& program, Context& context);

}  // namespace patternd::tools
