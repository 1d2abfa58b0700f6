// An owner of a file descriptor, and writing through one.
#pragma once

#include <string_view>
#include <unistd.h>
#include <utility>

namespace patternd {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~FileDescriptor() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  // Closes now, so that a late write error is seen: false, and errno.
  [[nodiscard]] bool close_now() { return close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_ = -1;
};

// Writes all of `bytes`, in one call where the system takes them; false, and errno, where it fails.
[[nodiscard]] bool write_all(int fd, std::string_view bytes);

}  // namespace patternd
