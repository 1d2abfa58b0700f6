// Video files, through GStreamer.
#include <filesystem>
#include <utility>

#include "pipeline/sources/frame_reader.h"
#include "pipeline/sources/gstreamer_frames.h"

namespace patternd {
namespace {

// The path in quotes, as gst-launch's syntax wants it.
std::string quoted(const std::string& path) {
  std::string text = "\"";
  for (const char c : path) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text + "\"";
}

// Decodes on the CPU, so that a file gives the same pixels everywhere; only the picture's stream.
Result<std::unique_ptr<GstreamerFrames>> open_pipeline(const std::string& path) {
  GstreamerOptions options;
  options.name = path;
  auto frames = GstreamerFrames::create(
      "filesrc location=" + quoted(path) +
          " ! decodebin caps=video/x-raw(ANY) expose-all-streams=false force-sw-decoders=true"
          " ! videoconvert",
      options);
  if (!frames) return frames;
  if (auto started = (*frames)->start(); !started) return tl::make_unexpected(started.error());
  return frames;
}

class VideoReader : public FrameReader {
 public:
  VideoReader(std::string path, std::unique_ptr<GstreamerFrames> frames)
      : path_(std::move(path)), frames_(std::move(frames)), format_(frames_->format()) {}

  const SourceFormat& format() const override { return format_; }

  Result<bool> read(std::uint8_t* pixels) override {
    constexpr int kDeadlineMs = 30'000;
    auto frame = frames_->next(kDeadlineMs);
    if (!frame) {
      if (frame.error().code == ErrorCode::kEndOfStream) return false;
      return tl::make_unexpected(frame.error());
    }
    if (auto copied = frames_->copy(*frame->sample, pixels); !copied)
      return tl::make_unexpected(copied.error());
    return true;
  }

  // Opens the file anew: seeking back is not exact in every container.
  Result<void> rewind() override {
    auto again = open_pipeline(path_);
    if (!again) return tl::make_unexpected(again.error());
    frames_ = std::move(*again);
    return {};
  }

 private:
  std::string path_;
  std::unique_ptr<GstreamerFrames> frames_;
  SourceFormat format_;
};

}  // namespace

Result<std::unique_ptr<FrameReader>> open_video(const std::string& path) {
  auto frames = open_pipeline(path);
  if (!frames) return tl::make_unexpected(frames.error());
  return std::make_unique<VideoReader>(path, std::move(*frames));
}

}  // namespace patternd
