// A frame's way from raw pixels to matches and blobs, as one interface that the CPU and the GPU
// implement.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/components.h"
#include "pipeline/frame.h"
#include "pipeline/match.h"
#include "pipeline/matcher.h"
#include "pipeline/result.h"
#include "pipeline/stage.h"

namespace patternd {

// Everything that a processor needs to know before the first frame; memory is allocated for exactly
// this.
struct ProcessorConfig {
  int width = 0;  // of the raw frame
  int height = 0;
  std::size_t stride_bytes = 0;
  RawFormat format = RawFormat::kGrey;
  BayerOrder bayer = BayerOrder::kRggb;
  std::optional<CameraModel> calibration;
  std::vector<PatternSearch> patterns;
  std::optional<BlobParams> blobs;
  std::shared_ptr<const Image>
      dark_frame;   // for blobs.reference dark: luma, as the camera gives it
  int threads = 0;  // 0: as many as the process may use
};

// What a frame yields. Vectors are reserved when the processor is created and keep their capacity.
struct FrameResult {
  std::vector<Match> matches;  // all patterns', by falling score
  std::vector<Blob> blobs;     // by falling area
  std::uint64_t blobs_total = 0;
  StageTimes times;  // kRectify … kBlobs
};

class FrameProcessor {
 public:
  virtual ~FrameProcessor() = default;
  // Processes one frame of exactly the configured size and format; allocates nothing. `result` is
  // overwritten. Errors are the device's (kDevice); a frame of another format is kInvalidArgument.
  // One call at a time.
  [[nodiscard]] virtual Result<void> process(const RawImageView& frame, FrameResult& result) = 0;
  // "cpu" or "cuda", and one line about it for status.
  [[nodiscard]] virtual const char* backend() const = 0;
  [[nodiscard]] virtual std::string description() const = 0;
};

// The CPU's version, complete. Refuses (kInvalidArgument) what could never work: a pattern larger
// than the searched picture (both sizes named), a calibration for another size, a frame beyond
// kMaxImageSide.
[[nodiscard]] Result<std::unique_ptr<FrameProcessor>> make_cpu_processor(
    const ProcessorConfig& config);

}  // namespace patternd
