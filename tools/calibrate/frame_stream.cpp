#include "tools/calibrate/frame_stream.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "daemon/frame_client.h"
#include "pipeline/frame.h"
#include "pipeline/sources/aligned_frames.h"
#include "pipeline/sources/frame_reader.h"
#include "pipeline/sources/recording_index.h"
#include "pipeline/sources/replay_source.h"

namespace patternd::calibrate {
namespace {

namespace files = std::filesystem;

constexpr int kBufferCount = 2;
constexpr int kWaitMs = 30'000;
constexpr int kServiceWaitMs = 10'000;

class Clock {
 public:
  double seconds(std::int64_t mono_ns) {
    if (!first_ns_) first_ns_ = mono_ns;
    return static_cast<double>(mono_ns - *first_ns_) / 1e9;
  }

 private:
  std::optional<std::int64_t> first_ns_;
};

class RecordedStream : public FrameStream {
 public:
  explicit RecordedStream(const CameraConfig& config) : source_(config) {}
  ~RecordedStream() override { give_back(); }
  RecordedStream(const RecordedStream&) = delete;
  RecordedStream& operator=(const RecordedStream&) = delete;

  Result<void> open() {
    const auto format = source_.start(memory_, kBufferCount);
    if (!format) return tl::make_unexpected(format.error());
    auto scratch = Image::create(format->width, format->height, luma_format(format->format));
    if (!scratch) return tl::make_unexpected(scratch.error());
    scratch_ = std::move(*scratch);
    return {};
  }

  Result<std::optional<StreamFrame>> next() override {
    give_back();
    auto buffer = source_.next(kWaitMs, false);
    if (!buffer) {
      if (buffer.error().code == ErrorCode::kEndOfStream) return std::optional<StreamFrame>();
      return tl::make_unexpected(buffer.error());
    }
    lent_ = *buffer;
    return std::optional<StreamFrame>({lent_->info.seq,
                                       clock_.seconds(lent_->info.captured_mono_ns),
                                       to_luma(lent_->image, scratch_.view())});
  }
  [[nodiscard]] bool is_live() const override { return false; }

 private:
  void give_back() {
    if (lent_ != nullptr) source_.release(std::exchange(lent_, nullptr));
  }

  AlignedFrameAllocator memory_;
  ReplaySource source_;
  Image scratch_;
  FrameBuffer* lent_ = nullptr;
  Clock clock_;
};

class ServiceStream : public FrameStream {
 public:
  explicit ServiceStream(FrameClient frames) : frames_(std::move(frames)) {}

  Result<std::optional<StreamFrame>> next() override {
    auto frame = frames_.next(kServiceWaitMs);
    if (!frame) {
      if (frame.error().code != ErrorCode::kTimeout) return tl::make_unexpected(frame.error());
      const std::string& lost = frames_.camera_lost();
      return fail(ErrorCode::kTimeout, frames_.description() + ": no frame for 10 s" +
                                           (lost.empty() ? "; its camera is silent" : "; " + lost));
    }
    if (!*frame) return std::optional<StreamFrame>();
    frame_ = std::move(**frame);
    return std::optional<StreamFrame>({frame_.stamp.seq,
                                       clock_.seconds(frame_.stamp.captured_mono_ns),
                                       std::as_const(frame_.luma).view()});
  }
  [[nodiscard]] bool is_live() const override { return true; }

 private:
  FrameClient frames_;
  ReceivedFrame frame_;
  Clock clock_;
};

std::size_t pictures_in(const std::string& folder) {
  std::error_code ignored;
  std::size_t count = 0;
  for (const auto& entry : files::directory_iterator(folder, ignored))
    count += is_picture_name(entry.path().filename().string()) ? 1 : 0;
  return count;
}

// Something that has a name in the file system is not an address.
std::optional<Address> service_address(const std::string& name) {
  std::error_code ignored;
  const files::file_status status = files::status(name, ignored);
  const bool is_socket = status.type() == files::file_type::socket;
  const bool says_port = name.find(':') != std::string::npos && name.find('/') == std::string::npos;
  if (!is_socket && (files::exists(status) || !says_port)) return std::nullopt;
  const auto address = parse_service_address(is_socket ? files::absolute(name).string() : name);
  return address ? std::optional<Address>(*address) : std::nullopt;
}

}  // namespace

bool is_stream(const std::string& name, std::size_t most_pictures) {
  std::error_code ignored;
  if (files::is_directory(name, ignored))
    return files::exists(name + "/" + kIndexName, ignored) || pictures_in(name) > most_pictures;
  if (files::is_regular_file(name, ignored)) return !is_picture_name(name);
  return service_address(name).has_value();
}

Result<std::unique_ptr<FrameStream>> open_stream(const std::string& name) {
  if (const auto address = service_address(name)) {
    auto frames = FrameClient::request(*address, {{"command", "record"}});
    if (!frames) return tl::make_unexpected(frames.error());
    return std::make_unique<ServiceStream>(std::move(*frames));
  }
  CameraConfig config;
  config.path = name;
  config.realtime = false;
  auto stream = std::make_unique<RecordedStream>(config);
  if (auto opened = stream->open(); !opened) return tl::make_unexpected(opened.error());
  return stream;
}

}  // namespace patternd::calibrate
