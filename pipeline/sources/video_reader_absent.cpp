// Stands in for video_reader.cpp in a build without GStreamer.
#include "pipeline/sources/frame_reader.h"

namespace patternd {

Result<std::unique_ptr<FrameReader>> open_video(const std::string& path) {
  return fail(ErrorCode::kUnsupported,
              path + ": videos need GStreamer, which this build lacks; folders of pictures replay");
}

}  // namespace patternd
