#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

// patternctl rectify: one picture through a calibration.
void add_rectify(CLI::App& program, Context& context);

}  // namespace patternd::tools
