// What can be known of a configuration before a camera is opened and an address bound: the same for
// --check, a start and a reload.
#pragma once

#include "daemon/service.h"

namespace patternd {

// Whether the configuration can work with a live camera that is not there yet, and what computes
// then. Where the calibration or `camera` say how large its frames will be, a processor is made for
// them; otherwise what no size of frames could make good is refused.
[[nodiscard]] Result<BackendNote> check_unseen_camera(const Configuration& configuration,
                                                      const ProcessorFactory& make_processor);

// All that a start does, with its messages, short of opening a live camera and listening: a
// recording is opened, and the processor made for its frames. Leaves nothing behind but what would
// compute.
[[nodiscard]] Result<BackendNote> check_start(const Configuration& configuration,
                                              const ServiceParts& parts);

}  // namespace patternd
