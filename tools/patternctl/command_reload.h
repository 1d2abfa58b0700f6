// patternctl reload: makes a running service read its configuration again.
#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_reload(CLI::App& program, Context& context);

}  // namespace patternd::tools
