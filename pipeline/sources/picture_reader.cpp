// Folders of pictures.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>
#include <vector>

#include "pipeline/image_file.h"
#include "pipeline/sources/frame_reader.h"

namespace patternd {
namespace {

constexpr std::array<const char*, 6> kEndings = {".png", ".pgm", ".ppm", ".pnm", ".jpg", ".jpeg"};

std::string size_text(int width, int height, PixelFormat pixels) {
  return std::to_string(width) + "x" + std::to_string(height) + " " + name_of(pixels);
}

void copy_rows(const ImageView& image, std::uint8_t* pixels, std::size_t stride_bytes) {
  const std::size_t row = static_cast<std::size_t>(image.width) * bytes_per_pixel(image.format);
  for (int y = 0; y < image.height; ++y)
    std::memcpy(pixels + static_cast<std::size_t>(y) * stride_bytes, image.row_bytes(y), row);
}

SourceFormat format_of(const Image& picture) {
  SourceFormat format;
  format.width = picture.width();
  format.height = picture.height();
  format.format = picture.format() == PixelFormat::kGray16 ? RawFormat::kY16 : RawFormat::kGrey;
  format.stride_bytes = aligned_stride_bytes(format.format, format.width);
  return format;
}

class PictureReader : public FrameReader {
 public:
  PictureReader(std::vector<std::string> files, Image first)
      : files_(std::move(files)), first_(std::move(first)), format_(format_of(first_)) {}

  const SourceFormat& format() const override { return format_; }

  Result<bool> read(std::uint8_t* pixels) override {
    if (next_ == files_.size()) return false;
    if (next_ == 0) {  // in memory since the folder was opened
      copy_rows(first_.view(), pixels, format_.stride_bytes);
      ++next_;
      return true;
    }
    const std::string& file = files_[next_];
    const auto picture = read_image(file);
    if (!picture) return tl::make_unexpected(picture.error());
    if (picture->width() != first_.width() || picture->height() != first_.height() ||
        picture->format() != first_.format()) {
      return fail(ErrorCode::kInvalidArgument,
                  file + ": is " +
                      size_text(picture->width(), picture->height(), picture->format()) + ", but " +
                      files_.front() + " is " +
                      size_text(first_.width(), first_.height(), first_.format()) +
                      "; all pictures of a folder must agree");
    }
    copy_rows(picture->view(), pixels, format_.stride_bytes);
    ++next_;
    return true;
  }

  Result<void> rewind() override {
    next_ = 0;
    return {};
  }

 private:
  std::vector<std::string> files_;
  Image first_;
  SourceFormat format_;
  std::size_t next_ = 0;
};

Result<std::vector<std::string>> list_pictures(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.front() != '.' && is_picture_name(name)) names.push_back(name);
  }
  if (error) return fail(ErrorCode::kIo, folder + ": cannot be listed: " + error.message());
  if (names.empty()) {
    return fail(ErrorCode::kNotFound, folder +
                                          ": holds no pictures (.png, .pgm, .ppm, .pnm, .jpg, "
                                          ".jpeg) and no recording");
  }
  std::sort(names.begin(), names.end());
  for (std::string& name : names) name.insert(0, folder + "/");
  return names;
}

}  // namespace

bool is_picture_name(const std::string& name) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kEndings.begin(), kEndings.end(), [&lower](const std::string& ending) {
    return lower.size() > ending.size() &&
           lower.compare(lower.size() - ending.size(), ending.size(), ending) == 0;
  });
}

std::size_t aligned_stride_bytes(RawFormat format, int width) {
  return (min_stride_bytes(format, width) + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

Result<std::unique_ptr<FrameReader>> open_pictures(const std::string& path, std::size_t limit) {
  std::vector<std::string> files = {path};
  if (std::filesystem::is_directory(path)) {
    auto listed = list_pictures(path);
    if (!listed) return tl::make_unexpected(listed.error());
    files = std::move(*listed);
  }
  if (limit != std::numeric_limits<std::size_t>::max() && files.size() < limit) {
    return fail(ErrorCode::kParse, path + ": holds " + std::to_string(files.size()) +
                                       " pictures, but its index has " + std::to_string(limit) +
                                       " lines; each line needs its picture");
  }
  files.resize(std::min(files.size(), limit));
  auto first = read_image(files.front());
  if (!first) return tl::make_unexpected(first.error());
  return std::make_unique<PictureReader>(std::move(files), std::move(*first));
}

}  // namespace patternd
