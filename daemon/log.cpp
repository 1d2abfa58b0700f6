#include "daemon/log.h"

#include <cstdlib>
#include <memory>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <string>

#include "daemon/log_value.h"

namespace patternd {
namespace {

// "<N>": the line's priority in the numbers of syslog(3).
class PriorityFlag : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const char* text = "<6>";
    if (message.level >= spdlog::level::err) text = "<3>";
    if (message.level == spdlog::level::warn) text = "<4>";
    if (message.level <= spdlog::level::debug) text = "<7>";
    out.append(text, text + 3);
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PriorityFlag>();
  }
};

}  // namespace

void set_up_log(LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("patternd",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<PriorityFlag>('*');
  formatter->set_pattern(
      std::getenv("JOURNAL_STREAM") != nullptr ? "%*%v" : "%Y-%m-%dT%H:%M:%S.%eZ %^%l%$ %v");
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
  set_log_level(level);
}

void log_notes(const Configuration& configuration) {
  for (const std::string& note : configuration.notes)
    spdlog::warn("configuration={} note={}", log_quoted(configuration.file), log_quoted(note));
}

void log_state_of(const LatencyLog& latency_log) {
  const std::string error = latency_log.state().error;
  if (error.empty()) return;
  spdlog::warn(
      "latency_log={} state=failing reason={} consequence=\"its lines are lost, and "
      "counted "
      "in status, until it can be written\"",
      log_quoted(latency_log.path()), log_quoted(error));
}

void log_backend(const BackendNote& note) {
  if (!note.by_auto) return;
  if (note.passes_gpu_over) {
    spdlog::warn("backend={} chosen_by=auto reason={} consequence=\"the GPU is not used\"",
                 note.backend, log_quoted(note.reason));
  } else {
    spdlog::info("backend={} chosen_by=auto reason={}", note.backend, log_quoted(note.reason));
  }
}

void set_log_level(LogLevel level) {
  constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                   spdlog::level::warn, spdlog::level::err};
  spdlog::set_level(kLevels[static_cast<std::size_t>(level)]);
}

}  // namespace patternd
