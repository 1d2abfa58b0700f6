#include "pipeline/sources/gstreamer_source.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "pipeline/stage.h"
#include "pipeline/yaml_reader.h"

namespace patternd {
namespace {

constexpr const char* kName = "camera.pipeline";
// A live pipeline may hold a frame this long (an RTSP jitter buffer) before it reaches us.
constexpr std::int64_t kLongestPipelineNs = 9'000'000'000;
constexpr double kRateTolerance = 0.01;

struct Word {
  const char* ours;
  const char* theirs;
};
constexpr std::array<Word, 8> kFormats = {{{"GREY", "GRAY8"},
                                           {"Y16", "GRAY16_LE"},
                                           {"NV12", "NV12"},
                                           {"YU12", "I420"},
                                           {"YUYV", "YUY2"},
                                           {"UYVY", "UYVY"},
                                           {"RGB3", "RGB"},
                                           {"BGR3", "BGR"}}};

// GStreamer's name of a format of the configuration; empty for `auto`.
Result<std::string> gstreamer_format(const std::string& wanted) {
  if (wanted == "auto") return std::string();
  std::vector<std::string> known = {"auto"};
  std::string all = "auto";
  for (const Word& word : kFormats) {
    if (wanted == word.ours || wanted == word.theirs) return std::string(word.theirs);
    known.emplace_back(word.ours);
    all += std::string(" ") + word.ours;
  }
  const std::string nearest = nearest_word(wanted, known);
  return fail(ErrorCode::kInvalidArgument,
              "camera.format " + wanted + " is none of a GStreamer source's" +
                  (nearest.empty() ? "" : "; did you mean " + nearest + "?") + "; it takes " + all);
}

// The description without what people leave at its end: spaces and a last `!`.
std::string trimmed(std::string text) {
  while (!text.empty() &&
         (std::isspace(static_cast<unsigned char>(text.back())) != 0 || text.back() == '!'))
    text.pop_back();
  return text;
}

}  // namespace

Result<std::unique_ptr<GstreamerFrames>> GstreamerSource::make_pipeline() const {
  const std::string description = trimmed(config_.pipeline);
  if (description.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                std::string(kName) + ": is empty; e.g. \"videotestsrc is-live=true\"");
  }
  if (description.find("appsink") != std::string::npos) {
    return fail(ErrorCode::kInvalidArgument,
                std::string(kName) + ": must end before its sink; patternd adds its own appsink");
  }
  const auto format = gstreamer_format(config_.format);
  if (!format) return tl::make_unexpected(format.error());
  GstreamerOptions options;
  options.name = kName;
  options.format = *format;
  options.width = config_.width;
  options.height = config_.height;
  options.live = true;
  return GstreamerFrames::create(description, options);
}

Result<void> GstreamerSource::check() const {
  const auto made = make_pipeline();
  return made ? Result<void>() : tl::make_unexpected(made.error());
}

Result<void> GstreamerSource::open() {
  auto created = make_pipeline();
  if (!created) return tl::make_unexpected(created.error());
  const std::lock_guard<std::mutex> lock(mutex_);
  frames_ = std::move(*created);
  if (std::exchange(interrupted_, false)) frames_->interrupt();
  return {};
}

Result<void> GstreamerSource::check_rate() const {
  const double asked = config_.fps;
  const double given = format_.fps;
  if (asked <= 0 || given <= 0 || std::abs(asked - given) <= kRateTolerance * asked) return {};
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                ": gives %.4g frames a second, but camera.fps is %.4g; set the rate in the "
                "pipeline, and camera.fps to the same or not at all",
                given, asked);
  return fail(ErrorCode::kInvalidArgument, kName + std::string(text.data()));
}

