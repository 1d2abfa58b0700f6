// The table of all commands, in the order of `patternctl --help`. To add one: declare it here, add
// it to the table, and name its file in tools/CMakeLists.txt.
#pragma once

#include "tools/patternctl/command.h"
#include "tools/patternctl/command_label.h"
#include "tools/patternctl/command_latency.h"
#include "tools/patternctl/command_match.h"
#include "tools/patternctl/command_record.h"
#include "tools/patternctl/command_rectify.h"
#include "tools/patternctl/command_reload.h"
#include "tools/patternctl/command_snapshot.h"
#include "tools/patternctl/command_status.h"
#include "tools/patternctl/command_synth.h"
#include "tools/patternctl/command_teach.h"
#include "tools/patternctl/command_watch.h"

namespace patternd::tools {

// One a line, so that the list merges.
// clang-format off
inline constexpr AddCommand kCommands[] = {
    add_teach,
    add_match,
    add_rectify,
    add_label,
    add_record,
    add_watch,
    add_status,
    add_latency,
    add_reload,
    add_snapshot,
    add_synth,
};
// clang-format on

}  // namespace patternd::tools
