// Reload: the new configuration is read, checked and made ready beside the running one, then taken
// over between two frames; or nothing changes.
#include <algorithm>
#include <filesystem>
#include <spdlog/spdlog.h>
#include <system_error>
#include <utility>

#include "daemon/log.h"
#include "daemon/log_value.h"
#include "daemon/preflight.h"
#include "daemon/service.h"

namespace patternd {
namespace {

// How long a reply waits for the first frame under the new configuration.
constexpr std::int64_t kFirstFrameNs = 3'000'000'000;

bool same_camera(const CameraConfig& a, const CameraConfig& b) {
  return a.kind == b.kind && a.device == b.device && a.pipeline == b.pipeline && a.path == b.path &&
         a.loop == b.loop && a.realtime == b.realtime && a.width == b.width &&
         a.height == b.height && a.format == b.format && a.fps == b.fps &&
         a.controls == b.controls && a.max_silence_s == b.max_silence_s;
}

// A device that is not there cannot be the one that runs.
bool may_be_there(const CameraConfig& camera) {
  std::error_code unknown;
  return camera.kind != CameraConfig::Kind::kV4l2 ||
         std::filesystem::exists(camera.device, unknown) || unknown;
}

}  // namespace

void Service::reload(std::optional<std::uint64_t> client) {
  auto prepared = prepare_reload();
  if (!prepared) return refuse_reload(prepared.error(), client);
  const bool camera_stays = same_camera(prepared->configuration->camera, configuration()->camera);
  std::unique_lock<std::mutex> change(change_mutex_, std::defer_lock);
  // While the capture thread runs it may be opening the camera; it is held off. Where the camera
  // changes that thread is ended, which the lock would prevent.
  if (camera_stays) change.lock();
  const auto ready = camera_stays ? keep_camera(*prepared) : change_camera(*prepared);
  if (!ready) return refuse_reload(ready.error(), client);
  commit(std::move(*prepared), client);
}

Result<Service::Prepared> Service::prepare_reload() const {
  auto loaded = load_configuration(options_.config_path, options_.overrides);
  if (!loaded) return tl::make_unexpected(loaded.error());
  Prepared prepared;
  prepared.configuration = std::make_shared<const Configuration>(std::move(*loaded));
  if (auto outputs = prepare_outputs(prepared); !outputs)
    return tl::make_unexpected(outputs.error());
  return prepared;
}

Result<void> Service::prepare_generation(Prepared& prepared, const SourceFormat& format) const {
  std::uint32_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    number = configuration_number_ + 1;
  }
  auto generation = make_generation(*prepared.configuration, number, format, parts_.make_processor);
  if (!generation) return tl::make_unexpected(generation.error());
  prepared.generation = std::move(*generation);
  return {};
}

Result<void> Service::keep_camera(Prepared& prepared) const {
  std::optional<SourceFormat> format;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    format = format_;
  }
  // A camera that has never been there: its processor is made when it comes.
  if (format) return prepare_generation(prepared, *format);
  auto backend = check_unseen_camera(*prepared.configuration, parts_.make_processor);
  if (!backend) return tl::make_unexpected(backend.error());
  prepared.unseen_backend = std::move(*backend);
  return {};
}

Result<void> Service::prepare_outputs(Prepared& prepared) const {
  const auto running = configuration();
  for (const Address& address : prepared.configuration->listen) {
    if (std::find(running->listen.begin(), running->listen.end(), address) !=
        running->listen.end()) {
      prepared.kept_addresses.push_back(address);
      if (auto good = keep_socket(address, *running, *prepared.configuration); !good) return good;
      continue;
    }
    auto listener = Listener::open(address, prepared.configuration->unix_file);
    if (!listener) return tl::make_unexpected(listener.error());
    prepared.new_listeners.push_back(std::move(*listener));
  }
  // Opened anew each time, so that a rotated log is followed.
  if (prepared.configuration->latency_log.empty()) return {};
  auto log = LatencyLog::open(prepared.configuration->latency_log);
  if (!log) return tl::make_unexpected(log.error());
  prepared.latency_log = std::move(*log);
  log_state_of(*prepared.latency_log);
  return {};
}

// A socket's file that systemd made is systemd's; SocketMode= is for it.
Result<void> Service::keep_socket(const Address& address, const Configuration& running,
                                  const Configuration& next) const {
  const bool same = running.unix_file.mode == next.unix_file.mode &&
                    running.unix_file.group == next.unix_file.group;
  const bool inherited = std::find(inherited_addresses_.begin(), inherited_addresses_.end(),
                                   address) != inherited_addresses_.end();
  return same || inherited ? Result<void>() : Listener::set_permissions(address, next.unix_file);
}

