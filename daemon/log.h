// How the service logs: key=value lines on stderr, which journald stores with their priority.
#pragma once

#include "daemon/configuration.h"
#include "daemon/generation.h"
#include "pipeline/latency_log.h"

namespace patternd {

// Call once at start. Under systemd (JOURNAL_STREAM is set) a line begins with "<N>", the priority
// that journald strips; otherwise with the time (UTC) and the level.
void set_up_log(LogLevel level);
// Logs what a configuration says that may not be meant.
void log_notes(const Configuration& configuration);
// Warns where a log that was just opened cannot be written for now.
void log_state_of(const LatencyLog& latency_log);
// Logs what `auto` chose; a GPU that is there and not used is a warning.
void log_backend(const BackendNote& note);
void set_log_level(LogLevel level);

}  // namespace patternd
