// What a calibration came to, for people and as JSON.
#pragma once

#include <string>

#include "tools/calibrate/calibration_run.h"

namespace patternd::calibrate {

[[nodiscard]] std::string report_text(const Outcome& outcome, const std::string& file);
// One compact object, {"type":"calibration", …}.
[[nodiscard]] std::string report_json(const Outcome& outcome, const std::string& file);

}  // namespace patternd::calibrate
