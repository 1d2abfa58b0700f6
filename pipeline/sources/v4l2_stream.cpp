#include "pipeline/sources/v4l2_stream.h"

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "pipeline/stage.h"

namespace patternd {
namespace {

// A driver that grants more than this is not believed.
constexpr std::uint32_t kMaxBuffers = 64;

std::int64_t nanoseconds(const timeval& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::int64_t>(time.tv_usec) * 1000;
}

}  // namespace

struct V4l2Stream::Request {
  v4l2_buffer buffer{};
  v4l2_plane plane{};
  // Points the buffer to the plane; after the request has its final place.
  v4l2_buffer* get(bool multiplanar) {
    if (multiplanar) {
      buffer.m.planes = &plane;
      buffer.length = 1;
    }
    return &buffer;
  }
};

V4l2Stream::Request V4l2Stream::make_request(std::size_t index) const {
  Request request;
  request.buffer.type = device_->buffer_type();
  request.buffer.memory = memory_;
  request.buffer.index = static_cast<std::uint32_t>(index);
  return request;
}

int V4l2Stream::request_buffers(std::uint32_t count, std::uint32_t& granted) {
  v4l2_requestbuffers request{};
  request.count = count;
  request.type = device_->buffer_type();
  request.memory = memory_;
  const int got = device_->call(VIDIOC_REQBUFS, &request);
  granted = request.count;
  requested_ = got >= 0 && count > 0;
  return got;
}

int V4l2Stream::queue_locked(std::size_t index) {
  Request request = make_request(index);
  if (memory_ == V4L2_MEMORY_USERPTR) {
    FrameBuffer* const buffer = ring_.at(index);
    const auto address = reinterpret_cast<unsigned long>(buffer->data);
    const auto length = static_cast<std::uint32_t>(buffer->size_bytes);
    if (device_->multiplanar()) {
      request.plane.m.userptr = address;
      request.plane.length = length;
    } else {
      request.buffer.m.userptr = address;
      request.buffer.length = length;
    }
  }
  const int got = device_->call(VIDIOC_QBUF, request.get(device_->multiplanar()));
  if (got < 0) return got;
  queued_[index] = true;
  queued_ns_[index] = monotonic_ns();
  return 0;
}

Result<void> V4l2Stream::switch_on() {
  int type = static_cast<int>(device_->buffer_type());
  const int got = device_->call(VIDIOC_STREAMON, &type);
  streaming_ = got >= 0;
  if (streaming_) return {};
  stop_locked();
  return tl::make_unexpected(device_->error("VIDIOC_STREAMON", -got));
}

Result<void> V4l2Stream::prepare(FrameAllocator& allocator, std::size_t size_bytes,
                                 std::size_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ring_.prepare(allocator, size_bytes, count);
}

Result<void> V4l2Stream::start_user_pointers(V4l2Device& device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  device_ = &device;
  memory_ = V4L2_MEMORY_USERPTR;
  const std::size_t count = ring_.size();
  queued_.assign(count, false);
  queued_ns_.assign(count, 0);
  std::uint32_t granted = 0;
  if (const int got = request_buffers(static_cast<std::uint32_t>(count), granted); got < 0)
    return fail(ErrorCode::kUnsupported, std::generic_category().message(-got));
  int refused = granted < count ? -ENOBUFS : 0;
  while (refused == 0) {
    FrameBuffer* const buffer = ring_.take();
    if (buffer == nullptr) break;
    refused = queue_locked(ring_.index_of(buffer));
    if (refused < 0) ring_.give_back(buffer);
  }
  if (refused < 0) {
    stop_locked();
    return fail(ErrorCode::kUnsupported, std::generic_category().message(-refused));
  }
  return switch_on();
}

Result<void> V4l2Stream::map_buffer(std::size_t index) {
  Request request = make_request(index);
  v4l2_buffer* const buffer = request.get(device_->multiplanar());
  if (const int got = device_->call(VIDIOC_QUERYBUF, buffer); got < 0)
    return tl::make_unexpected(device_->error("VIDIOC_QUERYBUF", -got));
  const std::size_t length = device_->multiplanar() ? request.plane.length : buffer->length;
  const std::uint32_t offset =
      device_->multiplanar() ? request.plane.m.mem_offset : buffer->m.offset;
  Mapped mapped{nullptr, length};
  const int got =
      device_->system().mmap(device_->descriptor(), length, std::int64_t{offset}, &mapped.memory);
  if (got < 0) return tl::make_unexpected(device_->error("mmap", -got));
  mapped_.push_back(mapped);
  return {};
}

Result<void> V4l2Stream::start_mapped(V4l2Device& device, std::uint32_t count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  device_ = &device;
  memory_ = V4L2_MEMORY_MMAP;
  std::uint32_t granted = 0;
  if (const int got = request_buffers(count, granted); got < 0)
    return tl::make_unexpected(device_->error("VIDIOC_REQBUFS", -got));
  if (granted < 2 || granted > kMaxBuffers) {
    stop_locked();
    return fail(ErrorCode::kExhausted, device_->path() + ": the driver gave " +
                                           std::to_string(granted) +
                                           " buffers; 2 are the least to stream with");
  }
  queued_.assign(granted, false);
  queued_ns_.assign(granted, 0);
  for (std::size_t i = 0; i < granted; ++i) {
    auto mapped = map_buffer(i);
    if (mapped) {
      if (const int got = queue_locked(i); got < 0)
        mapped = tl::make_unexpected(device_->error("VIDIOC_QBUF", -got));
    }
    if (!mapped) {
      stop_locked();
      return mapped;
    }
  }
  return switch_on();
}

void V4l2Stream::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stop_locked();
}

