#include "daemon/latency_report.h"

#include <cmath>
#include <cstdio>

namespace patternd {
namespace {

// Microseconds to a tenth: finer is noise.
double shown_us(std::int64_t ns) { return std::round(static_cast<double>(ns) / 100) / 10; }

Json summary_json(const LatencySummary& summary) {
  return {{"count", summary.count},
          {"p50_us", shown_us(summary.p50_ns)},
          {"p95_us", shown_us(summary.p95_ns)},
          {"p99_us", shown_us(summary.p99_ns)},
          {"max_us", shown_us(summary.max_ns)}};
}

double number(const Json& summary, const char* key) {
  const auto found = summary.find(key);
  return found != summary.end() && found->is_number() ? found->get<double>() : 0.0;
}

std::string stage_line(const std::string& stage, const Json& summary) {
  char line[160];
  std::snprintf(line, sizeof line, "%-10.10s %10.0f %12.1f %12.1f %12.1f %12.1f\n", stage.c_str(),
                number(summary, "count"), number(summary, "p50_us"), number(summary, "p95_us"),
                number(summary, "p99_us"), number(summary, "max_us"));
  return line;
}

}  // namespace

Json latency_json(const LatencyStatistics& statistics, std::int64_t now_ns) {
  Json since_start = Json::object();
  Json last_minute = Json::object();
  for (std::size_t i = 0; i < kStageCount; ++i) {
    const auto stage = static_cast<Stage>(i);
    since_start[kStageNames[i]] = summary_json(statistics.since_start(stage));
    last_minute[kStageNames[i]] = summary_json(statistics.last_minute(stage, now_ns));
  }
  return {{"since_start", since_start}, {"last_minute", last_minute}};
}

std::string latency_table(const Json& latency) {
  std::string table;
  const char* const kSpans[][2] = {{"since_start", "since start"}, {"last_minute", "last minute"}};
  for (const auto& [key, title] : kSpans) {
    const auto span = latency.find(key);
    if (span == latency.end() || !span->is_object()) continue;
    if (!table.empty()) table += "\n";
    char head[160];
    std::snprintf(head, sizeof head, "%-10s %10s %12s %12s %12s %12s\n", "stage", "count", "p50 us",
                  "p95 us", "p99 us", "max us");
    table += "latency, " + std::string(title) + "\n" + head;
    for (const auto& [stage, summary] : span->items()) {
      if (summary.is_object()) table += stage_line(stage, summary);
    }
  }
  return table;
}

}  // namespace patternd
