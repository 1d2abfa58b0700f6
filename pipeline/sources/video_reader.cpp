// Video files, through GStreamer.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "pipeline/sources/avi_end.h"
#include "pipeline/sources/frame_reader.h"
#include "pipeline/sources/gstreamer_frames.h"
#include "pipeline/sources/gstreamer_stream_end.h"

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

// Containers round.
constexpr std::int64_t kLongestLackNs = 1'000'000'000;

std::string seconds_text(std::int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", static_cast<double>(ns) * 1e-9);
  return text.data();
}

// What GStreamer says of a file, with what would be right.
tl::unexpected<Error> cannot_decode(const Error& error) {
  if (error.code != ErrorCode::kDevice) return tl::make_unexpected(error);
  std::string said = error.message;  // sentences
  if (!said.empty() && said.back() == '.') said.pop_back();
  return fail(error.code, said +
                              "; must be a video that this machine's GStreamer decodes "
                              "(gst-discoverer-1.0 tells), or a folder of pictures");
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
  if (auto started = (*frames)->start(); !started) return cannot_decode(started.error());
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
      if (frame.error().code == ErrorCode::kEndOfStream) return end();
      return tl::make_unexpected(frame.error());
    }
    note_time(*frame->sample);
    const auto mapped = frames_->map(*frame->sample);
    if (!mapped) return tl::make_unexpected(mapped.error());
    frames_->copy(*mapped, pixels);
    return true;
  }

  // Opens the file anew: seeking back is not exact in every container.
  Result<void> rewind() override {
    auto again = open_pipeline(path_);
    if (!again) return tl::make_unexpected(again.error());
    frames_ = std::move(*again);
    end_ns_ = 0;
    return {};
  }

 private:
  void note_time(GstSample& sample) {
    GstBuffer* const buffer = gst_sample_get_buffer(&sample);
    end_ns_ = stream_end_ns(buffer, gst_sample_get_segment(&sample));
    if (buffer != nullptr && !GST_BUFFER_DURATION_IS_VALID(buffer) && format_.fps > 0)
      end_ns_ += static_cast<std::int64_t>(1e9 / format_.fps);
  }

  // GStreamer takes a file that was cut short for one that has ended; the file's own word on its
  // size or length tells them apart.
  [[nodiscard]] Result<bool> end() const {
    const auto avi = find_avi_end(path_);
    if (!avi) return tl::make_unexpected(avi.error());
    if (avi->kind == AviEnd::Kind::kCut) {
      return cut(", but its file lacks " + std::to_string(avi->missing_bytes) +
                 " bytes of frames; it was cut short");
    }
    if (avi->kind == AviEnd::Kind::kUnfinished) {
      return cut(
          ", and its file says nowhere how much it should hold; "
          "its recorder was stopped before it was done");
    }
    // Sound may last longer than the pictures, and comes to its own end in a file that is whole.
    const auto expected_ns = frames_->duration_ns();
    const std::int64_t reached_ns = std::max(end_ns_, frames_->reached_ns());
    if (end_ns_ == 0 || !expected_ns || reached_ns + kLongestLackNs >= *expected_ns) return false;
    return cut(", but its file says that it lasts " + seconds_text(*expected_ns) +
               "; it was cut short");
  }

  [[nodiscard]] tl::unexpected<Error> cut(const std::string& how) const {
    return fail(ErrorCode::kIo, path_ + ": the video ends after " + seconds_text(end_ns_) + how +
                                    ": what it holds has been played; copy it again, or remux it "
                                    "where this is all that is left");
  }

  std::string path_;
  std::unique_ptr<GstreamerFrames> frames_;
  SourceFormat format_;
  std::int64_t end_ns_ = 0;  // of the last frame, in the stream's time
};

}  // namespace

Result<std::unique_ptr<FrameReader>> open_video(const std::string& path) {
  auto frames = open_pipeline(path);
  if (!frames) return tl::make_unexpected(frames.error());
  return std::make_unique<VideoReader>(path, std::move(*frames));
}

}  // namespace patternd
