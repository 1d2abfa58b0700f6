#include "pipeline/sources/recording.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>
#include <utility>

#include "pipeline/image_file.h"

namespace patternd {
namespace {

std::string size_text(int width, int height, PixelFormat format) {
  return std::to_string(width) + "x" + std::to_string(height) + " " + name_of(format);
}

Result<void> make_empty_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(ErrorCode::kIo, folder + ": the folder cannot be made: " + error.message());
  }
  const bool empty = std::filesystem::is_empty(folder, error);
  if (error) return fail(ErrorCode::kIo, folder + ": " + error.message());
  if (!empty) {
    return fail(ErrorCode::kInvalidArgument,
                folder + ": the folder is not empty; a recording needs a new or an empty one");
  }
  return {};
}

}  // namespace

Result<RecordingWriter> RecordingWriter::create(const std::string& folder, RecordingFormat format) {
  if (auto made = make_empty_folder(folder); !made) return tl::make_unexpected(made.error());
  const std::string path = folder + "/" + kIndexName;
  FileDescriptor index(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!index.valid())
    return fail(ErrorCode::kIo, path + ": cannot be made: " + std::strerror(errno));
  return RecordingWriter(folder, format, std::move(index));
}

RecordingWriter::RecordingWriter(std::string folder, RecordingFormat format, FileDescriptor index)
    : folder_(std::move(folder)), format_(format), index_(std::move(index)) {}

Result<void> RecordingWriter::check(const ImageView& luma, const FrameStamp& stamp) const {
  const std::string where = folder_ + ": frame " + std::to_string(count_);
  if (auto ok = check_view(luma, where); !ok) return ok;
  if (luma.format != PixelFormat::kGray8 && luma.format != PixelFormat::kGray16) {
    return fail(ErrorCode::kInvalidArgument,
                where + " is " + name_of(luma.format) + "; recordings hold gray8 or gray16");
  }
  if (count_ == 0) return {};
  if (luma.width != width_ || luma.height != height_ || luma.format != pixels_) {
    return fail(ErrorCode::kInvalidArgument,
                where + " is " + size_text(luma.width, luma.height, luma.format) +
                    ", the first frame " + size_text(width_, height_, pixels_) +
                    "; all must agree");
  }
  if (stamp.seq <= last_.seq || stamp.captured_mono_ns <= last_.captured_mono_ns) {
    return fail(ErrorCode::kInvalidArgument,
                where + " has seq " + std::to_string(stamp.seq) + " and captured_mono_ns " +
                    std::to_string(stamp.captured_mono_ns) + " after " + std::to_string(last_.seq) +
                    " and " + std::to_string(last_.captured_mono_ns) + "; both must rise");
  }
  return {};
}

// Writes one frame, as a picture of its own or into the video.
Result<void> RecordingWriter::write_frame(const ImageView& luma, const FrameStamp& stamp) {
  if (format_ == RecordingFormat::kVideo) {
    if (video_ == nullptr) {
      auto video = VideoWriter::create(folder_ + "/" + kVideoName, luma);
      if (!video) return tl::make_unexpected(video.error());
      video_ = std::move(*video);
      first_ns_ = stamp.captured_mono_ns;
    }
    return video_->write(luma, stamp.captured_mono_ns - first_ns_);
  }
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "/%08llu.%s", static_cast<unsigned long long>(count_),
                format_ == RecordingFormat::kPng ? "png" : "pgm");
  return write_image(folder_ + name.data(), luma);
}

Result<void> RecordingWriter::write(const ImageView& luma, const FrameStamp& stamp) {
  if (auto ok = check(luma, stamp); !ok) return ok;
  if (auto written = write_frame(luma, stamp); !written) return written;
  if (!write_all(index_.get(), recording_index_line(stamp))) {
    return fail(ErrorCode::kIo, folder_ + "/" + kIndexName + ": frame " + std::to_string(count_) +
                                    " cannot be entered: " + std::strerror(errno));
  }
  if (count_++ == 0) {
    width_ = luma.width;
    height_ = luma.height;
    pixels_ = luma.format;
  }
  last_ = stamp;
  return {};
}

Result<void> RecordingWriter::finish() {
  if (video_ != nullptr) {
    auto finished = std::exchange(video_, nullptr)->finish();
    if (!finished) return finished;
  }
  if (::syncfs(index_.get()) != 0)
    return fail(ErrorCode::kIo, folder_ + "/" + kIndexName + ": " + std::strerror(errno));
  return {};
}

}  // namespace patternd
