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

  // As for a frame that shows nothing.
  void clear() {
    matches.clear();
    blobs.clear();
    blobs_total = 0;
    times = {};
  }
};

// Frames go in by submit() and come out by collect(), in the same order. Where depth() is more than
// 1 the next ones can be submitted while the first is computed:
//   processor.submit(a); processor.submit(b); processor.collect(result_a); processor.submit(c); …
// One call at a time. Nothing allocates after creation.
class FrameProcessor {
 public:
  virtual ~FrameProcessor() = default;
  // Frames that may be in flight: submitted and not yet collected. At least 1; constant.
  [[nodiscard]] virtual std::size_t depth() const { return 1; }
  // Begins a frame of exactly the configured size and format (else kInvalidArgument), with fewer
  // than depth() in flight. The pixels must stay until it is collected. On failure it is not in
  // flight; the others are still.
  [[nodiscard]] virtual Result<void> submit(const RawImageView& frame) = 0;
  // With frames in flight: the device is done with the oldest (or has failed), so that collect()
  // waits for nobody. Does not wait itself.
  [[nodiscard]] virtual bool ready() const = 0;
  // Waits for the oldest frame in flight and overwrites `result`. On failure (the device's:
  // kDevice) it is out of flight too.
  [[nodiscard]] virtual Result<void> collect(FrameResult& result) = 0;
  // One frame, with none in flight.
  [[nodiscard]] Result<void> process(const RawImageView& frame, FrameResult& result) {
    auto begun = submit(frame);
    return begun ? collect(result) : begun;
  }
  // With none in flight: the frame before the next one was another processor's, so that
  // blobs.reference alternate has none to subtract, as for the first frame.
  virtual void restart() {}
  // "cpu" or "cuda", and one line about it for status. From any thread.
  [[nodiscard]] virtual const char* backend() const = 0;
  [[nodiscard]] virtual std::string description() const = 0;
};

// The CPU's version, complete. Refuses (kInvalidArgument) what could never work: a pattern larger
// than the searched picture (both sizes named), a calibration for another size, a frame beyond
// kMaxImageSide.
[[nodiscard]] Result<std::unique_ptr<FrameProcessor>> make_cpu_processor(
    const ProcessorConfig& config);

}  // namespace patternd
