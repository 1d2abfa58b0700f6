// What the service says about itself.
#include <cmath>

#include "daemon/latency_report.h"
#include "daemon/service.h"
#include "tools/version.h"

namespace patternd {
namespace {

double seconds_since(std::int64_t then_ns) {
  return std::floor(static_cast<double>(monotonic_ns() - then_ns) / 1e6) / 1000;
}

Json camera_json(const Configuration& configuration, const CaptureState& state) {
  Json camera = {{"name", configuration.camera.name},
                 {"source", name_of(configuration.camera.kind)},
                 {"state", state.lost ? "lost" : "running"}};
  if (state.lost) camera["reason"] = state.reason;
  camera["description"] = state.description;
  camera["capture_path"] = state.path;
  camera["capture"] = state.capture;
  camera["frames"] = state.frames;
  camera["dropped"] = state.dropped;
  camera["copied"] = state.copied;
  camera["reopened"] = state.reopened;
  // Health is the age of the last frame, whatever else looks fine.
  camera["last_frame_age_s"] =
      state.last_frame_ns == 0 ? Json(nullptr) : Json(seconds_since(state.last_frame_ns));
  return camera;
}

Json publish_json(const PublisherCounters& counters, const std::vector<Address>& addresses) {
  Json listen = Json::array();
  for (const Address& address : addresses) listen.push_back(shown(address));
  return {{"listen", listen},
          {"clients", counters.clients},
          {"accepted", counters.accepted},
          {"refused", counters.refused},
          {"denied", counters.denied},
          {"failed_handshakes", counters.failed_handshakes},
          {"wrong_tokens", counters.wrong_tokens},
          {"vanished", counters.vanished},
          {"results", counters.results},
          {"dropped_results", counters.dropped_results}};
}

}  // namespace

Json Service::status() const {
  std::unique_lock<std::mutex> lock(state_mutex_);
  const auto configuration = configuration_;
  const auto generation = generation_;
  const auto running = capture_;
  const auto log = latency_log_;
  const std::uint32_t number = configuration_number_;
  const std::string last_reload = last_reload_;
  lock.unlock();

  const CaptureState camera = running != nullptr ? running->state() : CaptureState();
  Json status = {{"server", std::string("patternd ") + version_number()},
                 {"uptime_s", seconds_since(started_ns_)},
                 {"camera", camera_json(*configuration, camera)}};
  Json patterns = Json::array();
  for (const auto& entry : configuration->patterns) patterns.push_back(entry.name);
  status["configuration"] = {{"file", options_.config_path},
                             {"number", number},
                             {"last_reload", last_reload},
                             {"patterns", patterns}};
  if (generation != nullptr) {
    const bool started = generation->started;
    status["configuration"]["first_seq"] =
        started ? Json(generation->first_seq.load()) : Json(nullptr);
    status["frame"] = {{"width", generation->format.width},
                       {"height", generation->format.height},
                       {"format", name_of(generation->format.format, generation->format.bayer)},
                       {"fps", rounded(generation->format.fps, 3)}};
    status["compute"] = {{"backend", generation->processor->backend()},
                         {"description", generation->processor->description()},
                         {"streams", generation->processor->depth()},
                         {"frames", compute_->computed()},
                         {"failed", compute_->failed()}};
    if (generation->drift_watch) {
      const Drift drift = generation->drift();
      status["fiducials"] = drift_json(drift);
      status["fiducials"]["compared"] = drift.compared;
    }
  }
  status["publish"] = publish_json(publisher_->counters(), publisher_->bound_addresses());
  if (log != nullptr) {
    const LatencyLog::State state = log->state();
    status["latency_log"] = {{"file", log->path()}, {"lost", state.lost}};
    if (!state.error.empty()) status["latency_log"]["error"] = state.error;
  }
  return status;
}

std::string Service::status_text() const {
  const auto running = capture();
  const CaptureState camera = running != nullptr ? running->state() : CaptureState();
  const PublisherCounters counters = publisher_->counters();
  const std::string clients = std::to_string(counters.clients) + " clients";
  if (camera.lost && camera.frames == 0)
    return "waiting for the camera: " + camera.reason + "; " + clients;
  if (camera.lost) return "camera lost: " + camera.reason + "; " + clients;
  return "running: " + std::to_string(counters.results) + " results, " +
         std::to_string(camera.dropped) + " frames dropped, " + clients;
}

}  // namespace patternd
