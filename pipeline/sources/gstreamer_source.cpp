#include "pipeline/sources/gstreamer_source.h"

#include <algorithm>
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
  options.memory = memory_;
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

// The memory for frames, the same again for the same allocator.
void GstreamerSource::find_memory(FrameAllocator& allocator, std::size_t buffer_count) {
  if (memory_ == nullptr || &memory_->allocator() != &allocator ||
      memory_->most_lent() != buffer_count)
    memory_ = std::make_shared<GstreamerMemory>(allocator, buffer_count);
  const std::lock_guard<std::mutex> lock(mutex_);
  while (lent_.size() < buffer_count) lent_.push_back(std::make_unique<Lent>());
}

// Starts the pipeline; its threads may take memory of the allocator until the first frame is there.
Result<void> GstreamerSource::run_pipeline() {
  if (auto ready = open(); !ready) return ready;
  memory_->set_growing(true);
  auto started = frames_->start();
  memory_->set_growing(false);
  if (!started) return started;
  format_ = frames_->format();
  path_ = frames_->writes_into_our_memory() ? CapturePath::kAllocator : CapturePath::kOneCopy;
  return memory_->make_room(frame_bytes(format_.format, format_.height, format_.stride_bytes));
}

Result<SourceFormat> GstreamerSource::start(FrameAllocator& allocator, int buffer_count) {
  stop();
  find_memory(allocator, static_cast<std::size_t>(buffer_count));
  Result<void> ready = run_pipeline();
  if (ready) ready = check_rate();
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
  return hand_out(*frame);
}

Result<FrameBuffer*> GstreamerSource::hand_out(GstreamerFrame& frame) {
  // Before it is mapped, which counts as another's look.
  GstBuffer* const theirs = gst_sample_get_buffer(frame.sample.get());
  const bool may_lend = theirs != nullptr && memory_->may_lend(*theirs);
  const auto pixels = frames_->map(*frame.sample);
  if (!pixels) return tl::make_unexpected(pixels.error());
  Lent* const lent = free_lent();
  if (lent == nullptr || !fill(*lent, *frame.sample, may_lend, *pixels)) {
    ++dropped_;
    ++overtaken_;
    return fail(ErrorCode::kExhausted,
                std::string(kName) + ": all buffers are lent; release one before the next frame");
  }
  describe(lent->buffer, frame);
  return &lent->buffer;
}

GstreamerSource::Lent* GstreamerSource::free_lent() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found =
      std::find_if(lent_.begin(), lent_.end(), [](const auto& lent) { return !lent->taken; });
  return found != lent_.end() ? found->get() : nullptr;
}

// The frame as it lies where it may be lent so, else a copy; false where there is no room for that.
bool GstreamerSource::fill(Lent& lent, GstSample& sample, bool may_lend,
                           const GstreamerPixels& pixels) {
  if (may_lend && frames_->lie_in_our_memory(pixels)) {
    lent.sample.reset(gst_sample_ref(&sample));
    lent.buffer.data = pixels.data();
  } else {
    lent.copy = memory_->take();
    if (lent.copy == nullptr) return false;
    lent.from = memory_;
    lent.buffer.data = lent.copy->data;
    frames_->copy(pixels, lent.buffer.data);
    ++copied_;
  }
  lent.buffer.size_bytes = frame_bytes(format_.format, format_.height, format_.stride_bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  lent.taken = true;
  return true;
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
  // Go without the lock: they may be the last that hold a pipeline's pool, or an allocator.
  GstSamplePtr sample;
  std::shared_ptr<GstreamerMemory> from;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(lent_.begin(), lent_.end(),
                                  [buffer](const auto& lent) { return &lent->buffer == buffer; });
  if (found == lent_.end()) return;
  Lent& lent = **found;
  sample = std::move(lent.sample);
  from = std::move(lent.from);
  if (from != nullptr) from->give_back(lent.copy);
  lent.taken = false;
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
  if (path_ == CapturePath::kOneCopy)
    text += ", copied once (the last element does not write into our memory)";
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
  counters.copied = copied_;
  return counters;
}

}  // namespace patternd
