#include "tools/patternctl/recorder.h"

#include <utility>

#include "pipeline/frame.h"
#include "pipeline/image.h"
#include "pipeline/sources/aligned_frames.h"
#include "pipeline/stage.h"

namespace patternd::tools {
namespace {

constexpr int kBufferCount = 4;
constexpr int kWaitMs = 200;
constexpr std::int64_t kLongestSilenceNs = 10'000'000'000;

// Stops the source however recording ends.
class Running {
 public:
  explicit Running(Source& source) : source_(source) {}
  ~Running() { source_.stop(); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Source& source_;
};

// The next frame; null where recording is to stop.
Result<FrameBuffer*> next_frame(Source& source, const std::atomic<bool>& stopping) {
  const std::int64_t begin_ns = monotonic_ns();
  while (!stopping) {
    auto buffer = source.next(kWaitMs, false);
    if (buffer) return buffer;
    if (buffer.error().code == ErrorCode::kEndOfStream) break;
    if (buffer.error().code != ErrorCode::kTimeout) return buffer;
    if (source.is_live() && monotonic_ns() - begin_ns > kLongestSilenceNs) {
      return fail(ErrorCode::kTimeout,
                  source.description() + ": no frame for 10 s; check cable, power and trigger");
    }
  }
  return nullptr;
}

}  // namespace

Result<RecordSummary> record_frames(Source& source, const RecordOptions& options,
                                    const std::atomic<bool>& stopping,
                                    const std::function<void(const RecordSummary&)>& progress) {
  const auto memory = std::make_shared<AlignedFrameAllocator>();
  const Running running(source);
  const auto format = source.start(*memory, kBufferCount);
  if (!format) return tl::make_unexpected(format.error());
  auto writer = RecordingWriter::create(options.folder, options.format);
  if (!writer) return tl::make_unexpected(writer.error());
  auto scratch = Image::create(format->width, format->height, luma_format(format->format));
  if (!scratch) return tl::make_unexpected(scratch.error());
  RecordSummary summary;
  summary.source = source.description();
  std::uint64_t seq = 0;
  std::int64_t first_ns = 0;
  while (options.frames == 0 || summary.frames < options.frames) {
    const auto buffer = next_frame(source, stopping);
    if (!buffer) return tl::make_unexpected(buffer.error());
    if (*buffer == nullptr) break;
    const FrameInfo info = (*buffer)->info;
    if (summary.frames == 0) first_ns = info.captured_mono_ns;
    const double seconds = static_cast<double>(info.captured_mono_ns - first_ns) / 1e9;
    if (options.seconds > 0 && seconds >= options.seconds) {
      source.release(*buffer);
      break;
    }
    seq += info.dropped + 1;
    const auto written = writer->write(to_luma((*buffer)->image, scratch->view()),
                                       {seq - 1, info.captured_mono_ns, info.captured_unix_ns});
    source.release(*buffer);
    if (!written) return tl::make_unexpected(written.error());
    ++summary.frames;
    summary.seconds = seconds;
    if (summary.frames > 1) summary.dropped += info.dropped;
    progress(summary);
  }
  if (auto finished = writer->finish(); !finished) return tl::make_unexpected(finished.error());
  return summary;
}

}  // namespace patternd::tools
