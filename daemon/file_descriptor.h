// A bell that one thread rings for another's poll.
#pragma once

#include <cstdint>
#include <sys/eventfd.h>
#include <unistd.h>

#include "pipeline/file_descriptor.h"

namespace patternd {

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
