#include "daemon/messages.h"

#include <cmath>

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

std::string camera_line(bool lost, std::string_view reason, const std::optional<FrameSize>& frame) {
  Json line = {{"type", "camera"}, {"state", lost ? "lost" : "back"}, {"reason", reason}};
  if (frame) line["frame"] = {{"width", frame->width}, {"height", frame->height}};
  return line_of(line);
}

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale + 0.0;  // no -0.0
}

Json drift_json(const Drift& drift) {
  constexpr int kMm = 4;
  constexpr int kDeg = 3;
  return {{"moved", drift.moved},
          {"found", drift.found},
          {"worst_mm", rounded(drift.worst_mm, kMm)},
          {"shift_mm", {rounded(drift.shift_x_mm, kMm), rounded(drift.shift_y_mm, kMm)}},
          {"turn_deg", rounded(drift.turn_deg, kDeg)}};
}

std::string drift_line(const Drift& drift) {
  Json line = {{"type", "drift"}};
  line.update(drift_json(drift));
  return line_of(line);
}

std::string reply_line(std::string_view command, const Json& data) {
  return line_of({{"type", "reply"}, {"command", command}, {"ok", true}, {"data", data}});
}

std::string error_line(std::string_view command, std::string_view error) {
  const Json name = command.empty() ? Json(nullptr) : Json(command);
  return line_of({{"type", "reply"}, {"command", name}, {"ok", false}, {"error", error}});
}

}  // namespace patternd
