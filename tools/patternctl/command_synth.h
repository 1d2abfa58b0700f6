#pragma once

#include "tools/patternctl/command.h"

namespace patternd::tools {

// patternctl synth: made pictures and recordings with their truth. Its own commands:
void add_synth(CLI::App& program, Context& context);
// one picture,
void add_synth_scene(CLI::App& synth, Context& context);
// many, as a camera sees patterns move on a plane.
void add_synth_recording(CLI::App& synth, Context& context);

}  // namespace patternd::tools
