// An owner of a file descriptor, and a bell that one thread rings for another's poll.
#pragma once

#include <cstdint>
#include <sys/eventfd.h>
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

 private:
  int fd_ = -1;
};

// Readable from ring() until clear().
class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  [[nodiscard]] int fd() const { return fd_.get(); }
  void ring() const {
    const std::uint64_t one = 1;
    // Fails only where the counter is full, and then the bell is ringing anyway.
    if (write(fd_.get(), &one, sizeof one) < 0) return;
  }
  void clear() const {
    std::uint64_t count = 0;
    if (read(fd_.get(), &count, sizeof count) < 0) return;
  }

 private:
  FileDescriptor fd_;
};

}  // namespace patternd
