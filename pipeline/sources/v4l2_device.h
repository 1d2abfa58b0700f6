// An opened V4L2 capture device: what it is called, how its errors read, and the format and rate
// that it has been set to.
#pragma once

#include <cstdint>
#include <linux/videodev2.h>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/frame.h"
#include "pipeline/result.h"
#include "pipeline/source.h"
#include "pipeline/sources/v4l2_system.h"

namespace patternd {

// The link under /dev/v4l/by-path or by-id that leads to `device` (the one named by its port
// first), or `device` itself where there is none. `links` is /dev/v4l, or a test's.
[[nodiscard]] std::string stable_device_path(const std::string& device,
                                             const std::string& links = "/dev/v4l");

// The name of a pixel format as in V4L2's documentation: "GREY", "Y10", "MJPG"; unprintable
// characters become '.'.
[[nodiscard]] std::string fourcc_name(std::uint32_t fourcc);

// What the driver has set.
struct V4l2Format {
  std::uint32_t fourcc = 0;
  bool compressed = false;  // frames go through V4l2Converter and come out as YU12
  RawFormat format = RawFormat::kGrey;
  BayerOrder bayer = BayerOrder::kRggb;
  int width = 0;
  int height = 0;
  std::size_t stride_bytes = 0;  // of a frame as we hand it out
  std::size_t frame_bytes = 0;   // least that a whole frame takes; of an uncompressed one
  std::size_t image_bytes = 0;   // what the driver asks of a buffer
  double fps = 0;                // 0: the driver does not say
};

class V4l2Device {
 public:
  // Opens `path` and makes sure that it captures video by streaming. Errors say what to do:
  // kNotFound (no such device; which there are), kDevice (no permission, busy, gone), kUnsupported.
  [[nodiscard]] static Result<V4l2Device> open(V4l2System& system, const std::string& path);
  V4l2Device(V4l2Device&& other) noexcept;
  V4l2Device& operator=(V4l2Device&& other) noexcept;
  ~V4l2Device();

  // Negotiates format, size and rate as `config` asks, and checks what the driver made of it.
  // `auto` prefers, of those offered: mono, then formats with a luma plane, packed, RGB, Bayer,
  // compressed. Errors: kInvalidArgument with what the driver offers.
  [[nodiscard]] Result<V4l2Format> configure(const CameraConfig& config);

  // One ioctl; 0 or the negative error number.
  [[nodiscard]] int call(unsigned long request, void* argument) const {
    return system_->ioctl(descriptor_, request, argument);
  }
  // An Error about a call that gave `-error_number`, with what can be done about it:
  //   "/dev/video0: VIDIOC_STREAMON: No space left on device: …"
  [[nodiscard]] Error error(const char* what, int error_number) const;

  [[nodiscard]] V4l2System& system() const { return *system_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& card() const { return card_; }
  [[nodiscard]] bool multiplanar() const { return multiplanar_; }
  [[nodiscard]] std::uint32_t buffer_type() const {
    return multiplanar_ ? V4L2_BUF_TYPE_VIDEO_CAPTURE_MPLANE : V4L2_BUF_TYPE_VIDEO_CAPTURE;
  }
  // The format last set, as the driver gave it back.
  [[nodiscard]] const v4l2_format& driver_format() const { return driver_format_; }

 private:
  V4l2Device(V4l2System& system, int descriptor, std::string path)
      : system_(&system), descriptor_(descriptor), path_(std::move(path)) {}
  [[nodiscard]] Result<void> identify();
  [[nodiscard]] std::vector<std::uint32_t> offered_formats() const;
  [[nodiscard]] std::string offered_sizes(std::uint32_t fourcc) const;
  [[nodiscard]] std::string offered_rates() const;
  [[nodiscard]] Result<std::uint32_t> choose_fourcc(const std::string& wanted) const;
  [[nodiscard]] Result<V4l2Format> set_format(std::uint32_t fourcc, int width, int height);
  [[nodiscard]] Result<V4l2Format> check_layout(std::uint32_t fourcc) const;
  [[nodiscard]] Result<double> set_rate(double fps);

  V4l2System* system_;
  int descriptor_ = -1;
  std::string path_;
  std::string card_;
  bool multiplanar_ = false;
  v4l2_format driver_format_{};
};

}  // namespace patternd
