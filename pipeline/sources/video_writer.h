// Writes frames.mkv of a recording: FFV1, which keeps every bit of 8- and 16-bit luma.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd {

class VideoWriter {
 public:
  // Makes the file for frames like `first` (kGray8 or kGray16), which is not yet written.
  // kUnsupported: GStreamer or its FFV1 encoder is not here.
  [[nodiscard]] static Result<std::unique_ptr<VideoWriter>> create(const std::string& path,
                                                                   const ImageView& first);
  ~VideoWriter();
  VideoWriter(const VideoWriter&) = delete;
  VideoWriter& operator=(const VideoWriter&) = delete;

  // Hands one frame to the encoder, `since_first_ns` after the first; waits while it is more than a
  // few frames behind. Errors are the pipeline's: disk full and the like.
  [[nodiscard]] Result<void> write(const ImageView& luma, std::int64_t since_first_ns);
  // Waits until all is in the file and closes it.
  [[nodiscard]] Result<void> finish();

 private:
  struct State;
  explicit VideoWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace patternd
