// Latency as said in the reply to `latency`, and as a table for people.
#pragma once

#include <cstdint>
#include <string>

#include "daemon/messages.h"
#include "pipeline/latency_histogram.h"

namespace patternd {

// {"since_start":{"capture":{"count":…,"p50_us":…,"p95_us":…,"p99_us":…,"max_us":…},…},
//  "last_minute":{…}}: every stage is there, in the frame's order; 0 where it never ran.
[[nodiscard]] Json latency_json(const LatencyStatistics& statistics, std::int64_t now_ns);
// Such an object as text, a line a stage. What does not have its shape is left out.
[[nodiscard]] std::string latency_table(const Json& latency);

}  // namespace patternd
