#include "tests/support/fake_v4l2.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "pipeline/sources/v4l2_controls.h"
#include "pipeline/sources/v4l2_formats.h"

namespace patternd::test {
namespace {

void put_text(unsigned char* to, std::size_t size, const std::string& text) {
  std::memset(to, 0, size);
  std::copy_n(text.begin(), std::min(text.size(), size - 1), to);
}

std::int64_t monotonic_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

class FakeConverter : public V4l2Converter {
 public:
  explicit FakeConverter(const FakeV4l2& fake) : fake_(fake) {}
  Result<void> convert(std::uint8_t* data, std::size_t size, std::uint8_t* target,
                       std::size_t target_size) override {
    if (fake_.decode(data, size, target, target_size)) return {};
    return fail(ErrorCode::kDevice, "damaged");
  }

 private:
  const FakeV4l2& fake_;
};

}  // namespace

bool FakeV4l2::multiplanar() const { return (capabilities & V4L2_CAP_VIDEO_CAPTURE) == 0; }

std::uint32_t FakeV4l2::stride() const {
  const V4l2PixelFormat* plain = find_pixel_format(fourcc_);
  if (plain == nullptr) return 0;
  return static_cast<std::uint32_t>(min_stride_bytes(plain->format, static_cast<int>(width))) +
         row_padding;
}

std::uint32_t FakeV4l2::image_bytes() const {
  const V4l2PixelFormat* plain = find_pixel_format(fourcc_);
  if (plain == nullptr) return width * height * 2;
  return static_cast<std::uint32_t>(
             frame_bytes(plain->format, static_cast<int>(height), stride())) +
         data_offset;
}

int FakeV4l2::open(const std::string& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (open_fault != 0) return -open_fault;
  if (device != path) return -ENOENT;
  if (open_) return -EBUSY;
  open_ = true;
  gone_ = false;
  if (fourcc_ == 0) fourcc_ = formats.front();
  return kDescriptor;
}

int FakeV4l2::close(int descriptor) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (descriptor != kDescriptor || !open_) return -EBADF;
  open_ = streaming_ = false;
  buffers_.clear();
  queued_.clear();
  ready_.clear();
  return 0;
}

int FakeV4l2::ioctl(int descriptor, unsigned long what, void* argument) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (descriptor != kDescriptor || !open_) return -EBADF;
  if (gone_) return -ENODEV;
  const auto fault = faults.find(what);
  if (fault != faults.end() && fault->second.after-- <= 0) return -fault->second.error_number;
  return request(what, argument);
}

int FakeV4l2::request(unsigned long what, void* argument) {
  switch (what) {
    case VIDIOC_QUERYCAP:
      return query_capability(*static_cast<v4l2_capability*>(argument));
    case VIDIOC_ENUM_FMT: {
      auto& entry = *static_cast<v4l2_fmtdesc*>(argument);
      if (entry.index >= formats.size()) return -EINVAL;
      entry.pixelformat = formats[entry.index];
      return 0;
    }
    case VIDIOC_ENUM_FRAMESIZES: {
      auto& entry = *static_cast<v4l2_frmsizeenum*>(argument);
      if (entry.index > 0) return -EINVAL;
      entry.type = V4L2_FRMSIZE_TYPE_STEPWISE;
      entry.stepwise = {16, max_width, 2, 16, max_height, 2};
      return 0;
    }
    case VIDIOC_ENUM_FRAMEINTERVALS: {
      auto& entry = *static_cast<v4l2_frmivalenum*>(argument);
      if (entry.index >= rates.size()) return -EINVAL;
      entry.type = V4L2_FRMIVAL_TYPE_DISCRETE;
      entry.discrete = {1000, static_cast<std::uint32_t>(rates[entry.index] * 1000)};
      return 0;
    }
    case VIDIOC_G_FMT:
    case VIDIOC_S_FMT:
      return format_request(what, *static_cast<v4l2_format*>(argument));
    case VIDIOC_G_PARM:
    case VIDIOC_S_PARM:
      return rate_request(what, *static_cast<v4l2_streamparm*>(argument));
    case VIDIOC_QUERY_EXT_CTRL:
      return query_control(*static_cast<v4l2_query_ext_ctrl*>(argument));
    case VIDIOC_QUERYMENU:
      return query_menu(*static_cast<v4l2_querymenu*>(argument));
    case VIDIOC_S_EXT_CTRLS:
      return set_controls(*static_cast<v4l2_ext_controls*>(argument));
    case VIDIOC_REQBUFS:
      return request_buffers(*static_cast<v4l2_requestbuffers*>(argument));
    case VIDIOC_QUERYBUF:
      return query_buffer(*static_cast<v4l2_buffer*>(argument));
    case VIDIOC_QBUF:
      return queue_buffer(*static_cast<v4l2_buffer*>(argument));
    case VIDIOC_DQBUF:
      return dequeue_buffer(*static_cast<v4l2_buffer*>(argument));
    case VIDIOC_STREAMON:
      if (buffers_.empty()) return -EINVAL;
      streaming_ = true;
      return 0;
    case VIDIOC_STREAMOFF:
      streaming_ = false;
      queued_.clear();
      ready_.clear();
      for (Buffer& buffer : buffers_) buffer.queued = false;
      return 0;
    default:
      return -ENOTTY;
  }
}

