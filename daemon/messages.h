// The lines of PROTOCOL.md that are not results: rare ones, made as strings. Each ends with '\n',
// is valid UTF-8 whatever came in, and stays under kMaxLineBytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "pipeline/drift_watch.h"

namespace patternd {

using Json = nlohmann::ordered_json;

// What a client is greeted with.
struct Greeting {
  std::string camera;
  int width = 0;  // of the raw frame; 0 where the camera has not been there and nothing tells
  int height = 0;
  std::string backend;  // "cpu" | "cuda"
  std::vector<std::string> patterns;
};

[[nodiscard]] std::string hello_line(const Greeting& greeting);
// Results that a slow client lost since it was last told.
[[nodiscard]] std::string dropped_line(std::uint64_t count);
// `frame`: the raw frame's size where the camera is back, which a client that was greeted before
// it came does not know yet.
struct FrameSize {
  int width = 0;
  int height = 0;
};
[[nodiscard]] std::string camera_line(bool lost, std::string_view reason,
                                      const std::optional<FrameSize>& frame = std::nullopt);
// For numbers that people read: 1.80175 to four decimals is 1.8018.
[[nodiscard]] double rounded(double value, int decimals);
// `fiducials` are off their places, or back. Decimals as in results.
[[nodiscard]] std::string drift_line(const Drift& drift);
[[nodiscard]] Json drift_json(const Drift& drift);
[[nodiscard]] std::string reply_line(std::string_view command, const Json& data);
// `command` is empty where the line did not say one: null is printed.
[[nodiscard]] std::string error_line(std::string_view command, std::string_view error);
// Any object as a line: compact, malformed UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string line_of(const Json& object);

}  // namespace patternd
