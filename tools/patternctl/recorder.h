// Records a source's frames, for `patternctl record`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/result.h"
#include "pipeline/source.h"
#include "pipeline/sources/recording.h"

namespace patternd::tools {

struct RecordOptions {
  std::string folder;
  RecordingFormat format = RecordingFormat::kPgm;
  std::uint64_t frames = 0;  // 0: no limit
  double seconds = 0;        // the same, by the frames' stamps
};

struct RecordSummary {
  std::string source;         // its description
  std::uint64_t frames = 0;   // written
  std::uint64_t dropped = 0;  // lost in between, by the camera or because writing was too slow
  double seconds = 0;         // from the first frame to the last
};

// Starts `source`, writes its frames as luma until a limit is reached, the recording ends, or
// `stopping` is set, and stops it. A frame's seq counts those lost before it too, so that gaps show
// what is missing. `progress` is called after each frame. Errors: the source's (10 s without a
// frame are one) and the writer's; what has been written by then is a sound recording.
[[nodiscard]] Result<RecordSummary> record_frames(
    Source& source, const RecordOptions& options, const std::atomic<bool>& stopping,
    const std::function<void(const RecordSummary&)>& progress);

}  // namespace patternd::tools
