#include "daemon/frame_sender.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "daemon/frame_line.h"
#include "daemon/messages.h"

namespace patternd {
namespace {

// Frames between the camera and the lines: what a moment's delay of the sending thread takes.
constexpr std::size_t kSlots = 4;
constexpr std::chrono::milliseconds kWait{500};

// The bytes that luma is made of.
std::size_t bytes_for_luma(const RawImageView& image) {
  const std::size_t plane = image.stride_bytes * static_cast<std::size_t>(image.height);
  return has_luma_plane(image.format) ? std::min(plane, image.size_bytes) : image.size_bytes;
}

}  // namespace

FrameSender::FrameSender(Send send) : send_(std::move(send)), free_(kSlots), ready_(kSlots) {
  for (std::size_t i = 0; i < kSlots; ++i) {
    slots_.push_back(std::make_unique<Slot>());
    free_.try_push(slots_.back().get());
  }
  thread_ = std::thread([this] { run(); });
}

FrameSender::~FrameSender() { stop(); }

void FrameSender::offer(const RawImageView& image, const FrameInfo& info) {
  if (!wanted_) {
    missed_ = 0;
    return;
  }
  const auto slot = free_.try_pop();
  if (!slot) {
    missed_ += info.dropped + 1;
    return;
  }
  Slot& taken = **slot;
  const std::size_t bytes = bytes_for_luma(image);
  taken.image = image;
  taken.image.size_bytes = bytes;
  taken.info = info;
  taken.missed = std::exchange(missed_, 0);
  if (taken.pixels.size() < bytes) {
    taken.image.data = nullptr;
  } else {
    std::memcpy(taken.pixels.data(), image.data, bytes);
    taken.image.data = taken.pixels.data();
  }
  ready_.try_push(&taken);  // there is room for every slot
}

Result<void> FrameSender::begin(std::uint64_t client, const ClientCommand& command) {
  auto request = std::make_shared<Request>();
  request->client = client;
  request->command = command.name;
  request->wanted = command.frames;
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool has_one = std::any_of(requests_.begin(), requests_.end(),
                                   [client](const auto& each) { return each->client == client; });
  if (has_one) {
    return fail(ErrorCode::kExhausted,
                "this connection is being sent frames already; wait for the reply, or connect "
                "a second time");
  }
  if (requests_.size() >= kMostRequests) {
    return fail(ErrorCode::kExhausted, std::to_string(kMostRequests) +
                                           " clients are being sent frames already; end one of "
                                           "them first");
  }
  requests_.push_back(std::move(request));
  wanted_ = true;
  return {};
}

void FrameSender::end(std::uint64_t client) {
  if (wanted_) remove(client);
}

void FrameSender::remove(std::uint64_t client) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto of_client = [client](const auto& each) { return each->client == client; };
  requests_.erase(std::remove_if(requests_.begin(), requests_.end(), of_client), requests_.end());
  wanted_ = !requests_.empty();
}

FrameSender::Requests FrameSender::requests() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

void FrameSender::stop() {
  ready_.close();
  if (thread_.joinable()) thread_.join();
}

void FrameSender::run() {
  while (!ready_.closed() || ready_.size() > 0) {
    const auto slot = ready_.pop(kWait);
    if (!slot) continue;
    handle(**slot);
    free_.try_push(*slot);
  }
  for (const auto& request : requests()) {
    answer(*request);
    remove(request->client);
  }
}

// The slot's frame as luma; empty where the slot was too small, which it is not the next time.
ImageView FrameSender::luma_of(Slot& slot) {
  try {
    if (slot.image.data == nullptr) slot.pixels.resize(slot.image.size_bytes);
  } catch (const std::bad_alloc&) {
    return {};  // the frame counts as dropped
  }
  if (slot.image.data == nullptr) return {};
  const PixelFormat format = luma_format(slot.image.format);
  if (scratch_.width() != slot.image.width || scratch_.height() != slot.image.height ||
      scratch_.format() != format) {
    auto made = Image::create(slot.image.width, slot.image.height, format);
    if (!made) return {};
    scratch_ = std::move(*made);
  }
  return to_luma(slot.image, scratch_.view());
}

void FrameSender::handle(Slot& slot) {
  const ImageView luma = luma_of(slot);
  for (const auto& request : requests()) {
    if (!serve(*request, slot, luma)) remove(request->client);
  }
}

bool FrameSender::serve(Request& request, const Slot& slot, const ImageView& luma) {
  const bool first = request.sent == 0;
  if (!first) request.not_yet_told += slot.info.dropped + slot.missed;
  if (luma.empty()) {  // memory is ready from the next frame on
    if (!first) ++request.not_yet_told;
    return true;
  }
  if (first) request.first_ns = slot.info.captured_mono_ns;
  const double seconds = static_cast<double>(slot.info.captured_mono_ns - request.first_ns) / 1e9;
  if (request.wanted.seconds > 0 && seconds >= request.wanted.seconds) {
    answer(request);
    return false;
  }
  if (request.seen++ % static_cast<std::uint64_t>(request.wanted.every) != 0) return true;
  if (request.busy->exchange(true)) {  // the one before is still on its way
    ++request.not_yet_told;
    return true;
  }
  request.dropped += request.not_yet_told;
  request.last_ns = slot.info.captured_mono_ns;
  ++request.sent;
  send_(request.client,
        frame_lines(luma, {slot.info.seq, slot.info.captured_mono_ns, slot.info.captured_unix_ns},
                    std::exchange(request.not_yet_told, 0)),
        request.busy);
  if (request.wanted.frames == 0 || request.sent < request.wanted.frames) return true;
  answer(request);
  return false;
}

void FrameSender::answer(const Request& request) const {
  const Json data = {{"frames", request.sent},
                     {"dropped", request.dropped},
                     {"seconds", static_cast<double>(request.last_ns - request.first_ns) / 1e9}};
  send_(request.client, reply_line(request.command, data), nullptr);
}

}  // namespace patternd
