// index.jsonl of a recording: one compact JSON object a frame, in the frames' order:
//   {"seq":42,"captured_mono_ns":1234567890,"captured_at":"2026-01-31T12:00:00.123456Z"}
// Further keys are left for others to use and ignored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/frame.h"
#include "pipeline/result.h"

namespace patternd {

// The names of a recording's parts within its folder.
inline constexpr const char* kIndexName = "index.jsonl";
inline constexpr const char* kVideoName = "frames.mkv";

// Bounds of stamps in an index: numbers that every reader of JSON keeps exactly, and the instants
// that nanoseconds since 1970 can tell, with room for a replay that loops.
inline constexpr std::uint64_t kMostSeq = std::uint64_t{1} << 53;
inline constexpr std::int64_t kMostNs = 9'000'000'000'000'000'000;  // in the year 2255

struct FrameStamp {
  std::uint64_t seq = 0;
  std::int64_t captured_mono_ns = 0;
  std::int64_t captured_unix_ns = 0;
};

struct RecordingIndex {
  std::vector<FrameStamp> stamps;  // `seq` and `captured_mono_ns` rise strictly, within the bounds
  bool cut = false;                // the last line was cut short (a killed recorder) and left out
};

// Reads FOLDER/index.jsonl. Anything but complete, well-formed, rising lines is kParse with file
// and line number; only a last line without its line end may be incomplete: it is left out and
// `cut` says so. No complete line at all is kParse too.
[[nodiscard]] Result<RecordingIndex> read_recording_index(const std::string& folder);

// The line of one frame, with its line end.
[[nodiscard]] std::string recording_index_line(const FrameStamp& stamp);

}  // namespace patternd
