#include "tools/patternctl/service_frames.h"

#include <optional>
#include <utility>

#include "daemon/frame_client.h"
#include "pipeline/image_file.h"
#include "pipeline/sources/recording.h"

namespace patternd::tools {
namespace {

constexpr int kWaitMs = 200;
constexpr int kLongestSilenceMs = 10'000;

// The next frame; nothing where there is none any more or recording is to stop.
Result<std::optional<ReceivedFrame>> next_frame(FrameClient& frames,
                                                const std::atomic<bool>& stopping) {
  for (int waited_ms = 0; !stopping; waited_ms += kWaitMs) {
    auto frame = frames.next(kWaitMs);
    if (frame || frame.error().code != ErrorCode::kTimeout) return frame;
    if (waited_ms < kLongestSilenceMs) continue;
    const std::string& lost = frames.camera_lost();
    return fail(ErrorCode::kTimeout, frames.description() + ": no frame for 10 s; " +
                                         (lost.empty() ? "its camera is silent: check its trigger"
                                                       : "its camera is away: " + lost));
  }
  return std::optional<ReceivedFrame>();
}

Result<FrameClient> request_frames(const ServiceOption& service, const Json& command) {
  auto client = connect_to(service);
  if (!client) return tl::make_unexpected(client.error());
  return FrameClient::request(std::move(*client), "the service at " + service.address, command);
}

Json record_command(const RecordOptions& options) {
  Json command = {{"command", "record"}};
  if (options.seconds > 0) command["seconds"] = options.seconds;
  if (options.frames > 0) command["frames"] = options.frames;
  return command;
}

}  // namespace

Result<RecordSummary> record_service(const ServiceOption& service, const RecordOptions& options,
                                     const std::atomic<bool>& stopping,
                                     const std::function<void(const RecordSummary&)>& progress) {
  auto frames = request_frames(service, record_command(options));
  if (!frames) return tl::make_unexpected(frames.error());
  RecordSummary summary;
  summary.source = frames->description();
  std::int64_t first_ns = 0;
  std::optional<RecordingWriter> writer;  // made when there is something to write
  for (;;) {
    const auto frame = next_frame(*frames, stopping);
    if (!frame) return tl::make_unexpected(frame.error());
    if (!*frame) break;
    if (!writer) {
      auto made = RecordingWriter::create(options.folder, options.format);
      if (!made) return tl::make_unexpected(made.error());
      writer = std::move(*made);
    }
    const FrameStamp& stamp = (*frame)->stamp;
    if (auto written = writer->write((*frame)->luma.view(), stamp); !written)
      return tl::make_unexpected(written.error());
    if (summary.frames++ == 0) first_ns = stamp.captured_mono_ns;
    summary.seconds = static_cast<double>(stamp.captured_mono_ns - first_ns) / 1e9;
    summary.dropped += (*frame)->dropped;
    progress(summary);
  }
  if (!writer) {
    return fail(ErrorCode::kEndOfStream,
                summary.source + ": ended before a frame came; nothing was recorded");
  }
  if (auto finished = writer->finish(); !finished) return tl::make_unexpected(finished.error());
  return summary;
}

Result<std::uint64_t> snapshot_service(const ServiceOption& service, const std::string& path) {
  auto frames = request_frames(service, {{"command", "snapshot"}});
  if (!frames) return tl::make_unexpected(frames.error());
  const std::atomic<bool> stopping{false};
  const auto frame = next_frame(*frames, stopping);
  if (!frame) return tl::make_unexpected(frame.error());
  if (!*frame) {
    return fail(ErrorCode::kEndOfStream,
                frames->description() + ": its recording ended before a frame came");
  }
  if (auto written = write_image(path, (*frame)->luma.view()); !written)
    return tl::make_unexpected(written.error());
  return (*frame)->stamp.seq;
}

}  // namespace patternd::tools
