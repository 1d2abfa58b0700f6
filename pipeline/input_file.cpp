#include "pipeline/input_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace patternd {
namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

tl::unexpected<Error> not_regular(const std::string& path, mode_t mode) {
  return fail(ErrorCode::kInvalidArgument,
              path + ": is " + kind_of(mode) + "; must be a regular file");
}

tl::unexpected<Error> cannot_open(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR)
    return fail(ErrorCode::kNotFound, path + ": no such file");
  return fail(ErrorCode::kIo, path + ": cannot be opened: " + std::strerror(error));
}

}  // namespace

Result<InputFile> InputFile::open(const std::string& path) {
  // Looked at before it is opened, since opening some devices does something already; and after,
  // since it may have been exchanged. O_NONBLOCK: a pipe that came in between is not waited for.
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return cannot_open(path, errno);
  if (!S_ISREG(status.st_mode)) return not_regular(path, status.st_mode);
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid() || ::fstat(file.get(), &status) != 0) return cannot_open(path, errno);
  if (!S_ISREG(status.st_mode)) return not_regular(path, status.st_mode);
  return InputFile(path, std::move(file), status.st_mode & ~static_cast<mode_t>(S_IFMT),
                   static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0)));
}

Result<std::size_t> InputFile::read_at(std::uint64_t offset, void* bytes, std::size_t size) const {
  if (offset >= size_bytes_) return 0U;
  for (;;) {
    const ssize_t got = ::pread(file_.get(), bytes, size, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR)
      return fail(ErrorCode::kIo, path_ + ": cannot be read: " + std::strerror(errno));
  }
}

Result<std::vector<std::uint8_t>> InputFile::read(std::size_t limit_bytes) const {
  if (size_bytes_ > limit_bytes) return too_large(path_, limit_bytes);
  std::vector<std::uint8_t> content;
  content.reserve(static_cast<std::size_t>(size_bytes_));
  // To the end, not to the size: a file may grow, and those of /proc say 0.
  std::vector<std::uint8_t> block(std::size_t{1} << 16);
  for (;;) {
    const ssize_t got = ::read(file_.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(ErrorCode::kIo, path_ + ": cannot be read: " + std::strerror(errno));
    if (got == 0) return content;
    if (static_cast<std::size_t>(got) > limit_bytes - content.size())
      return too_large(path_, limit_bytes);
    content.insert(content.end(), block.begin(), block.begin() + got);
  }
}

Result<std::vector<std::uint8_t>> read_file(const std::string& path, std::size_t limit_bytes) {
  const auto file = InputFile::open(path);
  if (!file) return tl::make_unexpected(file.error());
  return file->read(limit_bytes);
}

Result<void> keep_inputs(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    // Not the same where one of them is not there.
    std::error_code ignored;
    if (output.empty() || !std::filesystem::equivalent(output, input, ignored)) continue;
    return fail(ErrorCode::kInvalidArgument,
                output + ": would be written over, but it is also read here" +
                    (input == output ? "" : " (" + input + ")") + "; give another name");
  }
  return {};
}

tl::unexpected<Error> too_large(const std::string& name, std::size_t limit_bytes) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  return fail(ErrorCode::kInvalidArgument, name + ": is larger than " +
                                               std::to_string(limit_bytes / kMebibyte) +
                                               " MiB, the most that is read of such a file");
}

}  // namespace patternd
