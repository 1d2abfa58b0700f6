// Frames from a V4L2 camera.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "pipeline/source.h"
#include "pipeline/sources/frame_clock.h"
#include "pipeline/sources/v4l2_device.h"
#include "pipeline/sources/v4l2_stream.h"

namespace patternd {

// Captures into our own buffers (USERPTR) where the driver takes them, else into the driver's with
// one copy; compressed formats are decoded by libv4lconvert. A frame's stamp is the driver's where
// it is of CLOCK_MONOTONIC and can be right, else the frame's arrival; description() says which.
// Lost frames are those that the driver's sequence leaves out, flags as damaged, or cuts short, and
// those that waited behind a newer one.
class V4l2Source : public Source {
 public:
  explicit V4l2Source(CameraConfig config, V4l2System& system = real_v4l2_system());
  ~V4l2Source() override;
  V4l2Source(const V4l2Source&) = delete;
  V4l2Source& operator=(const V4l2Source&) = delete;

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
  [[nodiscard]] Result<void> open_converter();
  [[nodiscard]] Result<void> start_stream(FrameAllocator& allocator, int buffer_count);
  enum class Waited { kNothing, kReady, kBroken };
  [[nodiscard]] Result<Waited> wait(std::int64_t deadline_ns);
  [[nodiscard]] Result<std::optional<V4l2Filled>> take_frame(bool newest_only);
  [[nodiscard]] bool is_whole(const V4l2Filled& filled) const;
  [[nodiscard]] Result<FrameBuffer*> hand_out(const V4l2Filled& filled);
  [[nodiscard]] Result<FrameBuffer*> copy_out(const V4l2Filled& filled);
  void describe(FrameBuffer& buffer, const V4l2Filled& filled);

  CameraConfig config_;
  V4l2System& system_;
  int wakeup_ = -1;  // an eventfd that interrupt() makes readable
  std::unique_ptr<V4l2Device> device_;
  std::unique_ptr<V4l2Converter> converter_;
  V4l2Format format_;
  V4l2Stream stream_;
  CapturePath path_ = CapturePath::kOneCopy;
  std::string stable_path_;
  std::string why_copied_;  // why the driver does not take our memory

  SequenceGaps sequence_;
  StampChecker stamps_;
  bool foreign_clock_ = false;  // the driver's stamps are of another clock
  std::uint64_t next_seq_ = 0;
  std::uint64_t dropped_ = 0;  // since the last frame handed out
  std::atomic<std::uint64_t> frames_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<std::uint64_t> damaged_{0};
  std::atomic<std::uint64_t> overtaken_{0};
  std::atomic<std::uint64_t> restamped_{0};
  std::atomic<std::uint64_t> copied_{0};
};

}  // namespace patternd