int FakeV4l2::query_capability(v4l2_capability& capability) const {
  put_text(capability.card, sizeof capability.card, "Fake Camera");
  put_text(capability.driver, sizeof capability.driver, "fake");
  capability.capabilities = V4L2_CAP_DEVICE_CAPS | V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
  capability.device_caps = capabilities;
  return 0;
}

int FakeV4l2::format_request(unsigned long what, v4l2_format& format) {
  if (what == VIDIOC_S_FMT) {
    if (!buffers_.empty()) return -EBUSY;
    const std::uint32_t wanted =
        multiplanar() ? format.fmt.pix_mp.pixelformat : format.fmt.pix.pixelformat;
    const bool known = std::find(formats.begin(), formats.end(), wanted) != formats.end();
    fourcc_ = known ? wanted : formats.front();  // as drivers do: the nearest, and no error
    width = std::min(multiplanar() ? format.fmt.pix_mp.width : format.fmt.pix.width, max_width);
    height = std::min(multiplanar() ? format.fmt.pix_mp.height : format.fmt.pix.height, max_height);
  }
  if (multiplanar()) {
    v4l2_pix_format_mplane& pix = format.fmt.pix_mp;
    pix.width = width;
    pix.height = height;
    pix.pixelformat = fourcc_;
    pix.field = V4L2_FIELD_NONE;
    pix.num_planes = 1;
    pix.plane_fmt[0].bytesperline = stride();
    pix.plane_fmt[0].sizeimage = image_bytes();
  } else {
    v4l2_pix_format& pix = format.fmt.pix;
    pix.width = width;
    pix.height = height;
    pix.pixelformat = fourcc_;
    pix.field = V4L2_FIELD_NONE;
    pix.bytesperline = stride();
    pix.sizeimage = image_bytes();
  }
  if (what == VIDIOC_S_FMT && twist_format) twist_format(format);
  return 0;
}

int FakeV4l2::rate_request(unsigned long what, v4l2_streamparm& parameters) const {
  if (fps <= 0) return what == VIDIOC_S_PARM ? -ENOTTY : -EINVAL;
  parameters.parm.capture.timeperframe = {1000, static_cast<std::uint32_t>(fps * 1000 + 0.5)};
  return 0;
}

int FakeV4l2::query_control(v4l2_query_ext_ctrl& query) const {
  const std::uint32_t id = query.id & ~V4L2_CTRL_FLAG_NEXT_CTRL;
  for (const Control& control : controls) {
    if (control.info.id <= id) continue;
    query = control.info;
    return 0;
  }
  return -EINVAL;
}

