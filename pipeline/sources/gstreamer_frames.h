// A GStreamer pipeline that ends in our appsink, and its frames: what the GStreamer source and the
// reader of video files share.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "pipeline/result.h"
#include "pipeline/source.h"
#include "pipeline/sources/gstreamer_memory.h"
#include "pipeline/sources/gstreamer_stream_end.h"
#include "pipeline/sources/gstreamer_support.h"

namespace patternd {

struct GstreamerOptions {
  std::string name;    // stands in messages
  std::string format;  // one of GStreamer's formats that the appsink insists on, or empty
  int width = 0;       // the same for the size; 0: any
  int height = 0;
  bool live = false;         // the newest two frames are kept; false: every frame, and the pipeline
                             // waits for us
  int deadline_ms = 10'000;  // for each change of state, and for the first frame
  std::shared_ptr<GstreamerMemory> memory;  // offered to the last element; null: its own
};

struct GstreamerFrame {
  GstSamplePtr sample;
  std::int64_t arrived_mono_ns = 0;
  std::uint64_t dropped = 0;  // frames dropped before this one since the one taken before
};

// A frame's first plane, mapped while this lives.
class GstreamerPixels {
 public:
  explicit GstreamerPixels(const GstVideoFrame& mapped) : frame_(mapped) {}
  ~GstreamerPixels();
  GstreamerPixels(GstreamerPixels&& other) noexcept;
  GstreamerPixels& operator=(GstreamerPixels&&) = delete;
  GstreamerPixels(const GstreamerPixels&) = delete;
  GstreamerPixels& operator=(const GstreamerPixels&) = delete;

  [[nodiscard]] std::uint8_t* data() const;
  // By the frame's meta data, not what the format implies.
  [[nodiscard]] std::ptrdiff_t stride_bytes() const;

 private:
  GstVideoFrame frame_;  // without a buffer where it was moved from
};

// Runs the pipeline. A pipeline with a live source is not synchronised to the clock (frames come as
// they are captured), others are when `live` is asked for. Errors and the end of the stream come
// from the bus. Used by one thread, except `interrupt`; GStreamer's threads push frames.
class GstreamerFrames {
 public:
  // Parses `description`: gst-launch's syntax, without a sink. kInvalidArgument where that fails.
  [[nodiscard]] static Result<std::unique_ptr<GstreamerFrames>> create(
      const std::string& description, const GstreamerOptions& options);
  // Stops the pipeline. Where that does not succeed within the deadline, GStreamer's thread goes on
  // trying and frees the pipeline when it gets there.
  ~GstreamerFrames();
  GstreamerFrames(const GstreamerFrames&) = delete;
  GstreamerFrames& operator=(const GstreamerFrames&) = delete;

  // Runs the pipeline and waits for the first frame, which stays to be taken. Errors: kDevice (the
  // bus reported an error), kTimeout, kEndOfStream (no frame at all), kUnsupported (a frame in a
  // format that is none of ours).
  [[nodiscard]] Result<void> start();
  [[nodiscard]] const SourceFormat& format() const { return format_; }
  // GStreamer's name of the format, which `format()` may stand for by its luma plane.
  [[nodiscard]] const std::string& negotiated() const { return negotiated_; }
  // The next frame: the oldest that waits. Errors: kTimeout, kEndOfStream, kDevice.
  [[nodiscard]] Result<GstreamerFrame> next(int timeout_ms);
  // Whether a frame waits.
  [[nodiscard]] bool has_next();
  // A frame's pixels (of the luma plane, where it has one). kDevice: the frame is not of the format
  // agreed upon, or cannot be mapped.
  [[nodiscard]] Result<GstreamerPixels> map(GstSample& sample) const;
  // Whether they lie in `GstreamerOptions::memory`, in rows `format().stride_bytes` apart.
  [[nodiscard]] bool lie_in_our_memory(const GstreamerPixels& pixels) const;
  // Whether the first frame's did.
  [[nodiscard]] bool writes_into_our_memory() const { return in_our_memory_; }
  // Copies them to rows `format().stride_bytes` apart.
  void copy(const GstreamerPixels& from, std::uint8_t* to) const;
  // How long the stream lasts by its container, or nothing where that does not say.
  [[nodiscard]] std::optional<std::int64_t> duration_ns() const;
  // How far the container's streams have come by now, those included that are not decoded.
  [[nodiscard]] std::int64_t reached_ns() const { return stream_end_.latest_ns(); }
  // CLOCK_MONOTONIC of the frame's capture by its time stamp, or nothing where it has none.
  [[nodiscard]] std::optional<std::int64_t> capture_ns(GstSample& sample) const;
  // From any thread: start() or next(), now waiting or called next, gives kTimeout at once.
  void interrupt();
  // The pipeline's source is live.
  [[nodiscard]] bool is_live() const { return live_source_; }

 private:
  // What GStreamer's threads see: outlives this object where the pipeline does.
  struct Shared;
  GstreamerFrames(GstElementPtr pipeline, GstreamerOptions options);
  [[nodiscard]] Result<void> wire();
  [[nodiscard]] Result<void> change_state(GstState state);
  [[nodiscard]] Result<void> agree_on_format();
  void agree_on_stride(GstSample& first);
  void find_out_whether_live();

  GstreamerOptions options_;
  GstElementPtr pipeline_;
  std::shared_ptr<Shared> shared_;
  GstreamerStreamEnd stream_end_;
  SourceFormat format_;
  std::string negotiated_;
  bool live_source_ = false;
  bool in_our_memory_ = false;
};

}  // namespace patternd
