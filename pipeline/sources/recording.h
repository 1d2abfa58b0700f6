// Writes recordings: a folder with the frames and their stamps, which ReplaySource plays.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/file_descriptor.h"
#include "pipeline/image.h"
#include "pipeline/result.h"
#include "pipeline/sources/recording_index.h"
#include "pipeline/sources/video_writer.h"

namespace patternd {

enum class RecordingFormat {
  kPgm,    // 00000000.pgm and so on: fast to write
  kPng,    // a third to a half the size, ten times the time
  kVideo,  // frames.mkv (FFV1, lossless), through GStreamer with gstreamer1.0-libav
};

// Writes frames, as luma of 8 or 16 bit, and the index beside them:
//
//   auto recording = RecordingWriter::create("rec", RecordingFormat::kPgm);
//   recording->write(luma, {seq, mono_ns, unix_ns});
//   recording->finish();
//
// A frame's file appears whole, and its index line is written after it with a single call, so that
// a recorder killed at any moment leaves a recording that can be played. (A video is written by
// GStreamer's threads, a few frames behind: what it lacks of the index ends a replay with an
// error.) One thread at a time.
class RecordingWriter {
 public:
  // Makes the folder where it does not exist; one that holds anything is refused
  // (kInvalidArgument).
  [[nodiscard]] static Result<RecordingWriter> create(const std::string& folder,
                                                      RecordingFormat format);

  // Appends one frame: kGray8 or kGray16, the first frame's size and format, `seq` and
  // `captured_mono_ns` above those of the frame before (kInvalidArgument otherwise). kIo: the disk
  // is full or broken; nothing of this frame is in the index then.
  [[nodiscard]] Result<void> write(const ImageView& luma, const FrameStamp& stamp);
  // Ends the recording and hands everything to the disk. Without it pictures are complete for every
  // reader, but not safe from a power cut; a video lacks its last frames.
  [[nodiscard]] Result<void> finish();
  [[nodiscard]] std::uint64_t frame_count() const { return count_; }

 private:
  RecordingWriter(std::string folder, RecordingFormat format, FileDescriptor index);
  [[nodiscard]] Result<void> write_frame(const ImageView& luma, const FrameStamp& stamp);
  [[nodiscard]] Result<void> check(const ImageView& luma, const FrameStamp& stamp) const;

  std::string folder_;
  RecordingFormat format_;
  FileDescriptor index_;
  std::unique_ptr<VideoWriter> video_;
  std::int64_t first_ns_ = 0;
  std::uint64_t count_ = 0;
  int width_ = 0;
  int height_ = 0;
  PixelFormat pixels_ = PixelFormat::kGray8;
  FrameStamp last_;
};

}  // namespace patternd
