// Stands in for video_reader.cpp and video_writer.cpp in a build without GStreamer.
#include "pipeline/sources/frame_reader.h"
#include "pipeline/sources/video_writer.h"

namespace patternd {

struct VideoWriter::State {};

Result<std::unique_ptr<FrameReader>> open_video(const std::string& path) {
  return fail(ErrorCode::kUnsupported,
              path + ": videos need GStreamer, which this build lacks; folders of pictures replay");
}

Result<std::unique_ptr<VideoWriter>> VideoWriter::create(const std::string& path,
                                                         const ImageView&) {
  return fail(ErrorCode::kUnsupported,
              path + ": videos need GStreamer, which this build lacks; record pictures");
}

VideoWriter::VideoWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
VideoWriter::~VideoWriter() = default;
Result<void> VideoWriter::write(const ImageView&, std::int64_t) { return {}; }
Result<void> VideoWriter::finish() { return {}; }

}  // namespace patternd
