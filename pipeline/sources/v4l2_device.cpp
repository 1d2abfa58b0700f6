#include "pipeline/sources/v4l2_device.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "pipeline/sources/v4l2_error.h"
#include "pipeline/sources/v4l2_formats.h"
#include "pipeline/yaml_reader.h"

namespace patternd {
namespace {

// Enumerations that a broken driver never ends.
constexpr std::uint32_t kMaxEnumerated = 256;
constexpr std::uint64_t kMaxImageBytes = 1ULL << 30;
// How far a driver's rate may be from the one asked for: 29.97 for 30.
constexpr double kRateTolerance = 0.01;

std::string size_text(std::uint32_t width, std::uint32_t height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

std::string rate_text(double fps) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", fps);
  return text.data();
}

// A format's fields, the same for both kinds of device.
struct Layout {
  std::uint32_t width;
  std::uint32_t height;
  std::uint32_t fourcc;
  std::uint32_t field;
  std::uint32_t stride_bytes;
  std::uint32_t image_bytes;
  std::uint32_t planes;
};

Layout layout_of(const v4l2_format& format, bool multiplanar) {
  if (multiplanar) {
    const v4l2_pix_format_mplane& pix = format.fmt.pix_mp;
    return {pix.width,
            pix.height,
            pix.pixelformat,
            pix.field,
            pix.plane_fmt[0].bytesperline,
            pix.plane_fmt[0].sizeimage,
            pix.num_planes};
  }
  const v4l2_pix_format& pix = format.fmt.pix;
  return {pix.width, pix.height, pix.pixelformat, pix.field, pix.bytesperline, pix.sizeimage, 1};
}

bool gives_half_pictures(std::uint32_t field) {
  return field == V4L2_FIELD_TOP || field == V4L2_FIELD_BOTTOM || field == V4L2_FIELD_ALTERNATE;
}

}  // namespace

std::string stable_device_path(const std::string& device, const std::string& links) {
  std::error_code error;
  const auto target = std::filesystem::canonical(device, error);
  if (error) return device;
  for (const char* folder : {"/by-path", "/by-id"}) {
    std::vector<std::string> found;
    std::filesystem::directory_iterator entry(links + folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      std::error_code broken;
      if (std::filesystem::canonical(entry->path(), broken) == target && !broken)
        found.push_back(entry->path().string());
    }
    if (!found.empty()) return *std::min_element(found.begin(), found.end());
  }
  return device;
}

Result<V4l2Device> V4l2Device::open(V4l2System& system, const std::string& path) {
  const int descriptor = system.open(path);
  if (descriptor < 0) return tl::make_unexpected(v4l2_open_error(path, -descriptor));
  V4l2Device device(system, descriptor, path);
  if (auto known = device.identify(); !known) return tl::make_unexpected(known.error());
  return device;
}

V4l2Device::V4l2Device(V4l2Device&& other) noexcept
    : system_(other.system_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      card_(std::move(other.card_)),
      multiplanar_(other.multiplanar_),
      driver_format_(other.driver_format_) {}

V4l2Device& V4l2Device::operator=(V4l2Device&& other) noexcept {
  if (this != &other) {
    if (descriptor_ >= 0) system_->close(descriptor_);
    system_ = other.system_;
    descriptor_ = std::exchange(other.descriptor_, -1);
    path_ = std::move(other.path_);
    card_ = std::move(other.card_);
    multiplanar_ = other.multiplanar_;
    driver_format_ = other.driver_format_;
  }
  return *this;
}

V4l2Device::~V4l2Device() {
  if (descriptor_ >= 0) system_->close(descriptor_);
}

Error V4l2Device::error(const char* what, int error_number) const {
  return v4l2_error(path_, what, error_number);
}

// What the device is, and whether it is for us.
Result<void> V4l2Device::identify() {
  v4l2_capability capability{};
  if (const int got = call(VIDIOC_QUERYCAP, &capability); got < 0) {
    if (got != -ENOTTY && got != -EINVAL)
      return tl::make_unexpected(error("VIDIOC_QUERYCAP", -got));
    return fail(ErrorCode::kUnsupported, path_ + ": is no V4L2 device");
  }
  const char* const card = reinterpret_cast<const char*>(capability.card);
  card_.assign(card, strnlen(card, sizeof capability.card));
  const std::uint32_t can = (capability.capabilities & V4L2_CAP_DEVICE_CAPS) != 0
                                ? capability.device_caps
                                : capability.capabilities;
  multiplanar_ = (can & V4L2_CAP_VIDEO_CAPTURE) == 0;
  if (multiplanar_ && (can & V4L2_CAP_VIDEO_CAPTURE_MPLANE) == 0) {
    return fail(ErrorCode::kUnsupported,
                path_ + ": " + card_ +
                    " captures no video through this node; a camera has several nodes, of which "
                    "the first (…-video-index0) gives pictures");
  }
  if ((can & V4L2_CAP_STREAMING) == 0)
    return fail(ErrorCode::kUnsupported, path_ + ": " + card_ + " cannot stream into memory");
  return {};
}

std::vector<std::uint32_t> V4l2Device::offered_formats() const {
  std::vector<std::uint32_t> offered;
  for (std::uint32_t i = 0; i < kMaxEnumerated; ++i) {
    v4l2_fmtdesc entry{};
    entry.index = i;
    entry.type = buffer_type();
    if (call(VIDIOC_ENUM_FMT, &entry) < 0) break;
    offered.push_back(entry.pixelformat);
  }
  return offered;
}

// The sizes of a format as text; empty where the driver does not tell.
std::string V4l2Device::offered_sizes(std::uint32_t fourcc) const {
  std::string text;
  for (std::uint32_t i = 0; i < kMaxEnumerated; ++i) {
    v4l2_frmsizeenum entry{};
    entry.index = i;
    entry.pixel_format = fourcc;
    if (call(VIDIOC_ENUM_FRAMESIZES, &entry) < 0) break;
    if (entry.type == V4L2_FRMSIZE_TYPE_DISCRETE) {
      text += " " + size_text(entry.discrete.width, entry.discrete.height);
      continue;
    }
    const v4l2_frmsize_stepwise& s = entry.stepwise;
    text += " " + size_text(s.min_width, s.min_height) + " to " +
            size_text(s.max_width, s.max_height) + " in steps of " +
            size_text(s.step_width, s.step_height);
    break;
  }
  return text;
}

Result<std::uint32_t> V4l2Device::choose_fourcc(const std::string& wanted) const {
  const std::vector<std::uint32_t> offered = offered_formats();
  const auto has = [&offered](std::uint32_t fourcc) {
    return std::find(offered.begin(), offered.end(), fourcc) != offered.end();
  };
  std::string names;
  for (const std::uint32_t fourcc : offered) names += " " + fourcc_name(fourcc);
  if (wanted == "auto") {
    for (const V4l2PixelFormat& f : kV4l2PixelFormats)
      if (has(f.fourcc)) return f.fourcc;
    for (const std::uint32_t fourcc : kV4l2CompressedFormats)
      if (has(fourcc)) return fourcc;
    return fail(ErrorCode::kUnsupported,
                path_ + ": " + card_ + " offers none of the formats that patternd takes, only:" +
                    (names.empty() ? " nothing" : names));
  }
  const auto fourcc = fourcc_of(wanted);
  if (!fourcc) {
    std::vector<std::string> known = raw_format_names();
    known.emplace_back("MJPG");
    known.emplace_back("auto");
    const std::string nearest = nearest_word(wanted, known);
    return fail(ErrorCode::kInvalidArgument,
                path_ + ": camera.format " + wanted + " is not known" +
                    (nearest.empty() ? "" : "; did you mean " + nearest + "?") +
                    "; this camera offers:" + names);
  }
  if (!offered.empty() && !has(*fourcc)) {
    return fail(ErrorCode::kInvalidArgument,
                path_ + ": " + card_ + " does not offer " + wanted + "; it offers:" + names);
  }
  return *fourcc;
}

Result<V4l2Format> V4l2Device::configure(const CameraConfig& config) {
  auto fourcc = choose_fourcc(config.format);
  if (!fourcc) return tl::make_unexpected(fourcc.error());
  auto format = set_format(*fourcc, config.width, config.height);
  if (!format) return format;
  auto fps = set_rate(config.fps);
  if (!fps) return tl::make_unexpected(fps.error());
  format->fps = *fps;
  return format;
}

// Asks for a format; width or height 0: as the driver has it now.
Result<V4l2Format> V4l2Device::set_format(std::uint32_t fourcc, int width, int height) {
  v4l2_format format{};
  format.type = buffer_type();
  if (const int got = call(VIDIOC_G_FMT, &format); got < 0)
    return tl::make_unexpected(error("VIDIOC_G_FMT", -got));
  const Layout now = layout_of(format, multiplanar_);
  const std::uint32_t w = width > 0 ? static_cast<std::uint32_t>(width) : now.width;
  const std::uint32_t h = height > 0 ? static_cast<std::uint32_t>(height) : now.height;
  format = v4l2_format{};
  format.type = buffer_type();
  if (multiplanar_) {
    format.fmt.pix_mp.width = w;
    format.fmt.pix_mp.height = h;
    format.fmt.pix_mp.pixelformat = fourcc;
    format.fmt.pix_mp.field = V4L2_FIELD_NONE;
    format.fmt.pix_mp.num_planes = 1;
  } else {
    format.fmt.pix.width = w;
    format.fmt.pix.height = h;
    format.fmt.pix.pixelformat = fourcc;
    format.fmt.pix.field = V4L2_FIELD_NONE;
  }
  if (const int got = call(VIDIOC_S_FMT, &format); got < 0)
    return tl::make_unexpected(error("VIDIOC_S_FMT", -got));
  driver_format_ = format;
  const Layout set = layout_of(format, multiplanar_);
  if (set.fourcc != fourcc || (width > 0 && set.width != w) || (height > 0 && set.height != h)) {
    const std::string sizes = offered_sizes(fourcc);
    return fail(ErrorCode::kInvalidArgument,
                path_ + ": asked for " + size_text(w, h) + " " + fourcc_name(fourcc) +
                    ", but the driver set " + size_text(set.width, set.height) + " " +
                    fourcc_name(set.fourcc) +
                    (sizes.empty() ? "" : "; sizes of " + fourcc_name(fourcc) + ":" + sizes));
  }
  return check_layout(fourcc);
}

// What the driver set must make sense before sizes are multiplied.
Result<V4l2Format> V4l2Device::check_layout(std::uint32_t fourcc) const {
  const Layout set = layout_of(driver_format_, multiplanar_);
  const auto refuse = [this, &set](const std::string& why) {
    return fail(ErrorCode::kUnsupported, path_ + ": the driver set " +
                                             size_text(set.width, set.height) + " " +
                                             fourcc_name(set.fourcc) + " " + why);
  };
  if (set.width < 1 || set.height < 1 || set.width > kMaxImageSide || set.height > kMaxImageSide)
    return refuse("; both sides must be 1 to " + std::to_string(kMaxImageSide));
  if (set.planes != 1)
    return refuse("in " + std::to_string(set.planes) + " separate planes; patternd takes one");
  if (gives_half_pictures(set.field))
    return refuse("as single fields of an interlaced picture; patternd takes whole ones");
  V4l2Format format;
  format.fourcc = fourcc;
  format.width = static_cast<int>(set.width);
  format.height = static_cast<int>(set.height);
  format.image_bytes = set.image_bytes;
  const V4l2PixelFormat* const plain = find_pixel_format(fourcc);
  format.compressed = plain == nullptr;
  format.format = plain != nullptr ? plain->format : RawFormat::kYu12;
  format.bayer = plain != nullptr ? plain->bayer : BayerOrder::kRggb;
  const std::size_t least = min_stride_bytes(format.format, format.width);
  // Some drivers leave the stride at 0 where rows follow each other without a gap.
  format.stride_bytes = format.compressed || set.stride_bytes == 0 ? least : set.stride_bytes;
  const std::uint64_t most = std::uint64_t{format.stride_bytes} * set.height * 2;
  if (format.stride_bytes < least || most > kMaxImageBytes || set.image_bytes > kMaxImageBytes) {
    return refuse("with rows of " + std::to_string(set.stride_bytes) + " bytes and " +
                  std::to_string(set.image_bytes) + " bytes a frame, which cannot be right");
  }
  format.frame_bytes = frame_bytes(format.format, format.height, format.stride_bytes);
  if (!format.compressed && set.image_bytes < format.frame_bytes) {
    return refuse("in buffers of " + std::to_string(set.image_bytes) + " bytes; a frame takes " +
                  std::to_string(format.frame_bytes));
  }
  return format;
}

// The frame rates at the format last set, as text; empty where the driver does not tell.
std::string V4l2Device::offered_rates() const {
  const Layout set = layout_of(driver_format_, multiplanar_);
  const auto rate = [](const v4l2_fract& period) {
    return period.numerator == 0 ? std::string("0")
                                 : rate_text(static_cast<double>(period.denominator) /
                                             static_cast<double>(period.numerator));
  };
  std::string text;
  for (std::uint32_t i = 0; i < kMaxEnumerated; ++i) {
    v4l2_frmivalenum entry{};
    entry.index = i;
    entry.pixel_format = set.fourcc;
    entry.width = set.width;
    entry.height = set.height;
    if (call(VIDIOC_ENUM_FRAMEINTERVALS, &entry) < 0) break;
    if (entry.type != V4L2_FRMIVAL_TYPE_DISCRETE)
      return " " + rate(entry.stepwise.max) + " to " + rate(entry.stepwise.min);
    text += " " + rate(entry.discrete);
  }
  return text;
}

// Sets the frame rate (0: leaves it) and gives the one that the driver has; 0 where it has none.
Result<double> V4l2Device::set_rate(double fps) {
  v4l2_streamparm parameters{};
  parameters.type = buffer_type();
  const v4l2_fract& period = parameters.parm.capture.timeperframe;
  if (fps > 0) {
    // In thousandths: 29.97 becomes 1000 / 29970.
    parameters.parm.capture.timeperframe.numerator = 1000;
    parameters.parm.capture.timeperframe.denominator =
        static_cast<std::uint32_t>(std::lround(std::min(fps, 1e6) * 1000));
  }
  const int got = call(fps > 0 ? VIDIOC_S_PARM : VIDIOC_G_PARM, &parameters);
  if (got < 0 && fps <= 0) return 0.0;
  if (got < 0) {
    return fail(ErrorCode::kInvalidArgument,
                path_ + ": the frame rate of " + card_ + " cannot be set (" +
                    std::generic_category().message(-got) + "); leave camera.fps out");
  }
  if (period.numerator == 0 || period.denominator == 0) return 0.0;
  const double set = static_cast<double>(period.denominator) / period.numerator;
  if (fps > 0 && std::abs(set - fps) > kRateTolerance * fps) {
    const std::string rates = offered_rates();
    return fail(ErrorCode::kInvalidArgument,
                path_ + ": asked for " + rate_text(fps) + " frames a second, but the driver set " +
                    rate_text(set) + (rates.empty() ? "" : "; at this size and format it does:") +
                    rates + "; set camera.fps to what it does, or leave it out");
  }
  return set;
}

}  // namespace patternd
