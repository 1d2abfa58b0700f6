#include "tools/patternctl/command_watch.h"

#include <cstdio>
#include <memory>
#include <vector>

#include "tools/patternctl/service_option.h"
#include "tools/usage_error.h"

namespace patternd::tools {
namespace {

struct WatchArguments {
  ServiceOption service;
  std::vector<std::string> patterns;
  int every = 1;
  std::int64_t count = 0;
};

double number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
}

std::string match_in_words(const Json& match) {
  char text[160];
  std::snprintf(text, sizeof text, " (%.2f, %.2f) px %.2f deg x%.3f score %.3f",
                number(match, "x_px"), number(match, "y_px"), number(match, "angle_deg"),
                number(match, "scale"), number(match, "score"));
  std::string words = "  " + match.value("pattern", "") + text;
  if (match.contains("x_mm")) {
    std::snprintf(text, sizeof text, " (%.2f, %.2f) mm", number(match, "x_mm"),
                  number(match, "y_mm"));
    words += text;
  }
  return words + "\n";
}

std::string result_in_words(const Json& result) {
  const Json matches = result.value("matches", Json::array());
  const Json latency = result.value("latency_us", Json::object());
  char head[160];
  std::snprintf(head, sizeof head, "%.0f  %zu matches  %.2f ms", number(result, "seq"),
                matches.size(), number(latency, "total") / 1000);
  std::string words = result.value("captured_at", "") + "  seq " + head;
  if (number(result, "dropped") > 0)
    words += "  " + std::to_string(static_cast<std::int64_t>(number(result, "dropped"))) +
             " frames dropped before";
  if (result.contains("blobs")) words += "  " + std::to_string(result["blobs"].size()) + " blobs";
  words += "\n";
  for (const Json& match : matches) words += match_in_words(match);
  return words;
}

std::string drift_in_words(const Json& drift) {
  const Json shift = drift.value("shift_mm", Json::array());
  const auto part = [&](std::size_t i) {
    return i < shift.size() && shift[i].is_number() ? shift[i].get<double>() : 0.0;
  };
  char text[200];
  std::snprintf(text, sizeof text,
                "drift: the camera %s: %.0f fiducials found, worst %.3f mm off, "
                "shift (%.3f, %.3f) mm, turn %.3f deg\n",
                drift.value("moved", false) ? "has moved" : "is in its place again",
                number(drift, "found"), number(drift, "worst_mm"), part(0), part(1),
                number(drift, "turn_deg"));
  return text;
}

std::string in_words(const Json& object) {
  const std::string type = object.value("type", "");
  if (type == "result") return result_in_words(object);
  if (type == "camera")
    return "camera " + object.value("state", "") + ": " + object.value("reason", "") + "\n";
  if (type == "drift") return drift_in_words(object);
  if (type == "dropped")
    return std::to_string(static_cast<std::int64_t>(number(object, "count"))) +
           " results were lost because we read too slowly\n";
  if (type == "hello")
    return object.value("server", "") + ", camera " + object.value("camera", "") + ", " +
           object.value("backend", "") + "\n";
  return "";
}

Json subscription(const WatchArguments& a) {
  Json command = {{"command", "subscribe"}, {"every", a.every}};
  if (!a.patterns.empty()) command["patterns"] = a.patterns;
  return command;
}

Result<void> watch(const WatchArguments& a, bool json) {
  auto client = connect_to(a.service);
  if (!client) return tl::make_unexpected(client.error());
  if (a.every > 1 || !a.patterns.empty()) {
    if (auto sent = client->send_line(subscription(a)); !sent) return sent;
  }
  std::int64_t seen = 0;
  while (a.count == 0 || seen < a.count) {
    auto line = client->read_line(-1);
    // The service came to its end: a recording does.
    if (!line && line.error().code == ErrorCode::kEndOfStream) return {};
    if (!line) return tl::make_unexpected(line.error());
    const Json object = Json::parse(*line, nullptr, false);
    if (!object.is_object()) return fail(ErrorCode::kParse, "a line that is no JSON object came");
    if (object.value("type", "") == "reply") {
      if (!object.value("ok", false))
        return fail(ErrorCode::kInvalidArgument, object.value("error", ""));
      continue;
    }
    if (object.value("type", "") == "result") ++seen;
    std::fputs((json ? *line + "\n" : in_words(object)).c_str(), stdout);
    if (std::fflush(stdout) != 0) return {};  // whoever read us has enough
  }
  return {};
}

}  // namespace

void add_watch(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<WatchArguments>();
  WatchArguments& a = *arguments;
  CLI::App* command =
      program.add_subcommand("watch", "Shows the results of a running service as they come");
  add_service_option(command, a.service);
  // One name an option, or SERVICE behind it would be taken for a second name.
  command->add_option("--pattern", a.patterns, "Matches of this pattern alone; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--every", a.every, "One result in so many")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--count", a.count, "End after so many results; 0: never")
      ->check(not_negative())
      ->capture_default_str();
  command->callback([arguments, &context] {
    if (auto ok = watch(*arguments, context.json); !ok) context.fail("watch", ok.error());
  });
}

}  // namespace patternd::tools
