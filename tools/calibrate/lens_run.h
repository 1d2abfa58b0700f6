// The lens of a calibration: fitted to views of the board, or taken from a file.
#pragma once

#include "tools/calibrate/calibration_run.h"

namespace patternd::calibrate {

// Fills the outcome's model but for its plane, its fit, and the reports and drawings of pictures.
[[nodiscard]] Result<void> find_lens(const Request& request, Outcome& outcome);

}  // namespace patternd::calibrate
