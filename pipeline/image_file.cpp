#include "pipeline/image_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/image_codec.h"
#include "pipeline/input_file.h"

namespace patternd {
namespace {

// Larger than any picture that kMaxImageSide and a sensible compression allow to be read in one
// piece.
constexpr std::size_t kMaxPictureBytes = std::size_t{1} << 30;

ErrorCode code_of_errno(int error) {
  return error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
}

bool ends_with(const std::string& text, const char* end) {
  const std::size_t length = std::strlen(end);
  return text.size() >= length && text.compare(text.size() - length, length, end) == 0;
}

// A device or pipe is written into, as it is.
Result<void> write_in_place(const std::string& path, std::string_view bytes) {
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid() || !write_all(file.get(), bytes) || !file.close_now())
    return fail(code_of_errno(errno), path + ": cannot write: " + std::strerror(errno));
  return {};
}

// A file appears whole or not at all; where a link leads, there.
Result<void> write_whole(const std::string& name, std::string_view bytes) {
  struct stat status {};
  const bool exists = ::stat(name.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return write_in_place(name, bytes);
  std::error_code unresolved;
  const auto target = std::filesystem::canonical(name, unresolved);
  const std::string path = exists && !unresolved ? target.string() : name;
  const std::string beside = path + ".part" + std::to_string(::getpid());
  const auto failed = [&](const char* what) {
    const int error = errno;
    ::unlink(beside.c_str());
    return fail(code_of_errno(error), name + ": cannot " + what + ": " + std::strerror(error));
  };
  FileDescriptor file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file.valid()) return failed("create");
  if (!write_all(file.get(), bytes)) return failed("write");
  if (!file.close_now()) return failed("write");
  if (::rename(beside.c_str(), path.c_str()) != 0) return failed("rename into place");
  return {};
}

}  // namespace

Result<void> write_file(const std::string& path, const std::string& content) {
  return write_whole(path, content);
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
  return write_whole(path, {reinterpret_cast<const char*>(encoded->data()), encoded->size()});
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