int FakeV4l2::query_menu(v4l2_querymenu& query) const {
  for (const Control& control : controls) {
    if (control.info.id != query.id) continue;
    if (query.index >= control.menu.size() || control.menu[query.index].empty()) return -EINVAL;
    put_text(query.name, sizeof query.name, control.menu[query.index]);
    return 0;
  }
  return -EINVAL;
}

int FakeV4l2::set_controls(v4l2_ext_controls& request) {
  for (std::uint32_t i = 0; i < request.count; ++i) {
    for (Control& control : controls) {
      if (control.info.id != request.controls[i].id) continue;
      if (control.refuses_with != 0) return -control.refuses_with;
      const bool wide = control.info.type == V4L2_CTRL_TYPE_INTEGER64;
      std::int64_t value = wide ? request.controls[i].value64 : request.controls[i].value;
      if (control.rounds_to > 0) value -= value % control.rounds_to;
      control.value = value;
      if (wide)
        request.controls[i].value64 = value;
      else
        request.controls[i].value = static_cast<std::int32_t>(value);
      set_order_.push_back(control_name(control.info.name));
    }
  }
  return 0;
}

int FakeV4l2::request_buffers(v4l2_requestbuffers& request) {
  if (request.memory == V4L2_MEMORY_USERPTR && !takes_user_pointers) return -EINVAL;
  if (mappings_ > 0) return -EBUSY;
  request.count = std::min(request.count, most_buffers);
  memory_ = request.memory;
  buffers_.assign(request.count, Buffer{});
  queued_.clear();
  ready_.clear();
  if (memory_ == V4L2_MEMORY_MMAP) {
    for (Buffer& buffer : buffers_) {
      buffer.own.resize(image_bytes());
      buffer.memory = buffer.own.data();
      buffer.length = buffer.own.size();
    }
  }
  return 0;
}

int FakeV4l2::query_buffer(v4l2_buffer& buffer) {
  if (buffer.index >= buffers_.size()) return -EINVAL;
  const auto length = static_cast<std::uint32_t>(buffers_[buffer.index].length);
  if (multiplanar()) {
    buffer.m.planes[0].length = length;
    buffer.m.planes[0].m.mem_offset = buffer.index * 4096;
  } else {
    buffer.length = length;
    buffer.m.offset = buffer.index * 4096;
  }
  return 0;
}

int FakeV4l2::queue_buffer(v4l2_buffer& buffer) {
  if (buffer.index >= buffers_.size() || buffer.memory != memory_) return -EINVAL;
  Buffer& slot = buffers_[buffer.index];
  if (slot.queued) return -EINVAL;
  if (memory_ == V4L2_MEMORY_USERPTR) {
    if (!takes_our_memory) return -EFAULT;
    const unsigned long address = multiplanar() ? buffer.m.planes[0].m.userptr : buffer.m.userptr;
    slot.length = multiplanar() ? buffer.m.planes[0].length : buffer.length;
    slot.memory = reinterpret_cast<std::uint8_t*>(address);
    if (slot.length < image_bytes() || address % 4096 != 0) return -EINVAL;
  }
  slot.queued = true;
  queued_.push_back(buffer.index);
  return 0;
}

