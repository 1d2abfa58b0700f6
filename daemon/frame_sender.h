// Frames for clients that asked for them (`record`, `snapshot`): copied off the capture thread's
// way when there is room, made into lines on a thread of their own, and never waited for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/bounded_queue.h"
#include "daemon/client_command.h"
#include "pipeline/frame.h"
#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd {

class FrameSender {
 public:
  // Clients that may have frames sent at once.
  static constexpr std::size_t kMostRequests = 4;

  // Hands text to a client, in order. `busy` is true and becomes false once the text is on its way
  // for good; null with the reply.
  using Send = std::function<void(std::uint64_t client, std::string text,
                                  std::shared_ptr<std::atomic<bool>> busy)>;
  explicit FrameSender(Send send);
  // stop(), unless it has been called.
  ~FrameSender();
  FrameSender(const FrameSender&) = delete;
  FrameSender& operator=(const FrameSender&) = delete;

  // On the capture thread, with each frame in order: where somebody wants frames it is copied if
  // there is room, and counted as dropped if not. Never waits, allocates nothing.
  void offer(const RawImageView& image, const FrameInfo& info);

  // Any thread. begin(): from the next frame on `client` gets frames, and the reply to `command`
  // behind the last. kExhausted: too many do, or this client already does.
  [[nodiscard]] Result<void> begin(std::uint64_t client, const ClientCommand& command);
  // The client has gone.
  void end(std::uint64_t client);
  // Sends what has been offered, answers every request and ends the thread.
  void stop();

 private:
  // A frame on its way from the camera to the lines.
  struct Slot {
    std::vector<std::uint8_t> pixels;
    RawImageView image;  // `data` is null where the slot was too small: make it `size_bytes` large
    FrameInfo info;
    std::uint64_t missed = 0;  // frames offered since the one before that found no slot
  };
  struct Request {
    std::uint64_t client = 0;
    std::string command;
    FrameRequest wanted;
    // The sending thread's.
    std::uint64_t seen = 0;
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;       // between the first frame sent and the last
    std::uint64_t not_yet_told = 0;  // of those lost since the last one sent
    std::int64_t first_ns = 0;
    std::int64_t last_ns = 0;
    std::shared_ptr<std::atomic<bool>> busy = std::make_shared<std::atomic<bool>>(false);
  };
  using Requests = std::vector<std::shared_ptr<Request>>;

  void run();
  [[nodiscard]] Requests requests();
  void remove(std::uint64_t client);
  [[nodiscard]] ImageView luma_of(Slot& slot);
  void handle(Slot& slot);
  // False where the request is done with.
  [[nodiscard]] bool serve(Request& request, const Slot& slot, const ImageView& luma);
  void answer(const Request& request) const;

  const Send send_;
  std::vector<std::unique_ptr<Slot>> slots_;
  BoundedQueue<Slot*> free_;
  BoundedQueue<Slot*> ready_;
  std::atomic<bool> wanted_{false};  // there are requests
  std::uint64_t missed_ = 0;         // the capture thread's
  Image scratch_;                    // the sending thread's

  std::mutex mutex_;  // guards requests_, for a moment: the publisher's thread takes it too
  Requests requests_;
  std::thread thread_;
};

}  // namespace patternd
