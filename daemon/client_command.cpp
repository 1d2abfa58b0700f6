#include "daemon/client_command.h"

#include <algorithm>
#include <array>
#include <set>

#include "daemon/messages.h"
#include "pipeline/utf8.h"
#include "pipeline/yaml_reader.h"

namespace patternd {
namespace {

constexpr int kMostDepth = 16;
constexpr int kLargestCount = 1'000'000;
constexpr int kMostSeconds = 86400;
constexpr const char* kNotJson = "must be one JSON object a line, such as {\"command\":\"status\"}";

tl::unexpected<CommandFault> fault(const std::string& name, const std::string& message) {
  return tl::make_unexpected(CommandFault{name, message});
}

// Brackets outside of strings; a parser may then recurse as deep as they go.
bool nests_too_deep(std::string_view line) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMostDepth) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + word;
  return all.empty() ? "none" : all;
}

// A list of strings that must each be one of `known`; the message of a fault, or empty.
std::string read_words(const Json& list, const std::vector<std::string>& known,
                       std::vector<std::string>& words) {
  if (!list.is_array()) return "must be a list of strings";
  for (const Json& item : list) {
    if (!item.is_string()) return "must be a list of strings";
    const auto word = item.get<std::string>();
    if (std::find(known.begin(), known.end(), word) == known.end())
      return "has " + in_quotes(word) + "; there are: " + joined(known);
    words.push_back(word);
  }
  return "";
}

std::string read_types(const Json& list, Subscription& subscription) {
  std::vector<std::string> types;
  std::string wrong = read_words(list, {"result", "camera", "drift"}, types);
  subscription.results = std::find(types.begin(), types.end(), "result") != types.end();
  subscription.camera = std::find(types.begin(), types.end(), "camera") != types.end();
  subscription.drift = std::find(types.begin(), types.end(), "drift") != types.end();
  return wrong;
}

template <class Integer>
std::string read_count(const Json& value, Integer& count) {
  if (!value.is_number_integer() || value < 1 || value > kLargestCount)
    return "must be a whole number from 1 to " + std::to_string(kLargestCount);
  count = value.get<Integer>();
  return "";
}

std::string read_seconds(const Json& value, double& seconds) {
  if (!value.is_number() || !(value > 0) || value > kMostSeconds)
    return "must be a number above 0, up to " + std::to_string(kMostSeconds);
  seconds = value.get<double>();
  return "";
}

tl::expected<ClientCommand, CommandFault> read_subscription(
    const Json& object, const std::vector<std::string>& patterns, ClientCommand command) {
  for (const auto& [key, value] : object.items()) {
    std::string wrong;
    if (key == "types") wrong = read_types(value, command.subscription);
    if (key == "patterns")
      wrong = read_words(value, patterns, command.subscription.patterns.emplace());
    if (key == "every") wrong = read_count(value, command.subscription.every);
    if (!wrong.empty()) return fault(command.name, std::string(key).append(" ").append(wrong));
  }
  return command;
}

tl::expected<ClientCommand, CommandFault> read_frame_request(const Json& object,
                                                             ClientCommand command) {
  for (const auto& [key, value] : object.items()) {
    std::string wrong;
    if (key == "frames") wrong = read_count(value, command.frames.frames);
    if (key == "seconds") wrong = read_seconds(value, command.frames.seconds);
    if (key == "every") wrong = read_count(value, command.frames.every);
    if (!wrong.empty()) return fault(command.name, std::string(key).append(" ").append(wrong));
  }
  if (command.kind == ClientCommand::Kind::kSnapshot) command.frames.frames = 1;
  return command;
}

// The message about a key that the command has not, or empty.
std::string unknown_key(const Json& object, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = nearest_word(key, known);
    return "unknown key " + in_quotes(key) +
           (nearest.empty() ? "; there are: " + joined(known) : "; did you mean " + nearest + "?");
  }
  return "";
}

tl::expected<ClientCommand, CommandFault> read_command(const Json& object,
                                                       const std::vector<std::string>& patterns) {
  const auto found = object.find("command");
  if (found == object.end() || !found->is_string())
    return fault("", "\"command\" is missing or no string; " + std::string(kNotJson));
  ClientCommand command;
  command.name = found->get<std::string>();
  const std::vector<std::string> names = {"status",    "latency", "reload",
                                          "subscribe", "record",  "snapshot"};
  const auto known = std::find(names.begin(), names.end(), command.name);
  if (known == names.end()) {
    return fault(std::string(utf8_prefix(command.name, 64)),
                 "unknown command " + in_quotes(command.name) + "; there are: " + joined(names));
  }
  command.kind = static_cast<ClientCommand::Kind>(known - names.begin());
  std::vector<std::string> keys = {"command", "token"};
  if (command.kind == ClientCommand::Kind::kSubscribe)
    keys.insert(keys.end(), {"types", "patterns", "every"});
  if (command.kind == ClientCommand::Kind::kRecord)
    keys.insert(keys.end(), {"frames", "seconds", "every"});
  const std::string wrong = unknown_key(object, keys);
  if (!wrong.empty()) return fault(command.name, wrong);
  if (const auto token = object.find("token"); token != object.end()) {
    if (!token->is_string()) return fault(command.name, "token must be a string");
    command.token = token->get<std::string>();
  }
  const bool wants_frames = command.kind == ClientCommand::Kind::kRecord ||
                            command.kind == ClientCommand::Kind::kSnapshot;
  if (wants_frames) return read_frame_request(object, std::move(command));
  return read_subscription(object, patterns, std::move(command));
}

// Parses the line, and notes a key that stands twice in one object, of which the last would count.
Json parse_object(std::string_view line, std::optional<std::string>& doubled) {
  std::vector<std::set<std::string>> open;
  const auto note = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto key = parsed.get<std::string>();
      if (!open.back().insert(key).second && !doubled) doubled = key;
    }
    return true;
  };
  return Json::parse(line.begin(), line.end(), note, false);
}

}  // namespace

bool changes_something(ClientCommand::Kind kind) {
  switch (kind) {
    case ClientCommand::Kind::kReload:
      return true;
    case ClientCommand::Kind::kStatus:
    case ClientCommand::Kind::kLatency:
    case ClientCommand::Kind::kSubscribe:
    case ClientCommand::Kind::kRecord:
    case ClientCommand::Kind::kSnapshot:
      break;
  }
  return false;
}

tl::expected<ClientCommand, CommandFault> parse_command(std::string_view line,
                                                        const std::vector<std::string>& patterns) {
  const std::size_t malformed = utf8_first_fault(line);
  if (malformed != std::string_view::npos)
    return fault("", "byte " + std::to_string(malformed + 1) + " is not UTF-8; " + kNotJson);
  if (nests_too_deep(line))
    return fault("", "nested deeper than " + std::to_string(kMostDepth) + " levels; " + kNotJson);
  try {
    std::optional<std::string> doubled;
    const Json object = parse_object(line, doubled);
    if (!object.is_object()) return fault("", in_quotes(line) + " " + kNotJson);
    if (doubled)
      return fault("", "the key " + in_quotes(*doubled) + " stands twice; keep one of them");
    return read_command(object, patterns);
  } catch (const Json::exception& foreign) {
    return fault("", printable(foreign.what()) + "; " + kNotJson);
  }
}

}  // namespace patternd
