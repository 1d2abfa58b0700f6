#include "pipeline/sources/replay_source.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "pipeline/input_file.h"
#include "pipeline/stage.h"

namespace patternd {
namespace {

// Frames decoded ahead of those that the caller holds.
constexpr std::size_t kAhead = 3;
constexpr double kDefaultFps = 25;

// "640x480", or "width 640" where that is all that is set.
std::string size_asked_for(const CameraConfig& config) {
  if (config.height == 0) return "width " + std::to_string(config.width);
  if (config.width == 0) return "height " + std::to_string(config.height);
  return std::to_string(config.width) + "x" + std::to_string(config.height);
}

}  // namespace

ReplayTimeline::ReplayTimeline(std::vector<FrameStamp> stamps, double fps)
    : stamps_(std::move(stamps)), period_ns_(1e9 / fps) {
  if (stamps_.empty()) return;
  // The sum may pass int64_t.
  const auto span = static_cast<std::uint64_t>(stamps_.back().captured_mono_ns -
                                               stamps_.front().captured_mono_ns);
  const std::uint64_t intervals = stamps_.size() - 1;
  loop_ns_ = intervals > 0 ? span + span / intervals
                           : static_cast<std::uint64_t>(std::llround(std::max(period_ns_, 1.0)));
  loop_seq_ = stamps_.back().seq - stamps_.front().seq + 1;
  for (const FrameStamp& stamp : stamps_)
    latest_unix_ns_ = std::max(latest_unix_ns_, stamp.captured_unix_ns);
}

FrameStamp ReplayTimeline::stamp(std::uint64_t n) const {
  if (stamps_.empty()) {
    const std::int64_t at = std::llround(static_cast<double>(n) * period_ns_);
    return {n, at, at};
  }
  const std::uint64_t loop = n / stamps_.size();
  FrameStamp stamp = stamps_[static_cast<std::size_t>(n % stamps_.size())];
  stamp.seq += loop * loop_seq_;
  stamp.captured_mono_ns += static_cast<std::int64_t>(loop * loop_ns_);
  stamp.captured_unix_ns += static_cast<std::int64_t>(loop * loop_ns_);
  return stamp;
}

bool ReplayTimeline::reaches(std::uint64_t n) const {
  if (stamps_.empty()) return static_cast<double>(n) * period_ns_ <= static_cast<double>(kMostNs);
  const std::uint64_t loop = n / stamps_.size();
  // Divided, because the products are what may not fit.
  const auto fits = [loop](std::uint64_t room, std::uint64_t step) {
    return loop == 0 || loop <= room / step;
  };
  const FrameStamp& last = stamps_.back();
  return fits(kMostSeq - last.seq, loop_seq_) &&
         fits(static_cast<std::uint64_t>(kMostNs - last.captured_mono_ns), loop_ns_) &&
         fits(static_cast<std::uint64_t>(kMostNs - latest_unix_ns_), loop_ns_);
}

ReplaySource::~ReplaySource() { ReplaySource::stop(); }

// Finds out what kind of recording `path` is, and opens it.
Result<void> ReplaySource::open() {
  const std::string& path = config_.path;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return fail(ErrorCode::kNotFound, path + ": no such file or folder to replay");
  std::size_t limit = std::numeric_limits<std::size_t>::max();
  std::vector<FrameStamp> stamps;
  note_.clear();
  std::string video = path;
  bool is_video = !std::filesystem::is_directory(status) && !is_picture_name(path);
  if (std::filesystem::exists(path + "/" + kIndexName, error)) {
    auto index = read_recording_index(path);
    if (!index) return tl::make_unexpected(index.error());
    stamps = std::move(index->stamps);
    limit = stamps.size();
    if (index->cut) note_ = ", the index's last line is cut short and left out";
    video = path + "/" + kVideoName;
    is_video = std::filesystem::exists(video, error);
  }
  // GStreamer would wait for a pipe; pictures are looked at by their own reader.
  if (is_video) {
    if (const auto readable = InputFile::open(video); !readable)
      return tl::make_unexpected(readable.error());
  }
  auto reader = is_video ? open_video(video) : open_pictures(path, limit);
  if (!reader) return tl::make_unexpected(reader.error());
  reader_ = std::move(*reader);
  format_ = reader_->format();
  if (config_.fps > 0) format_.fps = config_.fps;
  if (format_.fps <= 0) format_.fps = kDefaultFps;
  indexed_frames_ = stamps.size();
  timeline_ = ReplayTimeline(std::move(stamps), format_.fps);
  return {};
}

// Frames are taken as they are recorded; a configuration that expects others is told so.
Result<void> ReplaySource::check_format() const {
  if ((config_.width > 0 && config_.width != format_.width) ||
      (config_.height > 0 && config_.height != format_.height)) {
    return fail(ErrorCode::kInvalidArgument,
                config_.path + ": frames are " + std::to_string(format_.width) + "x" +
                    std::to_string(format_.height) + ", but the configuration asks for " +
                    size_asked_for(config_) +
                    "; leave width and height out to take the recording's");
  }
  if (config_.format != "auto" && config_.format != name_of(format_.format)) {
    return fail(ErrorCode::kInvalidArgument,
                config_.path + ": frames are " + name_of(format_.format) +
                    ", but the configuration asks for " + config_.format +
                    "; leave format out to take the recording's");
  }
  return {};
}

Result<SourceFormat> ReplaySource::start(FrameAllocator& allocator, int buffer_count) {
  stop();
  if (auto opened = open(); !opened) return tl::make_unexpected(opened.error());
  if (auto fits = check_format(); !fits) return tl::make_unexpected(fits.error());
  const auto count = static_cast<std::size_t>(buffer_count) + kAhead;
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t bytes = frame_bytes(format_.format, format_.height, format_.stride_bytes);
  if (auto made = ring_.prepare(allocator, bytes, count); !made)
    return tl::make_unexpected(made.error());
  ready_.reserve(count);
  loop_start_ = frame_in_loop_ = 0;
  end_.reset();
  start_ns_.reset();
  stopping_ = interrupted_ = false;
  try {
    decoder_ = std::thread([this] { decode_ahead(); });
  } catch (const std::system_error& fault) {
    return fail(ErrorCode::kExhausted,
                config_.path + ": no thread to decode with: " + fault.what());
  }
  return format_;
}

// The decoding thread: fills free buffers until the recording ends or the replay is stopped.
void ReplaySource::decode_ahead() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    FrameBuffer* buffer = nullptr;
    changed_.wait(lock, [&] { return stopping_ || (buffer = ring_.take()) != nullptr; });
    if (stopping_) {
      if (buffer != nullptr) ring_.give_back(buffer);
      return;
    }
    lock.unlock();
    auto end = decode_next(*buffer);
    lock.lock();
    if (end) {
      ring_.give_back(buffer);
      end_ = std::move(end);
      changed_.notify_all();
      return;
    }
    ready_.push_back(buffer);
    changed_.notify_all();
  }
}

