#include "tools/patternctl/command_record.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <unistd.h>

#include "daemon/configuration.h"
#include "tools/patternctl/recorder.h"
#include "tools/patternctl/service_option.h"

namespace patternd::tools {
namespace {

std::atomic<bool> g_stopping{false};

struct RecordArguments {
  RecordOptions options;
  std::string configuration;
  ServiceOption service;
  bool png = false;
  bool video = false;
};

void stop_on_signals() {
  const auto stop = [](int) { g_stopping = true; };
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
}

void show_progress(const RecordSummary& summary) {
  std::fprintf(stderr, "\r%llu frames, %llu lost, %.1f s ",
               static_cast<unsigned long long>(summary.frames),
               static_cast<unsigned long long>(summary.dropped), summary.seconds);
}

void print_summary(const RecordSummary& summary, const std::string& folder, bool json) {
  if (json) {
    const Json line = {{"type", "recorded"},         {"folder", folder},
                       {"frames", summary.frames},   {"dropped", summary.dropped},
                       {"seconds", summary.seconds}, {"source", summary.source}};
    std::fputs(line_of(line).c_str(), stdout);
    return;
  }
  std::printf("%s: %llu frames in %.3f s, %llu lost, from %s\n", folder.c_str(),
              static_cast<unsigned long long>(summary.frames), summary.seconds,
              static_cast<unsigned long long>(summary.dropped), summary.source.c_str());
}

// Records from the camera that the configuration names.
Result<RecordSummary> record_camera(const RecordArguments& a) {
  const auto configuration = load_configuration(a.configuration);
  if (!configuration) return tl::make_unexpected(configuration.error());
  auto source = make_source(configuration->camera);
  if (!source) return tl::make_unexpected(source.error());
  stop_on_signals();
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  auto summary = record_frames(**source, a.options, g_stopping, [&](const RecordSummary& s) {
    if (terminal) show_progress(s);
  });
  if (terminal) std::fputs("\n", stderr);
  return summary;
}

// Asks a running service to record; its answer.
Result<Json> record_service(const RecordArguments& a) {
  Json command = {{"command", "record"}};
  if (a.options.seconds > 0) command["seconds"] = a.options.seconds;
  if (a.options.frames > 0) command["frames"] = a.options.frames;
  return ask_service(a.service, command);
}

void record(const RecordArguments& a, Context& context) {
  if (a.service.address.empty()) {
    const auto summary = record_camera(a);
    if (!summary) return context.fail("record", summary.error());
    return print_summary(*summary, a.options.folder, context.json);
  }
  const auto reply = record_service(a);
  if (!reply) return context.fail("record", reply.error());
  std::fputs(line_of(*reply).c_str(), stdout);
}

}  // namespace

void add_record(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* command = program.add_subcommand(
      "record",
      "Writes a recording: numbered pictures (or a video) and index.jsonl, to be replayed");
  CLI::Option* seconds =
      command->add_option("--seconds", arguments->options.seconds, "Ends after so many seconds")
          ->check(CLI::PositiveNumber);
  command
      ->add_option("--frames", arguments->options.frames,
                   "Ends after so many frames (without either: on SIGINT or SIGTERM)")
      ->check(CLI::PositiveNumber)
      ->excludes(seconds);
  CLI::Option* png =
      command->add_flag("--png", arguments->png, "PNG pictures, smaller and slower than PGM");
  command->add_flag("--video", arguments->video, "One lossless video (FFV1)")->excludes(png);
  auto* from = command->add_option_group("Source", "Where frames come from; one of");
  from->add_option("--config", arguments->configuration,
                   "The camera of this configuration of the service");
  arguments->service.address.clear();
  from->add_option("SERVICE", arguments->service.address, "HOST:PORT of a running service");
  from->require_option(1);
  add_service_credentials(command, arguments->service);
  command->add_option("-o,--output", arguments->options.folder, "A folder, new or empty")
      ->required();
  command->callback([arguments, &context] {
    if (arguments->png) arguments->options.format = RecordingFormat::kPng;
    if (arguments->video) arguments->options.format = RecordingFormat::kVideo;
    record(*arguments, context);
  });
}

}  // namespace patternd::tools
