#include "pipeline/sources/v4l2_source.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pipeline/sources/v4l2_controls.h"
#include "pipeline/stage.h"

namespace patternd {
namespace {

// Buffers that the driver always has, beside those lent: one being filled, one next, one ready.
constexpr int kDriverBuffers = 3;
constexpr std::size_t kPageBytes = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

int milliseconds_until(std::int64_t deadline_ns) {
  const std::int64_t left_ns = deadline_ns - monotonic_ns();
  return left_ns <= 0 ? 0 : static_cast<int>((left_ns + 999'999) / 1'000'000);
}

}  // namespace

V4l2Source::V4l2Source(CameraConfig config, V4l2System& system)
    : config_(std::move(config)), system_(system) {
  wakeup_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

V4l2Source::~V4l2Source() {
  V4l2Source::stop();
  if (wakeup_ >= 0) ::close(wakeup_);
}

Result<SourceFormat> V4l2Source::start(FrameAllocator& allocator, int buffer_count) {
  stop();
  if (wakeup_ < 0) return fail(ErrorCode::kExhausted, "no eventfd to be had: too many open files");
  stable_path_ = stable_device_path(config_.device);
  auto device = V4l2Device::open(system_, config_.device);
  if (!device) return tl::make_unexpected(device.error());
  device_ = std::make_unique<V4l2Device>(std::move(*device));
  auto format = device_->configure(config_);
  Result<void> ready;
  if (!format) ready = tl::make_unexpected(format.error());
  if (ready) format_ = *format;
  if (ready) ready = set_controls(*device_, config_.controls);
  if (ready && format_.compressed) ready = open_converter();
  if (ready) ready = start_stream(allocator, buffer_count);
  if (!ready) {
    stop();
    return tl::make_unexpected(ready.error());
  }
  sequence_.restart();
  dropped_ = 0;
  foreign_clock_ = false;
  return SourceFormat{format_.width,  format_.height, format_.stride_bytes,
                      format_.format, format_.bayer,  format_.fps};
}

Result<void> V4l2Source::open_converter() {
  if (device_->multiplanar()) {
    return fail(ErrorCode::kUnsupported,
                config_.device + ": compressed formats of multi-planar devices are not decoded");
  }
  v4l2_format target{};
  target.type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
  target.fmt.pix.width = static_cast<std::uint32_t>(format_.width);
  target.fmt.pix.height = static_cast<std::uint32_t>(format_.height);
  target.fmt.pix.pixelformat = V4L2_PIX_FMT_YUV420;
  target.fmt.pix.field = V4L2_FIELD_NONE;
  target.fmt.pix.bytesperline = static_cast<std::uint32_t>(format_.stride_bytes);
  target.fmt.pix.sizeimage = static_cast<std::uint32_t>(format_.frame_bytes);
  auto converter = system_.open_converter(device_->descriptor(), device_->driver_format(), target);
  if (!converter) return tl::make_unexpected(converter.error());
  converter_ = std::move(*converter);
  return {};
}

// Our own buffers where the driver takes them, else its.
Result<void> V4l2Source::start_stream(FrameAllocator& allocator, int buffer_count) {
  const auto lent = static_cast<std::size_t>(buffer_count);
  if (converter_ == nullptr) {
    const std::size_t bytes = whole_pages(std::max(format_.frame_bytes, format_.image_bytes));
    if (auto made = stream_.prepare(allocator, bytes, lent + kDriverBuffers); !made) return made;
    auto started = stream_.start_user_pointers(*device_);
    path_ = CapturePath::kUserPointer;
    if (started || started.error().code != ErrorCode::kUnsupported) return started;
    why_copied_ = started.error().message;
  }
  path_ = converter_ != nullptr ? CapturePath::kDecoded : CapturePath::kOneCopy;
  if (auto made = stream_.prepare(allocator, format_.frame_bytes, lent); !made) return made;
  return stream_.start_mapped(*device_, kDriverBuffers + 1);
}

void V4l2Source::stop() {
  stream_.stop();
  converter_.reset();
  if (device_ != nullptr) device_.reset();
}

// Waits for a filled buffer. kNothing: the time is over, or somebody interrupted.
Result<V4l2Source::Waited> V4l2Source::wait(std::int64_t deadline_ns) {
  std::array<pollfd, 2> waited = {{{device_->descriptor(), POLLIN, 0}, {wakeup_, POLLIN, 0}}};
  const int ready = system_.poll(waited.data(), waited.size(), milliseconds_until(deadline_ns));
  if (ready == -EINTR) return Waited::kNothing;
  if (ready < 0) return tl::make_unexpected(device_->error("poll", -ready));
  if (ready == 0) return Waited::kNothing;
  if (waited[1].revents != 0) {
    std::uint64_t count = 0;
    static_cast<void>(!::read(wakeup_, &count, sizeof count));
    return Waited::kNothing;
  }
  return (waited[0].revents & POLLIN) != 0 ? Waited::kReady : Waited::kBroken;
}

// The next ready frame, or with `newest_only` the last one that is ready; nothing where there is
// none. Damaged ones and those overtaken go back to the driver and are counted.
Result<std::optional<V4l2Filled>> V4l2Source::take_frame(bool newest_only) {
  std::optional<V4l2Filled> best;
  for (;;) {
    auto filled = stream_.take();
    if (!filled) {
      if (best) break;  // what we have is good; the fault will be back
      return tl::make_unexpected(filled.error());
    }
    if (!*filled) break;
    const std::uint64_t lost = sequence_.lost_before((*filled)->sequence);
    dropped_ += lost;
    lost_ += lost;
    const bool whole = is_whole(**filled);
    std::optional<std::size_t> again;  // goes back to the driver
    if (!whole) {
      ++damaged_;
      again = (*filled)->index;
    } else if (best) {
      ++overtaken_;
      again = best->index;
    }
    if (whole) best = **filled;
    if (again) {
      ++dropped_;
      if (auto queued = stream_.queue(*again); !queued) return tl::make_unexpected(queued.error());
    }
    if (best && !newest_only) break;
  }
  return best;
}

bool V4l2Source::is_whole(const V4l2Filled& filled) const {
  if (filled.damaged) return false;
  if (format_.compressed) return filled.bytes > 0;
  // A data offset that would reach beyond the buffer is the driver's fault, too.
  const std::size_t room = std::max(format_.frame_bytes, format_.image_bytes);
  return filled.bytes >= format_.frame_bytes && filled.offset <= room - format_.frame_bytes;
}

Result<FrameBuffer*> V4l2Source::next(int timeout_ms, bool newest_only) {
  if (device_ == nullptr)
    return fail(ErrorCode::kDevice, config_.device + ": the camera is not started");
  const std::int64_t deadline_ns = monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
  const std::uint64_t damaged_before = damaged_;
  for (;;) {
    const auto waited = wait(deadline_ns);
    if (!waited) return tl::make_unexpected(waited.error());
    if (*waited == Waited::kNothing) break;
    auto filled = take_frame(newest_only);
    if (!filled) return tl::make_unexpected(filled.error());
    if (*filled) {
      auto buffer = hand_out(**filled);
      if (!buffer || *buffer != nullptr) return buffer;
    } else if (*waited == Waited::kBroken) {
      return fail(ErrorCode::kDevice, config_.device + ": the driver has ended the stream");
    }
    if (monotonic_ns() >= deadline_ns) break;
  }
  std::string text = config_.device + ": no frame within " + std::to_string(timeout_ms) + " ms";
  const std::uint64_t damaged = damaged_ - damaged_before;
  if (damaged > 0) text += ", only " + std::to_string(damaged) + " damaged ones";
  return fail(ErrorCode::kTimeout, text);
}

// The frame in one of our buffers; null where it could not be decoded.
Result<FrameBuffer*> V4l2Source::hand_out(const V4l2Filled& filled) {
  FrameBuffer* buffer = nullptr;
  if (path_ == CapturePath::kUserPointer) {
    buffer = stream_.user_buffer(filled.index);
  } else {
    auto copied = copy_out(filled);
    if (!copied || *copied == nullptr) return copied;
    buffer = *copied;
  }
  describe(*buffer, filled);
  return buffer;
}

Result<FrameBuffer*> V4l2Source::copy_out(const V4l2Filled& filled) {
  FrameBuffer* const buffer = stream_.take_free();
  Result<void> copied;
  if (buffer == nullptr) {
    ++overtaken_;
    ++dropped_;
    copied = fail(ErrorCode::kExhausted,
                  config_.device + ": all buffers are lent; release one before the next frame");
  } else if (converter_ == nullptr) {
    std::memcpy(buffer->data, stream_.mapped(filled.index) + filled.offset, format_.frame_bytes);
    ++copied_;
  } else {
    copied = converter_->convert(stream_.mapped(filled.index), filled.bytes, buffer->data,
                                 format_.frame_bytes);
  }
  auto queued = stream_.queue(filled.index);
  if (!copied && buffer != nullptr) {  // a frame that cannot be decoded is a damaged one
    stream_.give_back(buffer);
    ++damaged_;
    ++dropped_;
    if (queued) return nullptr;
  }
  if (!queued) {
    if (copied) stream_.give_back(buffer);
    return tl::make_unexpected(queued.error());
  }
  if (!copied) return tl::make_unexpected(copied.error());
  return buffer;
}

void V4l2Source::describe(FrameBuffer& buffer, const V4l2Filled& filled) {
  const std::size_t offset = path_ == CapturePath::kUserPointer ? filled.offset : 0;
  buffer.image = {buffer.data + offset, format_.frame_bytes, format_.width, format_.height,
                  format_.stride_bytes, format_.format,      format_.bayer};
  buffer.info = FrameInfo{};
  buffer.info.seq = next_seq_++;
  buffer.info.received_mono_ns = monotonic_ns();
  const std::uint64_t implausible = stamps_.implausible();
  buffer.info.captured_mono_ns =
      stamps_.captured_ns(filled.monotonic_ns, filled.queued_ns, buffer.info.received_mono_ns);
  foreign_clock_ = !filled.monotonic_ns;
  if (foreign_clock_ || stamps_.implausible() > implausible) ++restamped_;
  buffer.info.captured_unix_ns = buffer.info.captured_mono_ns + unix_minus_monotonic_ns();
  buffer.info.dropped = std::exchange(dropped_, 0);
  ++frames_;
}

void V4l2Source::release(FrameBuffer* buffer) { stream_.give_back(buffer); }

void V4l2Source::interrupt() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wakeup_, &one, sizeof one));
}

std::string V4l2Source::description() const {
  std::string text = "V4L2 camera " + (device_ != nullptr ? stable_path_ : config_.device);
  if (device_ == nullptr) return text + ", not started";
  text += " (" + device_->card() + "), " + std::to_string(format_.width) + "x" +
          std::to_string(format_.height) + " ";
  text += format_.compressed ? fourcc_name(format_.fourcc) + " decoded to YU12"
                             : name_of(format_.format, format_.bayer);
  if (format_.fps > 0) {
    std::array<char, 48> rate{};
    std::snprintf(rate.data(), rate.size(), " at %.4g frames a second", format_.fps);
    text += rate.data();
  }
  if (path_ == CapturePath::kOneCopy)
    text += ", copied once (the driver does not take our memory: " + why_copied_ + ")";
  if (foreign_clock_)
    text += ", stamped on arrival (the driver's stamps are not of the monotonic clock)";
  else if (stamps_.implausible() > 0)
    text += ", " + std::to_string(stamps_.implausible()) +
            " frames stamped on arrival (the driver's stamps could not be right)";
  return text;
}

SourceCounters V4l2Source::counters() const {
  SourceCounters counters;
  counters.frames = frames_;
  counters.lost = lost_;
  counters.damaged = damaged_;
  counters.overtaken = overtaken_;
  counters.restamped = restamped_;
  counters.copied = copied_;
  return counters;
}

}  // namespace patternd
