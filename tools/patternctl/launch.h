// Starts a program of the project that has a package of its own (patternd-bench,
// patternd-calibrate).
#pragma once

#include <string>
#include <vector>

#include "tools/patternctl/command.h"

namespace patternd::tools {

// Replaces this process by `program` with `arguments`; looks in patternctl's own folder, then in
// ../libexec/patternd beside it, then in PATH. Returns only where it cannot be started, with a
// message that names the package which brings it.
[[nodiscard]] Error launch(const std::string& program, const std::vector<std::string>& arguments,
                           const std::string& package);

// The commands that such programs are: `patternctl bench …` hands every word behind `bench` on,
// --help included.
struct OutsideCommand {
  const char* name;
  const char* program;
  const char* package;
  const char* description;
};
inline constexpr OutsideCommand kOutsideCommands[] = {
    {"bench", "patternd-bench", "patternd-bench",
     "Measures patternd beside its peers (patternd-bench)"},
    {"calibrate", "patternd-calibrate", "patternd-calibrate",
     "Calibrates a camera and the plane that it looks at (patternd-calibrate)"},
};

}  // namespace patternd::tools
