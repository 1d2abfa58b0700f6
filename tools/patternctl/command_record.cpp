#include "tools/patternctl/command_record.h"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <unistd.h>

#include "daemon/configuration.h"
#include "tools/patternctl/recorder.h"
#include "tools/patternctl/service_frames.h"
#include "tools/patternctl/service_option.h"
#include "tools/usage_error.h"

namespace patternd::tools {
namespace {

using Progress = std::function<void(const RecordSummary&)>;

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
Result<RecordSummary> record_camera(const RecordArguments& a, const Progress& progress) {
  const auto configuration = load_configuration(a.configuration);
  if (!configuration) return tl::make_unexpected(configuration.error());
  auto source = make_source(configuration->camera);
  if (!source) return tl::make_unexpected(source.error());
  return record_frames(**source, a.options, g_stopping, progress);
}

void record(const RecordArguments& a, Context& context) {
  stop_on_signals();
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  const Progress progress = [terminal](const RecordSummary& s) {
    if (terminal) show_progress(s);
  };
  const auto summary = a.service.address.empty()
                           ? record_camera(a, progress)
                           : record_service(a.service, a.options, g_stopping, progress);
  if (terminal) std::fputs("\n", stderr);
  if (!summary) return context.fail("record", summary.error());
  print_summary(*summary, a.options.folder, context.json);
}

// CLI11 leaves the words of a group of options out of the line of usage.
class UsageWithSource : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = CLI::Formatter::make_usage(app, std::move(name));
    usage.insert(usage.find_last_not_of('\n') + 1, " (--config FILE | SERVICE)");
    return usage;
  }
};

}  // namespace

void add_record(CLI::App& program, Context& context) {
  auto arguments = std::make_shared<RecordArguments>();
  CLI::App* command = program.add_subcommand(
      "record",
      "Writes a recording, to be replayed: luma, as numbered pictures or a video, and index.jsonl");
  command->formatter(std::make_shared<UsageWithSource>());
  CLI::Option* seconds =
      command->add_option("--seconds", arguments->options.seconds, "Ends after so many seconds")
          ->check(above_zero());
  command
      ->add_option("--frames", arguments->options.frames,
                   "Ends after so many frames (without either: on SIGINT or SIGTERM)")
      ->check(above_zero())
      ->excludes(seconds);
  CLI::Option* png =
      command->add_flag("--png", arguments->png, "PNG pictures, smaller and slower than PGM");
  command->add_flag("--video", arguments->video, "One lossless video (FFV1)")->excludes(png);
  auto* from = command->add_option_group("Source", "Where frames come from; one of");
  from->add_option("--config", arguments->configuration,
                   "The camera of this configuration of the service");
  arguments->service.address.clear();
  from->add_option("SERVICE", arguments->service.address,
                   "HOST:PORT of a running service, or the path of its Unix socket");
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
