#include "daemon/frame_client.h"

#include <algorithm>
#include <utility>

#include "pipeline/stage.h"

namespace patternd {

FrameClient::FrameClient(ServiceClient client, std::string command, std::string description)
    : client_(std::move(client)),
      command_(std::move(command)),
      description_(std::move(description)) {}

Result<FrameClient> FrameClient::request(const Address& address, const Json& command) {
  auto client = ServiceClient::connect(address);
  if (!client) return tl::make_unexpected(client.error());
  return request(std::move(*client), "the service at " + shown(address), command);
}

Result<FrameClient> FrameClient::request(ServiceClient client, std::string description,
                                         const Json& command) {
  // No results: they would share the way with the frames.
  for (const Json& line : {Json{{"command", "subscribe"}, {"types", {"camera"}}}, command}) {
    if (auto sent = client.send_line(line); !sent) return tl::make_unexpected(sent.error());
  }
  return FrameClient(std::move(client), command.value("command", ""), std::move(description));
}

// True for the reply to our command: no further frame comes.
Result<bool> FrameClient::take_reply(const Json& line) {
  if (line.value("command", "") != command_) return false;
  if (!line.value("ok", false))
    return fail(ErrorCode::kDevice, line.value("error", "refused without a reason"));
  return true;
}

Result<std::optional<ReceivedFrame>> FrameClient::next(int timeout_ms) {
  const std::int64_t deadline_ns = monotonic_ns() + std::int64_t{timeout_ms} * 1'000'000;
  while (!ended_) {
    const std::int64_t left_ms = (deadline_ns - monotonic_ns()) / 1'000'000;
    auto text = client_.read_line(static_cast<int>(std::max<std::int64_t>(left_ms, 0)));
    if (!text) return tl::make_unexpected(text.error());
    const Json line = Json::parse(*text, nullptr, false);
    if (!line.is_object()) return fail(ErrorCode::kParse, description_ + ": sent no JSON object");
    const std::string type = line.value("type", "");
    if (type == "frame") {
      auto frame = assembler_.take(line);
      if (!frame || *frame) return frame;
    } else if (type == "camera") {
      camera_lost_ = line.value("state", "") == "lost" ? line.value("reason", "lost") : "";
    } else if (type == "reply") {
      const auto last = take_reply(line);
      if (!last) return tl::make_unexpected(last.error());
      ended_ = *last;
    }
  }
  return std::optional<ReceivedFrame>();
}

}  // namespace patternd
