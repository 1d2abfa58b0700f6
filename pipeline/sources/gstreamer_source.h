// Frames from a GStreamer pipeline: RTSP, nvarguscamerasrc, libcamerasrc and whatever else there
// is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "pipeline/source.h"
#include "pipeline/sources/frame_clock.h"
#include "pipeline/sources/frame_ring.h"
#include "pipeline/sources/gstreamer_frames.h"

namespace patternd {

// Runs `pipeline` (gst-launch's syntax, without a sink) into an appsink of ours that keeps the
// newest two frames; what it pushes out is counted. Each frame is copied once into our buffers; of
// NV12 and I420 only the luma plane, which is then GREY. The stamp is the pipeline's, by the
// system's monotonic clock. A pipeline is never paused. `width`, `height` and `format` restrict
// what the appsink takes. A pipeline that is not live (a file) runs at its own pace.
class GstreamerSource : public Source {
 public:
  explicit GstreamerSource(CameraConfig config) : config_(std::move(config)) {}
  ~GstreamerSource() override { GstreamerSource::stop(); }
  GstreamerSource(const GstreamerSource&) = delete;
  GstreamerSource& operator=(const GstreamerSource&) = delete;

  Result<void> check() const override;
  Result<SourceFormat> start(FrameAllocator& allocator, int buffer_count) override;
  Result<FrameBuffer*> next(int timeout_ms, bool newest_only) override;
  void release(FrameBuffer* buffer) override;
  void stop() override;
  void interrupt() override;
  bool is_live() const override { return true; }
  CapturePath capture_path() const override { return CapturePath::kOneCopy; }
  std::string description() const override;
  SourceCounters counters() const override;

 private:
  [[nodiscard]] Result<std::unique_ptr<GstreamerFrames>> make_pipeline() const;
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> check_rate() const;
  [[nodiscard]] Result<GstreamerFrame> take(int timeout_ms, bool newest_only);
  void describe(FrameBuffer& buffer, GstreamerFrame& frame);

  CameraConfig config_;
  SourceFormat format_;
  StampChecker stamps_;
  std::uint64_t next_seq_ = 0;
  std::uint64_t dropped_ = 0;  // since the last frame handed out
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> overtaken_{0};
  std::atomic<std::uint64_t> restamped_{0};

  std::mutex mutex_;                         // guards all below
  std::shared_ptr<GstreamerFrames> frames_;  // changed by the source's thread only
  bool interrupted_ = false;                 // before there was a pipeline to interrupt
  FrameRing ring_;
};

}  // namespace patternd
