// Frames of a running service, over the wire: for patternctl's record and snapshot, and for
// calibrating.
#pragma once

#include <optional>
#include <string>

#include "daemon/frame_line.h"
#include "daemon/service_client.h"

namespace patternd {

class FrameClient {
 public:
  // Connects and sends a command that is answered with frames, `record` or `snapshot`:
  //   auto frames = FrameClient::request(address, {{"command", "record"}, {"frames", 10}});
  [[nodiscard]] static Result<FrameClient> request(const Address& address, const Json& command);
  // The same over a connection that has just been made, to what messages call `description`.
  [[nodiscard]] static Result<FrameClient> request(ServiceClient client, std::string description,
                                                   const Json& command);

  // The next frame; nothing after the last. kTimeout: none within `timeout_ms`, call again, or give
  // up. kDevice: the service refused.
  [[nodiscard]] Result<std::optional<ReceivedFrame>> next(int timeout_ms);
  // Why no frame may come: what the service said about its camera; empty while that is there.
  [[nodiscard]] const std::string& camera_lost() const { return camera_lost_; }
  // What the service is called and where it is, for a recording's summary.
  [[nodiscard]] const std::string& description() const { return description_; }

 private:
  FrameClient(ServiceClient client, std::string command, std::string description);
  [[nodiscard]] Result<bool> take_reply(const Json& line);

  ServiceClient client_;
  std::string command_;
  std::string description_;
  FrameAssembler assembler_;
  std::string camera_lost_;
  bool ended_ = false;
};

}  // namespace patternd