// Where the new camera cannot be the old one's device, the old one runs on until the new one is
// known to work.
Result<void> Service::change_camera(Prepared& prepared) {
  const CameraConfig& wanted = prepared.configuration->camera;
  auto made = make_capture(*prepared.configuration);
  if (!made) return tl::make_unexpected(made.error());
  const auto running = capture();
  const bool may_be_same = running->is_live() && (*made)->is_live() && may_be_there(wanted);
  if (may_be_same) {
    if (auto good = swap_device(prepared, **made); !good) return good;
  } else {
    if (auto good = try_camera(prepared, **made); !good) return good;
    running->stop();
  }
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    format_ = prepared.generation->format;
  }
  restart_camera(*made);
  return {};
}

Result<void> Service::try_camera(Prepared& prepared, Capture& camera) const {
  const auto format = camera.open();
  return format ? prepare_generation(prepared, *format)
                : Result<void>(tl::make_unexpected(format.error()));
}

// The running camera is given up only for as long as it takes to see that the new one works.
Result<void> Service::swap_device(Prepared& prepared, Capture& wanted) {
  auto old = make_capture(*configuration());
  if (!old) return tl::make_unexpected(old.error());
  const auto running = capture();
  const std::int64_t closed_ns = monotonic_ns();
  running->stop();
  const auto good = try_camera(prepared, wanted);
  if (good) return {};
  wanted.stop();
  // Where it does not open its thread goes on trying.
  (void)(*old)->open();
  (*old)->carry_on(running->state());
  restart_camera(*old);
  if (started_) (*old)->start();
  const std::int64_t closed_ms = (monotonic_ns() - closed_ns) / 1'000'000;
  return fail(good.error().code, good.error().message + "; the running camera was closed for " +
                                     std::to_string(closed_ms) +
                                     " ms to try this, and its frames of that time are lost");
}

void Service::restart_camera(const std::shared_ptr<Capture>& camera) {
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    capture_ = camera;
    end_error_.reset();
  }
  ended_ = false;
  // Frames of the camera before that still wait must not meet the new configuration.
  while (auto waiting = queue_.try_pop()) release_frame(*waiting);
}

void Service::commit(Prepared prepared, std::optional<std::uint64_t> client) {
  const auto& next = *prepared.configuration;
  set_log_level(next.log_level);
  log_notes(next);
  const bool has_tcp =
      std::any_of(next.listen.begin(), next.listen.end(),
                  [](const Address& address) { return address.kind == Address::Kind::kTcp; });
  // Where TCP is given up, those who are still connected keep the terms they came under.
  if (has_tcp) publisher_->set_access(next.tcp_access);
  publisher_->change_listeners(std::move(prepared.new_listeners), prepared.kept_addresses);
  publisher_->set_latency_log(prepared.latency_log);
  std::shared_ptr<Capture> camera;
  std::uint32_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    configuration_ = prepared.configuration;
    latency_log_ = prepared.latency_log;
    number = ++configuration_number_;
    last_reload_ = "good";
    camera = capture_;
  }
  if (prepared.generation != nullptr) use(prepared.generation);
  if (prepared.unseen_backend) tell_backend(*prepared.unseen_backend);
  publisher_->greet_with(greeting_for(next, prepared.generation.get()));
  spdlog::info("configuration={} file={} state=accepted patterns={}", number,
               log_quoted(options_.config_path), next.patterns.size());
  pending_.push_back({prepared.generation, client, monotonic_ns() + kFirstFrameNs});
  if (started_ && !camera->is_running()) camera->start();
}

void Service::refuse_reload(const Error& error, std::optional<std::uint64_t> client) {
  spdlog::error("reload=refused file={} reason={} consequence=\"the running configuration stays\"",
                log_quoted(options_.config_path), log_quoted(error.message));
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    last_reload_ = "refused: " + error.message;
  }
  if (client) {
    publisher_->reply(*client,
                      error_line("reload", "the running configuration stays: " + error.message));
  }
}

void Service::answer_pending() {
  const std::int64_t now = monotonic_ns();
  const auto answer = [this, now](const Pending& pending) {
    const bool started = pending.generation != nullptr && pending.generation->started;
    if (!started && now < pending.deadline_ns && !ended_ && !stopped_) return false;
    Json data = {{"configuration", nullptr}, {"first_seq", nullptr}};
    if (pending.generation != nullptr) data["configuration"] = pending.generation->number;
    if (started) {
      const std::uint64_t seq = pending.generation->first_seq;
      data["first_seq"] = seq;
      spdlog::info("configuration={} state=running first_seq={}", pending.generation->number, seq);
    } else {
      data["note"] = "accepted; no frame has come since";
      spdlog::info("state=accepted note=\"the new configuration runs from the next frame on\"");
    }
    if (pending.client) publisher_->reply(*pending.client, reply_line("reload", data));
    return true;
  };
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(), answer), pending_.end());
}

}  // namespace patternd
