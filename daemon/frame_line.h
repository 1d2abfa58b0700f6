// Frames on the wire: luma in base64, cut into lines of less than 1 MiB (PROTOCOL.md, `frame`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/messages.h"
#include "pipeline/image.h"
#include "pipeline/result.h"
#include "pipeline/sources/recording_index.h"

namespace patternd {

// The lines of one frame, kGray8 or kGray16, each with its end. `dropped`: frames lost since the
// one sent before.
[[nodiscard]] std::string frame_lines(const ImageView& luma, const FrameStamp& stamp,
                                      std::uint64_t dropped);

struct ReceivedFrame {
  Image luma;
  FrameStamp stamp;
  std::uint64_t dropped = 0;
};

// Puts a frame together again from its lines.
class FrameAssembler {
 public:
  // Takes one `frame` line; the frame where it was the last. kParse where it isn't the one that
  // must follow or its numbers cannot be: the frame is given up, and the next first part begins
  // another.
  [[nodiscard]] Result<std::optional<ReceivedFrame>> take(const Json& line);

 private:
  [[nodiscard]] Result<std::optional<ReceivedFrame>> add(const Json& line);
  [[nodiscard]] Result<ReceivedFrame> finished(const Json& line) const;

  std::vector<std::uint8_t> bytes_;
  std::int64_t next_part_ = 0;
};

}  // namespace patternd
