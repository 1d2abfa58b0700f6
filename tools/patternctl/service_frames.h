// Frames of a running service into a recording or a picture, for patternctl record and snapshot.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "pipeline/result.h"
#include "tools/patternctl/recorder.h"
#include "tools/patternctl/service_option.h"

namespace patternd::tools {

// Asks the service for its frames and writes them, until a limit of `options` is reached, the
// service's recording ends, or `stopping` is set. As record_frames() else: frames keep the
// service's numbers and stamps. The service loses no frame by it; what this side is too slow for is
// counted as dropped.
[[nodiscard]] Result<RecordSummary> record_service(
    const ServiceOption& service, const RecordOptions& options, const std::atomic<bool>& stopping,
    const std::function<void(const RecordSummary&)>& progress);

// The next frame that the service's camera gives, as luma, written as a picture (PNG or PGM by the
// name's ending); the service's number for it.
[[nodiscard]] Result<std::uint64_t> snapshot_service(const ServiceOption& service,
                                                     const std::string& path);

}  // namespace patternd::tools
