// Reads the frames of a recording, a folder of pictures or a video file, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pipeline/result.h"
#include "pipeline/source.h"

namespace patternd {

// All frames are of one size and format. One thread at a time.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  // Rows are a multiple of 64 bytes apart; `fps` is 0 where the files do not know it.
  [[nodiscard]] virtual const SourceFormat& format() const = 0;
  // Writes the next frame into `pixels`, rows `format().stride_bytes` apart. False: there is no
  // further frame, nothing was written. Errors name the file and the frame.
  [[nodiscard]] virtual Result<bool> read(std::uint8_t* pixels) = 0;
  // Begins again at the first frame.
  [[nodiscard]] virtual Result<void> rewind() = 0;
};

// The pictures of a folder (PNG, JPEG, PNM; by their names' endings) in the order of their names'
// bytes, or the one picture that `path` names. `limit`: no more than so many.
[[nodiscard]] Result<std::unique_ptr<FrameReader>> open_pictures(const std::string& path,
                                                                 std::size_t limit);
// True where the name ends as a picture's does.
[[nodiscard]] bool is_picture_name(const std::string& name);

// A video file, through GStreamer; kUnsupported in a build without it.
[[nodiscard]] Result<std::unique_ptr<FrameReader>> open_video(const std::string& path);

// Rows of frames for GPUs and vector code start at multiples of this.
inline constexpr std::size_t kRowAlignment = 64;

// `stride_bytes` for rows of this format, so aligned.
[[nodiscard]] std::size_t aligned_stride_bytes(RawFormat format, int width);

}  // namespace patternd
