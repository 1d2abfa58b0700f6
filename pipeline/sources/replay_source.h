// Plays recordings, folders of pictures and video files: every frame, in order, always the same.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/source.h"
#include "pipeline/sources/frame_reader.h"
#include "pipeline/sources/frame_ring.h"
#include "pipeline/sources/recording_index.h"

namespace patternd {

// The stamps of a replay's frames, loop after loop: those of the recording's index where there is
// one, moved on by the recording's length (last stamp − first stamp + the mean interval) at each
// loop; otherwise frame n has seq n and n / fps since 1970.
class ReplayTimeline {
 public:
  ReplayTimeline() = default;
  explicit ReplayTimeline(double fps) : period_ns_(1e9 / fps) {}
  ReplayTimeline(std::vector<FrameStamp> stamps, double fps);
  // The stamp of the replay's frame `n`, counted on over the loops; it must be reached.
  [[nodiscard]] FrameStamp stamp(std::uint64_t n) const;
  // Whether frame `n` has a stamp within an index's bounds: many loops of long recordings pass
  // them.
  [[nodiscard]] bool reaches(std::uint64_t n) const;

 private:
  std::vector<FrameStamp> stamps_;
  double period_ns_ = 0;
  std::int64_t latest_unix_ns_ = 0;
  std::uint64_t loop_ns_ = 0;
  std::uint64_t loop_seq_ = 0;
};

// `path` is a folder with index.jsonl (a recording), a folder of pictures, a picture, or a video
// file. A thread decodes ahead, by a bounded number of frames. next() gives each frame once, in
// order, whatever `newest_only` says; with `realtime` not before its time. Then kEndOfStream, or
// with `loop` the first frame again. A file that cannot be read, or is not like the first, ends the
// replay with an error that names it. `release` may be called from any thread.
class ReplaySource : public Source {
 public:
  explicit ReplaySource(CameraConfig config) : config_(std::move(config)) {}
  ~ReplaySource() override;
  ReplaySource(const ReplaySource&) = delete;
  ReplaySource& operator=(const ReplaySource&) = delete;

  Result<SourceFormat> start(FrameAllocator& allocator, int buffer_count) override;
  Result<FrameBuffer*> next(int timeout_ms, bool newest_only) override;
  void release(FrameBuffer* buffer) override;
  void stop() override;
  void interrupt() override;
  bool is_live() const override { return false; }
  CapturePath capture_path() const override { return CapturePath::kDecoded; }
  std::string description() const override;

 private:
  [[nodiscard]] Result<void> open();
  [[nodiscard]] Result<void> check_format() const;
  void decode_ahead();
  [[nodiscard]] std::optional<Error> decode_next(FrameBuffer& buffer);
  void stamp(FrameBuffer& buffer, std::uint64_t number) const;
  [[nodiscard]] std::int64_t due_ns(const FrameBuffer& buffer);

  CameraConfig config_;
  SourceFormat format_;
  std::unique_ptr<FrameReader> reader_;  // the decoding thread's, while it runs
  ReplayTimeline timeline_;
  std::string note_;                  // what is peculiar about this recording
  std::uint64_t indexed_frames_ = 0;  // lines of the index; 0: there is none
  std::uint64_t loop_start_ = 0;      // number of the loop's first frame
  std::uint64_t frame_in_loop_ = 0;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  FrameRing ring_;
  std::vector<FrameBuffer*> ready_;  // decoded, oldest first
  std::optional<Error> end_;         // why no further frame will come
  bool stopping_ = false;
  bool interrupted_ = false;
  std::optional<std::int64_t> start_ns_;  // CLOCK_MONOTONIC minus stamp of the first frame
  std::thread decoder_;
};

}  // namespace patternd
