#include "daemon/messages.h"

#include "tools/version.h"

namespace patternd {

std::string line_of(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string hello_line(const Greeting& greeting) {
  return line_of({{"type", "hello"},
                  {"protocol", 1},
                  {"server", std::string("patternd ") + version_number()},
                  {"camera", greeting.camera},
                  {"frame", {{"width", greeting.width}, {"height", greeting.height}}},
                  {"backend", greeting.backend},
                  {"patterns", greeting.patterns}});
}

std::string dropped_line(std::uint64_t count) {
  return line_of({{"type", "dropped"}, {"count", count}});
}

std::string camera_line(bool lost, std::string_view reason) {
  return line_of({{"type", "camera"}, {"state", lost ? "lost" : "back"}, {"reason", reason}});
}

std::string reply_line(std::string_view command, const Json& data) {
  return line_of({{"type", "reply"}, {"command", command}, {"ok", true}, {"data", data}});
}

std::string error_line(std::string_view command, std::string_view error) {
  const Json name = command.empty() ? Json(nullptr) : Json(command);
  return line_of({{"type", "reply"}, {"command", name}, {"ok", false}, {"error", error}});
}

}  // namespace patternd
