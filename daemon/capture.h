// The capture thread: frames from a source into a queue, and the camera's life: opened, lost,
// reopened with back-off.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "daemon/bounded_queue.h"
#include "pipeline/source.h"
#include "pipeline/sources/aligned_frames.h"

namespace patternd {

// Where a source's frames lie, and how many of them are computed at a time.
struct CaptureMemory {
  std::shared_ptr<FrameAllocator> frames = std::make_shared<AlignedFrameAllocator>();
  std::size_t most_in_flight = 1;
};

// A source with the memory of its frames; the source goes first.
struct OpenSource {
  CaptureMemory memory;
  std::unique_ptr<Source> source;
};

// A frame on its way to be computed. It keeps its source's memory alive; give it back with
// release_frame().
struct CapturedFrame {
  std::shared_ptr<OpenSource> from;
  FrameBuffer* buffer = nullptr;
  RawImageView image;
  FrameInfo info;
  // CLOCK_MONOTONIC from which `total` counts: the driver's stamp of a live camera, else the moment
  // at which the source handed the frame out.
  std::int64_t started_ns = 0;
};
void release_frame(CapturedFrame& frame);

using FrameQueue = BoundedQueue<CapturedFrame>;

// Numbers that no frame shares with another, over all sources of the service's life. Keeps a
// source's own numbers where they rise.
class SequenceCounter {
 public:
  // A source begins to count anew.
  void begin_source() { offset_known_ = false; }
  [[nodiscard]] std::uint64_t number(std::uint64_t source_seq);

 private:
  bool any_ = false;
  std::uint64_t last_ = 0;
  std::uint64_t offset_ = 0;
  bool offset_known_ = false;
};

// What happens to a camera, told on the capture thread.
struct CaptureCallbacks {
  // The source has been opened and gives this; an error closes it again (and it is tried later).
  std::function<Result<void>(const SourceFormat&)> opened;
  std::function<void(bool lost, const std::string& reason)> camera;
  // Each frame, in order, before it is queued; may be empty. It must return at once.
  std::function<void(const RawImageView&, const FrameInfo&)> frame;
  // No frame will come any more: a recording ended (no error) or cannot be read.
  std::function<void(const std::optional<Error>&)> ended;
};

struct CaptureState {
  bool lost = true;
  std::string reason = "not opened yet";
  std::string description;  // the source's line, once opened
  std::string path;         // how frames come into our memory
  std::string capture;      // the same as a sentence, with the kind of memory
  std::uint64_t frames = 0;
  std::uint64_t dropped = 0;  // frames lost before they could be computed
  std::uint64_t copied = 0;   // frames that the host had to copy into our memory
  std::uint64_t reopened = 0;
  std::int64_t last_frame_ns = 0;  // CLOCK_MONOTONIC; 0: none yet
};

class Capture {
 public:
  // `queue` takes one frame at a time from a live source (the newest replaces the one that waits),
  // and as many as it holds, with back pressure, from a recording.
  // A live source that is silent for longer than `max_silence_s`, and than ten of its frames, is
  // lost; 0: it may be silent for ever.
  Capture(std::unique_ptr<Source> source, CaptureMemory memory, FrameQueue& queue,
          SequenceCounter& sequence, CaptureCallbacks callbacks,
          double max_silence_s = CameraConfig().max_silence_s);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  // Opens the source on the caller's thread, before start(); another capture may still run.
  [[nodiscard]] Result<SourceFormat> open();
  // Begins to capture; a live source that is not open is opened by the thread, again and again.
  void start();
  // Takes over the counts of a capture of the same camera, which has been opened anew; before
  // start().
  void carry_on(const CaptureState& before);
  // Asks the thread to end. It does so at once, unless the source is being opened, which has a
  // deadline of its own.
  void request_stop();
  // Waits for that; false when `timeout_ms` has passed.
  [[nodiscard]] bool wait_stopped(int timeout_ms);
  // Ends the thread, however long it takes, and closes the source. Frames in the queue stay.
  void stop();

  [[nodiscard]] CaptureState state() const;
  [[nodiscard]] bool is_live() const { return live_; }
  [[nodiscard]] bool is_running() const { return thread_.joinable(); }
  // CLOCK_MONOTONIC of the thread's last round. Waiting for a camera is a round too.
  [[nodiscard]] std::int64_t last_round_ns() const { return last_round_ns_.load(); }

 private:
  void run();
  void capture_frames();
  [[nodiscard]] bool reopen();
  [[nodiscard]] bool handle_failure(const Error& error);
  [[nodiscard]] bool has_stalled() const;
  void deliver(FrameBuffer& buffer);
  void deliver_newest(CapturedFrame frame);
  void deliver_in_turn(CapturedFrame frame);
  void lose(const std::string& reason);
  void wait(int ms);

  const std::shared_ptr<OpenSource> open_source_;
  FrameQueue& queue_;
  SequenceCounter& sequence_;
  const CaptureCallbacks callbacks_;
  const bool live_;
  const double max_silence_s_;

  bool is_open_ = false;
  SourceFormat format_;
  int backoff_ms_ = 0;
  std::int64_t opened_ns_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  CaptureState state_;
  bool run_ended_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> last_round_ns_{0};
  std::thread thread_;
};

}  // namespace patternd
