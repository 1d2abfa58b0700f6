// patternd: the service's command line, signals and life.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <string>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>

#include "cuda/device_image.h"
#include "daemon/backend.h"
#include "daemon/configuration.h"
#include "daemon/configuration_keys.h"
#include "daemon/latency_report.h"
#include "daemon/log.h"
#include "daemon/log_value.h"
#include "daemon/preflight.h"
#include "daemon/service.h"
#include "daemon/service_manager.h"
#include "tools/standard_output.h"
#include "tools/usage_error.h"
#include "tools/version.h"

namespace patternd {
namespace {

enum ExitCode : int { kExitGood = 0, kExitFailed = 1, kExitUsage = 2 };

constexpr int kTickMs = 250;
constexpr std::int64_t kStatusNs = 5'000'000'000;
// What clients get to read the last results: on SIGTERM within a second, at a recording's end more.
constexpr int kStopPatienceMs = 400;
constexpr int kStopComputeMs = 350;
constexpr int kEndPatienceMs = 5000;
constexpr rlim_t kWantedFiles = 4096;

struct CommandLine {
  ServiceOptions options;
  std::string replay;
  std::string backend;
  bool check = false;
  bool keys = false;
  std::uint64_t wait_clients = 0;
};

void add_options(CLI::App& program, CommandLine& line) {
  program.set_version_flag("--version",
                           [] { return version_text("patternd", cuda::embedded_image_names()); });
  program.add_option("--config", line.options.config_path, "The configuration's file")
      ->type_name("FILE");
  program.add_flag("--check", line.check,
                   "Check the configuration, print what is effective, say which backend would run "
                   "and why (on stderr), and end");
  program.add_option("--replay", line.replay, "Take frames from here instead of the camera")
      ->type_name("PATH");
  program.add_flag("--loop", line.options.overrides.loop, "With --replay: begin again at the end")
      ->needs("--replay");
  program
      .add_flag("--fast", line.options.overrides.fast,
                "With --replay: as fast as possible, not at the recorded pace")
      ->needs("--replay");
  program.add_option("--backend", line.backend, "Instead of compute.backend")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  program
      .add_option("--wait-clients", line.wait_clients,
                  "Take the first frame once so many clients are connected")
      ->check(tools::between(0, 512));
  program.add_flag("--keys", line.keys, "Print the table of all configuration keys, and end");
}

void report(const std::string& message) { std::fprintf(stderr, "%s\n", message.c_str()); }

int exit_code_of(const Error& error) {
  const bool wrong_use = error.code == ErrorCode::kInvalidArgument ||
                         error.code == ErrorCode::kNotFound || error.code == ErrorCode::kParse;
  return wrong_use ? kExitUsage : kExitFailed;
}

ServiceParts service_parts() {
  return {make_source, make_configured_processor, make_configured_frame_memory};
}

// "backend: cpu (no NVIDIA driver: …)".
std::string in_words(const BackendNote& note) {
  return "backend: " + note.backend +
         (note.passes_gpu_over ? ", not the GPU that is there (" : " (") + note.reason + ")";
}

// `backend_is_given`: by the command line, so that it need not be said.
int check(const Configuration& configuration, bool backend_is_given) {
  set_up_log(LogLevel::kError);  // what is printed here is the configuration
  const auto backend = check_start(configuration, service_parts());
  if (!backend) {
    report(backend.error().message);
    return exit_code_of(backend.error());
  }
  for (const std::string& note : configuration.notes)
    report(configuration.file + ": note: " + note);
  if (!backend_is_given) report(configuration.file + ": " + in_words(*backend));
  const std::string text = to_yaml(configuration) + rectified_corners(configuration);
  std::fputs(text.c_str(), stdout);
  return kExitGood;
}

// The signals that the service answers, as a descriptor; every thread started later inherits that
// they are blocked.
FileDescriptor catch_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kWantedFiles) return;
  limit.rlim_cur = std::min(kWantedFiles, limit.rlim_max);
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

// The main thread's loop.
class Life {
 public:
  Life(Service& service, const FileDescriptor& signals, std::uint64_t wait_clients)
      : service_(service), signals_(signals), wait_clients_(wait_clients) {}

  // Returns when the service is to end; true: by a signal, so within a second.
  bool live() {
    manager_.ready(service_.status_text());
    for (;;) {
      if (!started_ && service_.client_count() >= wait_clients_) {
        service_.start();
        started_ = true;
      }
      // While clients are waited for, their number is looked at often.
      pollfd watched[] = {{signals_.get(), POLLIN, 0}, {service_.bell().fd(), POLLIN, 0}};
      (void)poll(watched, 2, started_ ? tick_ms() : 10);
      service_.tick();
      for (const std::uint64_t client : service_.take_reload_requests()) reload(client);
      if (handle_signals()) return true;
      if (service_.ended()) return false;
      tell_manager();
    }
  }
  [[nodiscard]] const ServiceManager& manager() const { return manager_; }

