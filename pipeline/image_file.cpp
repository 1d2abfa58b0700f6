#include "pipeline/image_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "pipeline/image_codec.h"

namespace patternd {
namespace {

// Larger than any picture that kMaxImageSide and a sensible compression allow to be read in one
// piece.
constexpr std::size_t kMaxPictureBytes = std::size_t{1} << 30;

ErrorCode code_of_errno(int error) {
  return error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
}

// Closes on destruction.
class File {
 public:
  File(const std::string& path, int flags, int mode = 0)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }
  // Closes now, so that a late write error is seen.
  [[nodiscard]] bool close() {
    const int descriptor = std::exchange(descriptor_, -1);
    return ::close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

bool ends_with(const std::string& text, const char* end) {
  const std::size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

Result<void> write_all(int descriptor, const std::uint8_t* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t written = ::write(descriptor, data + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail(ErrorCode::kIo, std::strerror(errno));
    done += static_cast<std::size_t>(written);
  }
  return {};
}

// A device or pipe is written into, as it is.
Result<void> write_in_place(const std::string& path, const std::uint8_t* data, std::size_t size) {
  File file(path, O_WRONLY, 0);
  if (file.get() < 0 || !write_all(file.get(), data, size) || !file.close())
    return fail(code_of_errno(errno), path + ": cannot write: " + std::strerror(errno));
  return {};
}

// A file appears whole or not at all; where a link leads, there.
Result<void> write_whole(const std::string& name, const std::uint8_t* data, std::size_t size) {
  struct stat status {};
  const bool exists = ::stat(name.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return write_in_place(name, data, size);
  std::error_code unresolved;
  const auto target = std::filesystem::canonical(name, unresolved);
  const std::string path = exists && !unresolved ? target.string() : name;
  const std::string beside = path + ".part" + std::to_string(::getpid());
  const auto failed = [&](const char* what) {
    const int error = errno;
    ::unlink(beside.c_str());
    return fail(code_of_errno(error), name + ": cannot " + what + ": " + std::strerror(error));
  };
  File file(beside, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file.get() < 0) return failed("create");
  if (!write_all(file.get(), data, size)) return failed("write");
  if (!file.close()) return failed("write");
  if (::rename(beside.c_str(), path.c_str()) != 0) return failed("rename into place");
  return {};
}

}  // namespace

Result<std::vector<std::uint8_t>> read_file(const std::string& path, std::size_t limit_bytes) {
  File file(path, O_RDONLY);
  if (file.get() < 0) {
    return fail(code_of_errno(errno), path + ": cannot open: " + std::strerror(errno));
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kIo, path + ": is a folder; a file is expected");
  }
  std::vector<std::uint8_t> content;
  if (S_ISREG(status.st_mode) && status.st_size > 0) {
    content.reserve(std::min(static_cast<std::size_t>(status.st_size), limit_bytes));
  }
  std::vector<std::uint8_t> block(std::size_t{1} << 16);
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::kIo, path + ": cannot read: " + std::strerror(errno));
    if (got == 0) return content;
    if (content.size() + static_cast<std::size_t>(got) > limit_bytes) {
      return fail(ErrorCode::kExhausted,
                  path + ": is larger than " + std::to_string(limit_bytes) + " bytes");
    }
    content.insert(content.end(), block.begin(), block.begin() + got);
  }
}

Result<void> write_file(const std::string& path, const std::string& content) {
  return write_whole(path, reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
}

Result<Image> read_image(const std::string& path, ReadAs as) {
  auto content = read_file(path, kMaxPictureBytes);
  if (!content) return tl::make_unexpected(content.error());
  return decode_image(content->data(), content->size(), path, as);
}

Result<Image> decode_image(const std::uint8_t* data, std::size_t size, const std::string& name,
                           ReadAs as) {
  if (size == 0)
    return fail(ErrorCode::kParse, name + ": is empty; a PNG, JPEG or PNM is expected");
  auto decoded = is_png(data, size)    ? decode_png(data, size, name)
                 : is_jpeg(data, size) ? decode_jpeg(data, size, name)
                 : is_pnm(data, size)
                     ? decode_pnm(data, size, name)
                     : fail(ErrorCode::kParse,
                            name + ": is no picture; PNG, JPEG and PNM (P1 to P6) are read");
  if (!decoded || as == ReadAs::kAsIs || decoded->format() != PixelFormat::kRgb8) return decoded;
  return rgb_to_gray(decoded->view());
}

Result<void> write_image(const std::string& path, const ImageView& image) {
  if (auto ok = check_view(image, path); !ok) return ok;
  auto encoded =
      ends_with(path, ".pgm") || ends_with(path, ".ppm") ? encode_pnm(image) : encode_png(image);
  if (!encoded) return fail(encoded.error().code, path + ": " + encoded.error().message);
  return write_whole(path, encoded->data(), encoded->size());
}

Result<void> check_image_file_name(const std::string& path, bool colour) {
  const char* plain = colour ? ".ppm" : ".pgm";
  if (ends_with(path, ".png") || ends_with(path, plain)) return {};
  return fail(ErrorCode::kInvalidArgument,
              path + ": pictures are written as .png or " + plain + "; give the file such a name");
}

Result<void> write_plain_pnm(const std::string& path, const ImageView& image) {
  if (auto ok = check_view(image, path); !ok) return ok;
  auto text = encode_plain_pnm(image);
  if (!text) return fail(text.error().code, path + ": " + text.error().message);
  return write_file(path, *text);
}

}  // namespace patternd
