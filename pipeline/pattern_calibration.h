// Whether a pattern is searched in pictures like the one that it was taught in.
#pragma once

#include <string>

#include "pipeline/pattern.h"

namespace patternd {

// What whoever searches should be told; empty where nothing speaks against it. `pattern_file` is
// the file that `pattern` was loaded from, `calibration_file` the one that pictures are rectified
// with, empty: none. A copy is the same calibration; so is a file of the same name where the one
// that it was taught with is not there any more (a folder moved to another machine).
//   "pattern bolt was taught with calibration camera.yaml, but is searched without one; …"
[[nodiscard]] std::string other_calibration(const Pattern& pattern, const std::string& pattern_file,
                                            const std::string& calibration_file);

}  // namespace patternd