// Decodes the next frame, or tells why there is none. A recorder that was killed may have left one
// frame more than its index has lines, which is not played; or index lines for frames that its
// video does not hold, which whoever counts on them must be told.
std::optional<Error> ReplaySource::decode_next(FrameBuffer& buffer) {
  const bool index_ended = indexed_frames_ > 0 && frame_in_loop_ == indexed_frames_;
  auto read = index_ended ? Result<bool>(false) : reader_->read(buffer.data);
  if (read && !*read) {
    if (frame_in_loop_ < indexed_frames_) {
      return Error{ErrorCode::kIo,
                   config_.path + ": the video ends after " + std::to_string(frame_in_loop_) +
                       " frames, but its index has " + std::to_string(indexed_frames_) +
                       " lines; it was cut short: what it holds has been played, "
                       "and with as many lines in the index it plays to the end"};
    }
    if (!config_.loop)
      return Error{ErrorCode::kEndOfStream, config_.path + ": the recording has ended"};
    if (auto again = reader_->rewind(); !again) return again.error();
    loop_start_ += frame_in_loop_;
    frame_in_loop_ = 0;
    read = reader_->read(buffer.data);
  }
  if (!read) return read.error();
  if (!*read) return Error{ErrorCode::kIo, config_.path + ": holds no frame"};
  const std::uint64_t number = loop_start_ + frame_in_loop_++;
  if (!timeline_.reaches(number)) {
    return Error{ErrorCode::kExhausted, config_.path +
                                            ": ends here: the stamps of a further frame would pass "
                                            "the year 2255; play fewer loops, or at a higher fps"};
  }
  stamp(buffer, number);
  return std::nullopt;
}

void ReplaySource::stamp(FrameBuffer& buffer, std::uint64_t number) const {
  const FrameStamp stamp = timeline_.stamp(number);
  buffer.image = {buffer.data,          buffer.size_bytes, format_.width, format_.height,
                  format_.stride_bytes, format_.format,    format_.bayer};
  buffer.info = FrameInfo{};
  buffer.info.seq = stamp.seq;
  buffer.info.captured_mono_ns = stamp.captured_mono_ns;
  buffer.info.captured_unix_ns = stamp.captured_unix_ns;
  buffer.info.received_mono_ns = stamp.captured_mono_ns;
}

// When a frame is to be handed out, on CLOCK_MONOTONIC.
std::int64_t ReplaySource::due_ns(const FrameBuffer& buffer) {
  if (!config_.realtime) return 0;
  if (!start_ns_) start_ns_ = monotonic_ns() - buffer.info.captured_mono_ns;
  return *start_ns_ + buffer.info.captured_mono_ns;
}

Result<FrameBuffer*> ReplaySource::next(int timeout_ms, bool /*newest_only*/) {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::int64_t deadline = monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
  for (;;) {
    std::int64_t wake = deadline;
    const std::int64_t now = monotonic_ns();
    if (!ready_.empty()) {
      FrameBuffer* const buffer = ready_.front();
      const std::int64_t due = due_ns(*buffer);
      if (due <= now) {
        ready_.erase(ready_.begin());
        return buffer;
      }
      wake = std::min(wake, due);
    } else if (end_) {
      return tl::make_unexpected(*end_);
    }
    if (interrupted_ || now >= deadline) {
      interrupted_ = false;
      return fail(ErrorCode::kTimeout,
                  config_.path + ": no frame within " + std::to_string(timeout_ms) + " ms");
    }
    changed_.wait_for(lock, std::chrono::nanoseconds(wake - now));
  }
}

void ReplaySource::release(FrameBuffer* buffer) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ring_.give_back(buffer);
  }
  changed_.notify_all();
}

void ReplaySource::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (decoder_.joinable()) decoder_.join();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (FrameBuffer* buffer : ready_) ring_.give_back(buffer);
  ready_.clear();
  reader_.reset();
}

void ReplaySource::interrupt() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
  }
  changed_.notify_all();
}

std::string ReplaySource::description() const {
  return "replay of " + config_.path + ", " + std::to_string(format_.width) + "x" +
         std::to_string(format_.height) + " " + name_of(format_.format) + note_;
}

}  // namespace patternd
