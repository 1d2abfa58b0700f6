#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

// patternctl synth board: pictures of a board through a made camera.
void add_synth_board(CLI::App& synth, Context& context);

}  // namespace patternd::tools