bool FakeV4l2::capture(const Capture& frame) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!streaming_ || queued_.empty()) return false;
  const std::uint32_t index = queued_.front();
  queued_.pop_front();
  Buffer& buffer = buffers_[index];
  std::memset(buffer.memory, 0xee, buffer.length);
  std::memset(buffer.memory + data_offset, frame.value, image_bytes() - data_offset);
  const std::int64_t stamp = frame.stamp_ns < 0 ? monotonic_now_ns() : frame.stamp_ns;
  buffer.filled = v4l2_buffer{};
  buffer.filled.index = index;
  buffer.filled.sequence = frame.sequence;
  buffer.filled.flags = stamp_flag | (frame.damaged ? V4L2_BUF_FLAG_ERROR : 0U);
  buffer.filled.timestamp.tv_sec = static_cast<time_t>(stamp / 1'000'000'000);
  buffer.filled.timestamp.tv_usec = static_cast<suseconds_t>(stamp % 1'000'000'000 / 1000);
  buffer.filled.bytesused = frame.bytes >= 0
                                ? static_cast<std::uint32_t>(frame.bytes)
                                : image_bytes() - static_cast<std::uint32_t>(frame.bytes_missing);
  ready_.push_back(index);
  return true;
}

int FakeV4l2::dequeue_buffer(v4l2_buffer& buffer) {
  if (!streaming_) return -EINVAL;
  if (ready_.empty()) return -EAGAIN;
  const std::uint32_t index = ready_.front();
  ready_.pop_front();
  buffers_[index].queued = false;
  const v4l2_buffer& filled = buffers_[index].filled;
  buffer.index = index;
  buffer.sequence = filled.sequence;
  buffer.flags = filled.flags;
  buffer.timestamp = filled.timestamp;
  if (multiplanar()) {
    buffer.m.planes[0].bytesused = filled.bytesused;
    buffer.m.planes[0].data_offset = data_offset;
  } else {
    buffer.bytesused = filled.bytesused;
  }
  return 0;
}

int FakeV4l2::mmap(int descriptor, std::size_t length, std::int64_t offset, std::uint8_t** memory) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto index = static_cast<std::size_t>(offset / 4096);
  if (descriptor != kDescriptor || index >= buffers_.size()) return -EINVAL;
  if (buffers_[index].length != length) return -EINVAL;
  *memory = buffers_[index].memory;
  ++mappings_;
  return 0;
}

int FakeV4l2::munmap(std::uint8_t* memory, std::size_t) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (memory == nullptr || mappings_ == 0) return -EINVAL;
  --mappings_;
  return 0;
}

// Reports what is ready now; where nothing is, the time passes at once.
int FakeV4l2::poll(pollfd* descriptors, std::size_t count, int /*timeout_ms*/) {
  int total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pollfd& one = descriptors[i];
    one.revents = 0;
    if (one.fd != kDescriptor) {
      static_cast<void>(::poll(&one, 1, 0));
    } else {
      const std::lock_guard<std::mutex> lock(mutex_);
      int events = poll_events;
      if (!ready_.empty()) events |= POLLIN;
      if (gone_) events |= POLLERR | POLLHUP;
      one.revents = static_cast<short>(events);
    }
    total += one.revents != 0 ? 1 : 0;
  }
  return total;
}

Result<std::unique_ptr<V4l2Converter>> FakeV4l2::open_converter(int, const v4l2_format& from,
                                                                const v4l2_format& to) {
  if (!decode || to.fmt.pix.pixelformat != V4L2_PIX_FMT_YUV420 ||
      from.fmt.pix.width != to.fmt.pix.width)
    return fail(ErrorCode::kUnsupported, "the fake has no decoder for this");
  return std::make_unique<FakeConverter>(*this);
}

void FakeV4l2::unplug() {
  const std::lock_guard<std::mutex> lock(mutex_);
  gone_ = true;
}

std::size_t FakeV4l2::queued() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return queued_.size();
}

std::size_t FakeV4l2::ready() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ready_.size();
}

bool FakeV4l2::is_open() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return open_;
}

bool FakeV4l2::streaming() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return streaming_;
}

std::size_t FakeV4l2::mappings() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return mappings_;
}

std::uint32_t FakeV4l2::memory() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return memory_;
}

std::int64_t FakeV4l2::control(const std::string& name) const {
  for (const Control& control : controls)
    if (control_name(control.info.name) == name) return control.value;
  return -1;
}

std::vector<std::string> FakeV4l2::set_order() const { return set_order_; }

void FakeV4l2::add_control(const std::string& name, std::uint32_t type, std::int64_t low,
                           std::int64_t high, std::uint64_t step) {
  Control control;
  control.info.id = 0x00980900U + static_cast<std::uint32_t>(controls.size());
  control.info.type = type;
  control.info.minimum = low;
  control.info.maximum = high;
  control.info.step = step;
  name.copy(control.info.name, sizeof control.info.name - 1);
  controls.push_back(control);
}

}  // namespace patternd::test