Result<SourceFormat> GstreamerSource::start(FrameAllocator& allocator, int buffer_count) {
  stop();
  Result<void> ready = open();
  if (ready) ready = frames_->start();
  if (ready) format_ = frames_->format();
  if (ready) ready = check_rate();
  if (ready) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ready =
        ring_.prepare(allocator, frame_bytes(format_.format, format_.height, format_.stride_bytes),
                      static_cast<std::size_t>(buffer_count));
  }
  if (!ready) {
    stop();
    return tl::make_unexpected(ready.error());
  }
  dropped_ = 0;
  return format_;
}

void GstreamerSource::stop() {
  std::shared_ptr<GstreamerFrames> ended;  // goes without the lock: it takes a while
  const std::lock_guard<std::mutex> lock(mutex_);
  ended.swap(frames_);
}

// The next frame, or the newest of those that wait.
Result<GstreamerFrame> GstreamerSource::take(int timeout_ms, bool newest_only) {
  auto frame = frames_->next(timeout_ms);
  while (frame && newest_only && frames_->has_next()) {
    auto newer = frames_->next(0);
    if (!newer) break;
    newer->dropped += frame->dropped + 1;
    frame = std::move(newer);
  }
  return frame;
}

Result<FrameBuffer*> GstreamerSource::next(int timeout_ms, bool newest_only) {
  if (frames_ == nullptr)
    return fail(ErrorCode::kDevice, std::string(kName) + ": the pipeline is not running");
  auto frame = take(timeout_ms, newest_only);
  if (!frame) return tl::make_unexpected(frame.error());
  dropped_ += frame->dropped;
  overtaken_ += frame->dropped;
  FrameBuffer* buffer = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    buffer = ring_.take();
  }
  if (buffer == nullptr) {
    ++dropped_;
    ++overtaken_;
    return fail(ErrorCode::kExhausted,
                std::string(kName) + ": all buffers are lent; release one before the next frame");
  }
  if (auto copied = frames_->copy(*frame->sample, buffer->data); !copied) {
    release(buffer);
    return tl::make_unexpected(copied.error());
  }
  describe(*buffer, *frame);
  return buffer;
}

void GstreamerSource::describe(FrameBuffer& buffer, GstreamerFrame& frame) {
  buffer.image = {
      buffer.data,          frame_bytes(format_.format, format_.height, format_.stride_bytes),
      format_.width,        format_.height,
      format_.stride_bytes, format_.format,
      format_.bayer};
  const auto stamp_ns = frames_->capture_ns(*frame.sample);
  const std::uint64_t implausible = stamps_.implausible();
  buffer.info = FrameInfo{};
  buffer.info.seq = next_seq_++;
  buffer.info.received_mono_ns = frame.arrived_mono_ns;
  buffer.info.captured_mono_ns = stamps_.captured_ns(
      stamp_ns, frame.arrived_mono_ns - kLongestPipelineNs, frame.arrived_mono_ns);
  if (!stamp_ns || stamps_.implausible() > implausible) ++restamped_;
  buffer.info.captured_unix_ns = buffer.info.captured_mono_ns + unix_minus_monotonic_ns();
  buffer.info.dropped = std::exchange(dropped_, 0);
  ++taken_;
}

void GstreamerSource::release(FrameBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ring_.give_back(buffer);
}

void GstreamerSource::interrupt() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (frames_ != nullptr)
    frames_->interrupt();
  else
    interrupted_ = true;
}

std::string GstreamerSource::description() const {
  std::string text = "GStreamer pipeline " + config_.pipeline;
  if (frames_ == nullptr) return text + ", not running";
  text += ", " + std::to_string(format_.width) + "x" + std::to_string(format_.height) + " " +
          frames_->negotiated() + (frames_->is_live() ? ", live" : ", not live");
  if (restamped_ > 0) {
    text += ", " + std::to_string(restamped_) +
            " frames stamped on arrival (the pipeline's stamps were missing or could not be "
            "right)";
  }
  return text;
}

SourceCounters GstreamerSource::counters() const {
  SourceCounters counters;
  counters.frames = taken_;
  counters.overtaken = overtaken_;
  counters.restamped = restamped_;
  return counters;
}

}  // namespace patternd
