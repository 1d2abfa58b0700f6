// What a client may ask for: one JSON object a line (PROTOCOL.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/result.h"

namespace patternd {

// Longest command line, without its newline.
inline constexpr std::size_t kMaxCommandBytes = std::size_t{64} << 10;

// What a client wants of the results.
struct Subscription {
  bool results = true;
  bool camera = true;
  bool drift = true;
  // Matches of these alone; nothing: of all.
  std::optional<std::vector<std::string>> patterns;
  int every = 1;  // the first result, then each every-th
};

// Which frames a client wants.
struct FrameRequest {
  std::uint64_t frames = 0;  // 0: no limit
  double seconds = 0;        // by the frames' stamps; 0: no limit
  int every = 1;             // the first, then each every-th
};

struct ClientCommand {
  enum class Kind { kStatus, kLatency, kReload, kSubscribe, kRecord, kSnapshot };
  Kind kind = Kind::kStatus;
  std::string name;
  std::string token;          // empty: none was given
  Subscription subscription;  // kSubscribe
  FrameRequest frames;        // kRecord, kSnapshot
};

// The service is another afterwards: the kinds that publish.tcp.token_file guards.
[[nodiscard]] bool changes_something(ClientCommand::Kind kind);

// A command that could not be read. `name` is what to reply to, empty where the line did not say.
struct CommandFault {
  std::string name;
  std::string message;
};

// Reads one line. Malformed UTF-8, nesting deeper than 16 unknown commands or keys and keys that
// stand twice are faults, each saying what would be right. `patterns`: the names that there are.
[[nodiscard]] tl::expected<ClientCommand, CommandFault> parse_command(
    std::string_view line, const std::vector<std::string>& patterns);

}  // namespace patternd
