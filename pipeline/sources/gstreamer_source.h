// Frames from a GStreamer pipeline: RTSP, nvarguscamerasrc, libcamerasrc and whatever else there
// is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/sources/frame_clock.h"
#include "pipeline/sources/gstreamer_frames.h"
#include "pipeline/sources/gstreamer_memory.h"

namespace patternd {

// Runs `pipeline` (gst-launch's syntax, without a sink) into an appsink of ours that keeps the
// newest two frames; what it pushes out is counted. Our memory is offered to the pipeline's last
// element; where it writes into it a frame is handed out as it lies, else it is copied once into
// our buffers; of NV12 and I420 only the luma plane, which is then GREY. The stamp is the
// pipeline's, by the system's monotonic clock. A pipeline is never paused. `width`, `height` and
// `format` restrict what the appsink takes. A pipeline that is not live (a file) runs at its own
// pace.
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
  CapturePath capture_path() const override { return path_; }
  std::string description() const override;
  SourceCounters counters() const override;

 private:
  [[nodiscard]] Result<std::unique_ptr<GstreamerFrames>> make_pipeline() const;
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> run_pipeline();
  void find_memory(FrameAllocator& allocator, std::size_t buffer_count);
  [[nodiscard]] Result<void> check_rate() const;
  [[nodiscard]] Result<GstreamerFrame> take(int timeout_ms, bool newest_only);
  [[nodiscard]] Result<FrameBuffer*> hand_out(GstreamerFrame& frame);
  // A frame that is lent, and what it keeps: GStreamer's buffer where it lies in that, or ours
  // where it was copied.
  struct Lent {
    FrameBuffer buffer;
    bool taken = false;
    GstSamplePtr sample;
    std::shared_ptr<GstreamerMemory> from;
    FrameBuffer* copy = nullptr;
  };
  [[nodiscard]] Lent* free_lent();
  [[nodiscard]] bool fill(Lent& lent, GstSample& sample, bool may_lend,
                          const GstreamerPixels& pixels);
  void describe(FrameBuffer& buffer, GstreamerFrame& frame);

  CameraConfig config_;
  SourceFormat format_;
  CapturePath path_ = CapturePath::kOneCopy;
  std::shared_ptr<GstreamerMemory> memory_;  // of the last start
  StampChecker stamps_;
  std::uint64_t next_seq_ = 0;
  std::uint64_t dropped_ = 0;  // since the last frame handed out
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> overtaken_{0};
  std::atomic<std::uint64_t> restamped_{0};
  std::atomic<std::uint64_t> copied_{0};

  std::mutex mutex_;                         // guards all below
  std::shared_ptr<GstreamerFrames> frames_;  // changed by the source's thread only
  bool interrupted_ = false;                 // before there was a pipeline to interrupt
  std::vector<std::unique_ptr<Lent>> lent_;
};

}  // namespace patternd
