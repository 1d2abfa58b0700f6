// What a V4L2 error means, and what can be done about it.
#pragma once

#include <string>

#include "pipeline/result.h"

namespace patternd {

// An Error about `what` (a call) on the device `path`, which failed with `error_number`:
//   "/dev/video0: VIDIOC_STREAMON: No space left on device: the USB bus has …"
[[nodiscard]] Error v4l2_error(const std::string& path, const char* what, int error_number);

// The same where the device could not be opened: which cameras there are, which group may open it.
// `links` is /dev/v4l, or a test's.
[[nodiscard]] Error v4l2_open_error(const std::string& path, int error_number,
                                    const std::string& links = "/dev/v4l");

}  // namespace patternd
