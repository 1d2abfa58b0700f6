// patternctl record: writes a recording of a camera.
#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

void add_record(CLI::App& program, Context& context);

}  // namespace patternd::tools
