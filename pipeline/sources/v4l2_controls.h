// A camera's controls by their names.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "pipeline/result.h"
#include "pipeline/sources/v4l2_device.h"

namespace patternd {

// A control's name as v4l2-ctl prints it: lower case, runs of anything but letters and digits one
// underscore: "Exposure Time, Absolute" is exposure_time_absolute.
[[nodiscard]] std::string control_name(const std::string& name);

// Sets controls; switches and menus first, because others may work only in their right position.
// Values are checked against range, step and menu before anything is set. Every fault is reported,
// in one kInvalidArgument: an unknown name with the nearest and all that there are, a value out of
// range with the range, a control that cannot be set now. A driver that takes another value than
// asked for is a fault too.
[[nodiscard]] Result<void> set_controls(const V4l2Device& device,
                                        const std::map<std::string, std::int64_t>& wanted);

}  // namespace patternd
