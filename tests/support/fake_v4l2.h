// A V4L2 driver in memory, for tests: it behaves as the kernel's does, and faults on demand.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/sources/v4l2_system.h"

namespace patternd::test {

// One camera at one path. Frames come when a test calls `capture`; everything else is done by the
// code under test through the system calls. Thread-safe.
class FakeV4l2 : public V4l2System {
 public:
  // How the camera is made; to be set before it is opened.
  std::string path = "/dev/fake0";
  std::uint32_t capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
  std::vector<std::uint32_t> formats = {V4L2_PIX_FMT_YUYV, V4L2_PIX_FMT_GREY};
  std::uint32_t width = 64;  // at first; all sizes up to max_width x max_height are taken
  std::uint32_t height = 48;
  std::uint32_t max_width = 1920;
  std::uint32_t max_height = 1080;
  std::uint32_t row_padding = 0;    // bytes behind each row
  std::uint32_t data_offset = 0;    // multi-planar: of the pixels within a buffer
  std::vector<double> rates;        // what it claims to offer
  double fps = 25;                  // the only rate; 0: the driver has no S_PARM
  bool takes_user_pointers = true;  // at REQBUFS
  bool takes_our_memory = true;     // at QBUF with USERPTR
  std::uint32_t most_buffers = 32;
  std::uint32_t stamp_flag = V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC;
  struct Control {
    v4l2_query_ext_ctrl info{};
    std::int64_t value = 0;
    std::vector<std::string> menu;  // an empty name: not on the menu
    int refuses_with = 0;           // the error number of setting it
    std::int64_t rounds_to = 0;     // > 0: the driver takes the multiple of it below
  };
  std::vector<Control> controls;
  // A request that fails with this error number, once it has been made `after` times.
  struct Fault {
    int error_number = 0;
    int after = 0;
  };
  std::map<unsigned long, Fault> faults;
  int open_fault = 0;
  int poll_events = 0;  // or'ed into what poll reports
  // Changes what S_FMT gives back.
  std::function<void(v4l2_format&)> twist_format;
  // What the camera's converter does; none: there is no decoder.
  std::function<bool(const std::uint8_t* data, std::size_t size, std::uint8_t* target,
                     std::size_t target_size)>
      decode;

  // A frame that the camera captures.
  struct Capture {
    std::uint8_t value = 0;  // of each byte
    std::uint32_t sequence = 0;
    std::int64_t stamp_ns = -1;  // -1: now
    bool damaged = false;
    int bytes_missing = 0;
    int bytes = -1;  // compressed formats: the frame's size
  };
  // Fills the oldest queued buffer; false where none is queued (the frame is lost).
  bool capture(const Capture& frame);
  // The camera is pulled out: every call fails with ENODEV until it is opened again.
  void unplug();
  [[nodiscard]] std::size_t queued() const;
  [[nodiscard]] std::size_t ready() const;
  [[nodiscard]] bool is_open() const;
  [[nodiscard]] bool streaming() const;
  [[nodiscard]] std::size_t mappings() const;
  [[nodiscard]] std::uint32_t memory() const;
  [[nodiscard]] std::int64_t control(const std::string& name) const;
  // Names of the controls in the order in which they were set.
  [[nodiscard]] std::vector<std::string> set_order() const;
  void add_control(const std::string& name, std::uint32_t type, std::int64_t low, std::int64_t high,
                   std::uint64_t step = 1);

  int open(const std::string& device) override;
  int close(int descriptor) override;
  int ioctl(int descriptor, unsigned long request, void* argument) override;
  int mmap(int descriptor, std::size_t length, std::int64_t offset, std::uint8_t** memory) override;
  int munmap(std::uint8_t* memory, std::size_t length) override;
  int poll(pollfd* descriptors, std::size_t count, int timeout_ms) override;
  Result<std::unique_ptr<V4l2Converter>> open_converter(int descriptor, const v4l2_format& from,
                                                        const v4l2_format& to) override;

 private:
  static constexpr int kDescriptor = 1'000'000;
  struct Buffer {
    std::vector<std::uint8_t> own;
    std::uint8_t* memory = nullptr;
    std::size_t length = 0;
    bool queued = false;
    v4l2_buffer filled{};
  };
  [[nodiscard]] bool multiplanar() const;
  [[nodiscard]] int request(unsigned long request, void* argument);
  int query_capability(v4l2_capability& capability) const;
  int format_request(unsigned long request, v4l2_format& format);
  int rate_request(unsigned long request, v4l2_streamparm& parameters) const;
  int query_control(v4l2_query_ext_ctrl& query) const;
  int query_menu(v4l2_querymenu& query) const;
  int set_controls(v4l2_ext_controls& request);
  int request_buffers(v4l2_requestbuffers& request);
  int query_buffer(v4l2_buffer& buffer);
  int queue_buffer(v4l2_buffer& buffer);
  int dequeue_buffer(v4l2_buffer& buffer);
  [[nodiscard]] std::uint32_t stride() const;
  [[nodiscard]] std::uint32_t image_bytes() const;

  mutable std::mutex mutex_;
  bool open_ = false;
  bool gone_ = false;
  bool streaming_ = false;
  std::uint32_t fourcc_ = 0;
  std::uint32_t memory_ = 0;
  std::vector<Buffer> buffers_;
  std::deque<std::uint32_t> queued_;
  std::deque<std::uint32_t> ready_;
  std::size_t mappings_ = 0;
  std::vector<std::string> set_order_;
};

}  // namespace patternd::test