 private:
  [[nodiscard]] int tick_ms() const {
    const std::int64_t half_ms = manager_.watchdog_ns() / 2'000'000;
    return half_ms > 0 && half_ms < kTickMs ? static_cast<int>(half_ms) : kTickMs;
  }
  void reload(std::optional<std::uint64_t> client) {
    manager_.reloading();
    service_.reload(client);
    manager_.ready(service_.status_text());
  }
  [[nodiscard]] bool handle_signals() {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      if (info.ssi_signo != SIGHUP) {
        spdlog::info("state=stopping signal={}", info.ssi_signo);
        return true;
      }
      reload(std::nullopt);
    }
    return false;
  }
  void tell_manager() {
    const std::int64_t now = monotonic_ns();
    if (manager_.watchdog_ns() > 0 && service_.makes_progress(manager_.watchdog_ns()))
      manager_.feed_watchdog();
    if (now - told_ns_ < kStatusNs) return;
    told_ns_ = now;
    manager_.status(service_.status_text());
  }

  Service& service_;
  const FileDescriptor& signals_;
  const std::uint64_t wait_clients_;
  const ServiceManager manager_;
  bool started_ = false;
  std::int64_t told_ns_ = 0;
};

Result<std::vector<Listener>> adopt_inherited() {
  std::vector<Listener> listeners;
  for (FileDescriptor& socket : take_inherited_sockets()) {
    auto listener = Listener::adopt(std::move(socket));
    if (!listener) return tl::make_unexpected(listener.error());
    listeners.push_back(std::move(*listener));
  }
  return listeners;
}

int serve(const CommandLine& line, const FileDescriptor& signals, Configuration configuration) {
  set_up_log(configuration.log_level);
  raise_file_limit();
  auto inherited = adopt_inherited();
  if (!inherited) {
    report(inherited.error().message);
    return exit_code_of(inherited.error());
  }
  log_notes(configuration);
  auto service = Service::create(line.options, std::move(configuration), service_parts(),
                                 std::move(*inherited));
  if (!service) {
    report(service.error().message);
    return exit_code_of(service.error());
  }
  if (const auto opened = (*service)->open(); !opened) {
    report(opened.error().message);
    return exit_code_of(opened.error());
  }
  for (const Address& address : (*service)->bound_addresses())
    spdlog::info("listen={} version={}", log_value(shown(address)), version_number());
  Life life(**service, signals, line.wait_clients);
  const bool by_signal = life.live();
  life.manager().stopping();
  const bool stopped = by_signal ? (*service)->stop(kStopPatienceMs, kStopComputeMs)
                                 : (*service)->stop(kEndPatienceMs);
  const auto error = (*service)->end_error();
  report(latency_table((*service)->latency()));
  if (error) {
    spdlog::error("state=ended reason={}", log_quoted(error->message));
    return kExitFailed;
  }
  spdlog::info("state=ended results={}", (*service)->result_count());
  // Everything is flushed; what the opening of a camera or a search still waits for ends with the
  // process.
  if (!stopped) std::_Exit(kExitGood);
  return kExitGood;
}

int run(int argc, char** argv) {
  CLI::App program{"Finds taught patterns in a camera's frames and publishes them over TCP",
                   "patternd"};
  CommandLine line;
  add_options(program, line);
  if (const auto ended = tools::parse_command_line(program, argc, argv)) return *ended;
  if (line.keys) {
    std::fputs(configuration_key_table().c_str(), stdout);
    return kExitGood;
  }
  if (line.options.config_path.empty()) {
    report("patternd: --config FILE is missing; config/patternd.yaml is an example");
    return kExitUsage;
  }
  if (!line.replay.empty()) line.options.overrides.replay = line.replay;
  if (!line.backend.empty()) {
    line.options.overrides.backend = line.backend == "cuda"  ? ComputeConfig::Backend::kCuda
                                     : line.backend == "cpu" ? ComputeConfig::Backend::kCpu
                                                             : ComputeConfig::Backend::kAuto;
  }
  // Before anything that takes time: whoever starts the service may reload or end it at once.
  const FileDescriptor signals = line.check ? FileDescriptor() : catch_signals();
  auto configuration = load_configuration(line.options.config_path, line.options.overrides);
  if (!configuration) {
    report(configuration.error().message);
    return kExitUsage;
  }
  if (line.check) return check(*configuration, !line.backend.empty() && line.backend != "auto");
  return serve(line, signals, std::move(*configuration));
}

}  // namespace
}  // namespace patternd

int main(int argc, char** argv) {
  try {
    return patternd::checked_output("patternd", patternd::run(argc, argv));
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "patternd: internal error: %s; please report it with the configuration\n",
                 fault.what());
    return patternd::kExitFailed;
  }
}