// Errors do not matter here: the device may be gone, and everything is given up anyway.
void V4l2Stream::stop_locked() {
  if (streaming_) {
    int type = static_cast<int>(device_->buffer_type());
    static_cast<void>(device_->call(VIDIOC_STREAMOFF, &type));
    streaming_ = false;
  }
  for (const Mapped& mapped : mapped_)
    static_cast<void>(device_->system().munmap(mapped.memory, mapped.length));
  mapped_.clear();
  std::uint32_t granted = 0;
  if (requested_) static_cast<void>(request_buffers(0, granted));
  if (memory_ == V4L2_MEMORY_USERPTR) {
    for (std::size_t i = 0; i < queued_.size(); ++i)
      if (queued_[i]) ring_.give_back(ring_.at(i));
  }
  queued_.clear();
}

Result<std::optional<V4l2Filled>> V4l2Stream::take() {
  Request request = make_request(0);
  v4l2_buffer* const buffer = request.get(device_->multiplanar());
  const int got = device_->call(VIDIOC_DQBUF, buffer);
  if (got == -EAGAIN) return std::nullopt;
  if (got < 0) return tl::make_unexpected(device_->error("VIDIOC_DQBUF", -got));
  const std::lock_guard<std::mutex> lock(mutex_);
  V4l2Filled filled;
  filled.index = buffer->index;
  if (filled.index >= queued_.size())
    return fail(ErrorCode::kDevice, device_->path() + ": the driver gave a buffer never queued");
  queued_[filled.index] = false;
  filled.queued_ns = queued_ns_[filled.index];
  filled.bytes = buffer->bytesused;
  if (device_->multiplanar()) {
    filled.offset = request.plane.data_offset;
    filled.bytes =
        request.plane.bytesused - std::min(request.plane.bytesused, request.plane.data_offset);
  }
  filled.sequence = buffer->sequence;
  filled.damaged = (buffer->flags & V4L2_BUF_FLAG_ERROR) != 0;
  if ((buffer->flags & V4L2_BUF_FLAG_TIMESTAMP_MASK) == V4L2_BUF_FLAG_TIMESTAMP_MONOTONIC)
    filled.monotonic_ns = nanoseconds(buffer->timestamp);
  return filled;
}

Result<void> V4l2Stream::queue(std::size_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int got = queue_locked(index); got < 0)
    return tl::make_unexpected(device_->error("VIDIOC_QBUF", -got));
  return {};
}

FrameBuffer* V4l2Stream::take_free() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ring_.take();
}

FrameBuffer* V4l2Stream::user_buffer(std::size_t index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ring_.at(index);
}

void V4l2Stream::give_back(FrameBuffer* buffer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t index = ring_.index_of(buffer);
  const bool drivers = streaming_ && memory_ == V4L2_MEMORY_USERPTR && index < queued_.size();
  // Where the driver refuses it, the next take() tells why.
  if (!drivers || queue_locked(index) < 0) ring_.give_back(buffer);
}

}  // namespace patternd
