// The system calls that V4L2 capture is made of, as a table, so that tests can put a driver of
// their own behind them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <linux/videodev2.h>
#include <memory>
#include <poll.h>
#include <string>

#include "pipeline/result.h"

namespace patternd {

// Decodes frames of a compressed format to YU12 (libv4lconvert).
class V4l2Converter {
 public:
  virtual ~V4l2Converter() = default;
  // Decodes one frame of `size` bytes into `target`. kDevice: the data is damaged; nothing is lost
  // but this frame.
  [[nodiscard]] virtual Result<void> convert(std::uint8_t* data, std::size_t size,
                                             std::uint8_t* target, std::size_t target_size) = 0;
};

// Each call does what the system's of that name does; it returns 0 or more, or the negative error
// number. Interrupted calls (EINTR) are made again within, except poll.
class V4l2System {
 public:
  virtual ~V4l2System() = default;
  virtual int open(const std::string& path) = 0;  // for reading and writing, never blocking
  virtual int close(int descriptor) = 0;
  virtual int ioctl(int descriptor, unsigned long request, void* argument) = 0;
  virtual int mmap(int descriptor, std::size_t length, std::int64_t offset,
                   std::uint8_t** memory) = 0;
  virtual int munmap(std::uint8_t* memory, std::size_t length) = 0;
  virtual int poll(pollfd* descriptors, std::size_t count, int timeout_ms) = 0;
  // A decoder from one single-planar format to another of the same size.
  [[nodiscard]] virtual Result<std::unique_ptr<V4l2Converter>> open_converter(
      int descriptor, const v4l2_format& from, const v4l2_format& to) = 0;
};

// The real ones.
[[nodiscard]] V4l2System& real_v4l2_system();

// libv4lconvert's decoder for the device that `descriptor` is in `system`, which must outlive it.
[[nodiscard]] Result<std::unique_ptr<V4l2Converter>> open_libv4l_converter(V4l2System& system,
                                                                           int descriptor,
                                                                           const v4l2_format& from,
                                                                           const v4l2_format& to);

}  // namespace patternd
