#include "pipeline/sources/v4l2_system.h"

#include <cerrno>
#include <fcntl.h>
#include <libv4lconvert.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <libv4l-plugin.h>

namespace patternd {
namespace {

class LibV4lConverter : public V4l2Converter {
 public:
  LibV4lConverter(v4lconvert_data* data, const v4l2_format& from, const v4l2_format& to)
      : data_(data), from_(from), to_(to) {}
  ~LibV4lConverter() override { v4lconvert_destroy(data_); }
  LibV4lConverter(const LibV4lConverter&) = delete;
  LibV4lConverter& operator=(const LibV4lConverter&) = delete;

  Result<void> convert(std::uint8_t* data, std::size_t size, std::uint8_t* target,
                       std::size_t target_size) override {
    const int outcome = v4lconvert_convert(data_, &from_, &to_, data, static_cast<int>(size),
                                           target, static_cast<int>(target_size));
    if (outcome < 0) return fail(ErrorCode::kDevice, v4lconvert_get_error_message(data_));
    return {};
  }

 private:
  v4lconvert_data* data_;
  v4l2_format from_;
  v4l2_format to_;
};

// The library asks the device about itself through this.
int library_ioctl(void* system, int descriptor, unsigned long request, void* argument) {
  const int outcome = static_cast<V4l2System*>(system)->ioctl(descriptor, request, argument);
  if (outcome >= 0) return outcome;
  errno = -outcome;
  return -1;
}

class RealV4l2System : public V4l2System {
 public:
  int open(const std::string& path) override {
    int descriptor = -1;
    do {
      descriptor = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    } while (descriptor < 0 && errno == EINTR);
    return descriptor < 0 ? -errno : descriptor;
  }
  // Not again on EINTR: the descriptor is gone by then.
  int close(int descriptor) override { return ::close(descriptor) < 0 ? -errno : 0; }
  int ioctl(int descriptor, unsigned long request, void* argument) override {
    int outcome = -1;
    do {
      outcome = ::ioctl(descriptor, request, argument);
    } while (outcome < 0 && errno == EINTR);
    return outcome < 0 ? -errno : outcome;
  }
  int mmap(int descriptor, std::size_t length, std::int64_t offset,
           std::uint8_t** memory) override {
    void* const mapped = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                                static_cast<off_t>(offset));
    if (mapped == MAP_FAILED) return -errno;
    *memory = static_cast<std::uint8_t*>(mapped);
    return 0;
  }
  int munmap(std::uint8_t* memory, std::size_t length) override {
    return ::munmap(memory, length) < 0 ? -errno : 0;
  }
  int poll(pollfd* descriptors, std::size_t count, int timeout_ms) override {
    const int ready = ::poll(descriptors, static_cast<nfds_t>(count), timeout_ms);
    return ready < 0 ? -errno : ready;
  }
  Result<std::unique_ptr<V4l2Converter>> open_converter(int descriptor, const v4l2_format& from,
                                                        const v4l2_format& to) override {
    return open_libv4l_converter(*this, descriptor, from, to);
  }
};

}  // namespace

Result<std::unique_ptr<V4l2Converter>> open_libv4l_converter(V4l2System& system, int descriptor,
                                                             const v4l2_format& from,
                                                             const v4l2_format& to) {
  static const libv4l_dev_ops operations = [] {
    libv4l_dev_ops ops{};
    ops.ioctl = library_ioctl;
    return ops;
  }();
  v4lconvert_data* const data = v4lconvert_create_with_dev_ops(descriptor, &system, &operations);
  if (data == nullptr) return fail(ErrorCode::kExhausted, "libv4lconvert cannot be started");
  return std::make_unique<LibV4lConverter>(data, from, to);
}

V4l2System& real_v4l2_system() {
  static RealV4l2System system;
  return system;
}

}  // namespace patternd
