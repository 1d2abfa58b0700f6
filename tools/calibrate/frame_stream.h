// Pictures that come one after the other: recordings, videos, large folders, a running service.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd::calibrate {

struct StreamFrame {
  std::uint64_t seq = 0;
  double seconds = 0;  // since the first frame, by their stamps
  ImageView luma;      // until the next call
};

class FrameStream {
 public:
  virtual ~FrameStream() = default;
  // The next frame in order; nothing where there is none any more.
  [[nodiscard]] virtual Result<std::optional<StreamFrame>> next() = 0;
  // It goes on for ever.
  [[nodiscard]] virtual bool is_live() const = 0;
};

// Whether `name` is a stream: a folder with a recording or with more than `most_pictures` pictures,
// a video file, or (where no file has the name) the address of a running service, HOST:PORT.
// Everything else is a picture or a folder of few.
[[nodiscard]] bool is_stream(const std::string& name, std::size_t most_pictures);

// Opens it. A service is asked for each frame that its camera gives; those that come while the
// caller is busy are left out.
[[nodiscard]] Result<std::unique_ptr<FrameStream>> open_stream(const std::string& name);

}  // namespace patternd::calibrate
