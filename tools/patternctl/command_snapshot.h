// patternctl snapshot: a frame of a running service as a picture.
#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_snapshot(CLI::App& program, Context& context);

}  // namespace patternd::tools
