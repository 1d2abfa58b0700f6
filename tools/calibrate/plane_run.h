// The plane of a calibration: from a board that lies on it, or from point pairs.
#pragma once

#include "tools/calibrate/calibration_run.h"

namespace patternd::calibrate {

// Fills the plane of the outcome's model, whose lens is there, and the plane's report, findings and
// drawing. Nothing where the request names no plane.
[[nodiscard]] Result<void> find_plane(const Request& request, Outcome& outcome);

}  // namespace patternd::calibrate
