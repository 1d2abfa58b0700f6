// Where frames come from: one interface for cameras, GStreamer pipelines and recordings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "pipeline/frame.h"
#include "pipeline/result.h"

namespace patternd {

// What a source really gives, known once it has started.
struct SourceFormat {
  int width = 0;
  int height = 0;
  std::size_t stride_bytes = 0;
  RawFormat format = RawFormat::kGrey;
  BayerOrder bayer = BayerOrder::kRggb;
  double fps = 0;  // 0: not known
};

// Memory that a source writes frames into. The service owns the buffers (so that they can be memory
// which a GPU reads in place) and lends them; each is large enough for `SourceFormat` as started.
struct FrameBuffer {
  std::uint8_t* data = nullptr;
  std::size_t size_bytes = 0;
  RawImageView image;  // filled by next()
  FrameInfo info;      // filled by next(): stamps, `dropped`, and `seq` as the source counts (from
                       // start to stop it rises strictly; the service gives frames its own)
};

// Gives memory for frames, 4096-byte aligned, at start; freed by its own destructor, after the
// source's: a source that is started again with the same allocator uses its memory again. What
// writes frames from threads of its own (GStreamer) takes its memory only where it is held by a
// shared_ptr, of which it keeps one; allocate() may then be called by such a thread during start.
class FrameAllocator : public std::enable_shared_from_this<FrameAllocator> {
 public:
  virtual ~FrameAllocator() = default;
  [[nodiscard]] virtual Result<std::uint8_t*> allocate(std::size_t size_bytes) = 0;
  // What kind of memory, for status: "plain", "page-locked", "mapped", "managed".
  [[nodiscard]] virtual const char* kind() const { return "plain"; }
  // The host may look at a frame while it is computed; false: only the GPU may.
  [[nodiscard]] virtual bool shared_with_host() const { return true; }
};

// How frames come into our buffers: written there by the driver (V4L2 USERPTR) or by the pipeline's
// last element (GStreamer, by our allocator), copied there, or decoded there. Names and sentences
// are for status.
enum class CapturePath { kUserPointer, kAllocator, kOneCopy, kDecoded };
[[nodiscard]] const char* name_of(CapturePath path);
[[nodiscard]] const char* sentence_of(CapturePath path);

// What became of a source's frames since it was made; they only rise.
struct SourceCounters {
  std::uint64_t frames = 0;     // handed out
  std::uint64_t lost = 0;       // left out by the camera or driver: gaps of its sequence
  std::uint64_t damaged = 0;    // flagged by the driver, cut short, or not to be decoded
  std::uint64_t overtaken = 0;  // waited behind a newer one
  std::uint64_t restamped = 0;  // stamped on arrival, for want of a stamp that can be right
  std::uint64_t copied = 0;     // copied by the host on the way into our buffers
  std::uint64_t reopened = 0;   // times that the source was lost and came back
};

// The verbs, in order: start, then next again and again, then stop. Used by one thread, except
// `release` and `interrupt`, which any thread may call. Buffers still lent when the source is
// stopped or started again stay valid until they are released.
class Source {
 public:
  virtual ~Source() = default;
  // What start() would refuse whatever the device: its configuration alone is looked at.
  [[nodiscard]] virtual Result<void> check() const { return {}; }
  // Opens the device or file and negotiates a format. `buffer_count` buffers will be lent at a
  // time.
  [[nodiscard]] virtual Result<SourceFormat> start(FrameAllocator& allocator, int buffer_count) = 0;
  // Waits for the next frame at most `timeout_ms`. The buffer stays the caller's until given back
  // to `release`. Errors: kTimeout (nothing yet), kEndOfStream, kDevice/kIo (stop and start again
  // later). `newest_only`: older frames that wait are dropped and counted in info.dropped (live);
  // else each comes in its turn.
  [[nodiscard]] virtual Result<FrameBuffer*> next(int timeout_ms, bool newest_only) = 0;
  virtual void release(FrameBuffer* buffer) = 0;
  virtual void stop() = 0;
  // From any thread: makes a waiting next() return kTimeout soon.
  virtual void interrupt() = 0;
  // A live source never waits for us: frames not fetched are lost.
  [[nodiscard]] virtual bool is_live() const = 0;
  [[nodiscard]] virtual CapturePath capture_path() const = 0;
  // One line for logs and status: the stable name, format, rate.
  [[nodiscard]] virtual std::string description() const = 0;
  // From any thread.
  [[nodiscard]] virtual SourceCounters counters() const { return {}; }
};

// The `camera` section of the configuration.
struct CameraConfig {
  enum class Kind { kV4l2, kGstreamer, kReplay };
  std::string name = "cam0";
  Kind kind = Kind::kReplay;
  std::string device;    // v4l2
  std::string pipeline;  // gstreamer
  std::string path;      // replay: a video file, a folder of pictures, or a recording
  bool loop = false;     // replay
  bool realtime = true;  // replay: at the recorded pace; false: as fast as possible
  int width = 0;         // 0: as the source gives
  int height = 0;
  std::string format = "auto";
  double fps = 0;  // 0: as the source gives; folders default to 25
  // A camera that gives no frame for longer is lost and opened anew; 0: it may be silent for ever
  // (an external trigger).
  double max_silence_s = 2;
  std::map<std::string, std::int64_t> controls;
};

// Makes the source that the configuration asks for; nothing is opened yet. kUnsupported where this
// build lacks it.
[[nodiscard]] Result<std::unique_ptr<Source>> make_source(const CameraConfig& config);

}  // namespace patternd
