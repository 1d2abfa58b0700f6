#include "daemon/service.h"

#include <algorithm>
#include <spdlog/spdlog.h>
#include <utility>

#include "daemon/latency_report.h"
#include "daemon/log.h"
#include "daemon/log_value.h"
#include "daemon/preflight.h"

namespace patternd {
namespace {

// Frames that wait to be computed: one of a live camera (Capture sees to that), two of a recording.
constexpr std::size_t kQueuedFrames = 2;
constexpr std::size_t kResultSlots = 4;
// A source that is not being opened lets go of its thread well within this.
constexpr int kCaptureStopMs = 300;

// A camera that may yet come is waited for; a mistake in the configuration never heals.
bool may_come(const Error& error) {
  switch (error.code) {
    case ErrorCode::kNotFound:
    case ErrorCode::kIo:
    case ErrorCode::kTimeout:
    case ErrorCode::kDevice:
    case ErrorCode::kEndOfStream:
      return true;
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kParse:
    case ErrorCode::kUnsupported:
    case ErrorCode::kExhausted:
    case ErrorCode::kInternal:
      break;
  }
  return false;
}

Result<std::vector<Listener>> open_listeners(const Configuration& configuration,
                                             std::vector<Listener> inherited) {
  std::vector<Listener> listeners;
  for (const Address& address : configuration.listen) {
    const auto has_it = [&address](const Listener& each) { return each.address() == address; };
    const auto found = std::find_if(inherited.begin(), inherited.end(), has_it);
    if (found != inherited.end()) {
      listeners.push_back(std::move(*found));
      inherited.erase(found);
      continue;
    }
    auto listener = Listener::open(address, configuration.unix_file);
    if (!listener) return tl::make_unexpected(listener.error());
    listeners.push_back(std::move(*listener));
  }
  if (inherited.empty()) return listeners;
  return fail(ErrorCode::kInvalidArgument,
              shown(inherited.front().address()) +
                  ": systemd listens there for patternd, but publish does not name it; make "
                  "ListenStream in patternd.socket and the address under publish the same");
}

}  // namespace

Service::Service(ServiceOptions options, Configuration configuration, ServiceParts parts)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      started_ns_(monotonic_ns()),
      configuration_(std::make_shared<const Configuration>(std::move(configuration))),
      queue_(kQueuedFrames) {}

Result<std::unique_ptr<Service>> Service::create(ServiceOptions options,
                                                 Configuration configuration, ServiceParts parts,
                                                 std::vector<Listener> inherited) {
  std::vector<Address> inherited_addresses;
  for (const Listener& listener : inherited) inherited_addresses.push_back(listener.address());
  auto opened_listeners = open_listeners(configuration, std::move(inherited));
  if (!opened_listeners) return tl::make_unexpected(opened_listeners.error());
  std::vector<Listener> listeners = std::move(*opened_listeners);
  std::shared_ptr<LatencyLog> log;
  if (!configuration.latency_log.empty()) {
    auto opened = LatencyLog::open(configuration.latency_log);
    if (!opened) return tl::make_unexpected(opened.error());
    log = std::move(*opened);
    log_state_of(*log);
  }
  std::unique_ptr<Service> service(
      new Service(std::move(options), std::move(configuration), std::move(parts)));
  Service* self = service.get();
  PublisherCallbacks callbacks;
  callbacks.status = [self] { return self->status(); };
  callbacks.latency = [self] { return self->latency(); };
  callbacks.reload = [self](std::uint64_t client) {
    const std::lock_guard<std::mutex> lock(self->state_mutex_);
    self->reload_requests_.push_back(client);
    self->bell_.ring();
  };
  callbacks.frames = [self](std::uint64_t client, const ClientCommand& command) {
    return self->frame_sender_->begin(client, command);
  };
  callbacks.gone = [self](std::uint64_t client) { self->frame_sender_->end(client); };
  service->latency_log_ = log;
  service->listeners_ = std::move(listeners);
  service->inherited_addresses_ = std::move(inherited_addresses);
  service->publisher_ = std::make_unique<Publisher>(std::vector<Listener>(), std::move(callbacks),
                                                    service->statistics_, kResultSlots);
  service->publisher_->set_access(service->configuration_->tcp_access);
  service->publisher_->set_latency_log(log);
  service->publisher_->greet_with(greeting_for(*service->configuration_, nullptr));
  service->frame_sender_ = std::make_unique<FrameSender>(
      [self](std::uint64_t client, std::string text, std::shared_ptr<std::atomic<bool>> busy) {
        self->publisher_->send_bulk(client, std::move(text), std::move(busy));
      });
  service->compute_ = std::make_unique<Compute>(service->queue_, *service->publisher_,
                                                [self] { self->bell_.ring(); });
  return service;
}

Service::~Service() {
  stop(0);
  // Its callbacks use what is destroyed next.
  if (const auto running = capture()) running->stop();
}

std::shared_ptr<const Configuration> Service::configuration() const {
  const std::lock_guard<std::mutex> lock(state_mutex_);
  return configuration_;
}

std::shared_ptr<Capture> Service::capture() const {
  const std::lock_guard<std::mutex> lock(state_mutex_);
  return capture_;
}

Result<std::shared_ptr<Capture>> Service::make_capture(const Configuration& configuration) {
  const CameraConfig& camera = configuration.camera;
  auto source = parts_.make_source(camera);
  if (!source) return tl::make_unexpected(source.error());
  CaptureMemory memory;
  if (parts_.make_frame_memory) memory.frames = parts_.make_frame_memory(configuration.compute);
  memory.most_in_flight = static_cast<std::size_t>(configuration.compute.streams);
  CaptureCallbacks callbacks;
  callbacks.opened = [this](const SourceFormat& format) { return camera_opened(format); };
  callbacks.camera = [this](bool lost, const std::string& why) { camera_changed(lost, why); };
  callbacks.frame = [this](const RawImageView& image, const FrameInfo& info) {
    frame_sender_->offer(image, info);
  };
  callbacks.ended = [this](const std::optional<Error>& error) { camera_ended(error); };
  return std::make_shared<Capture>(std::move(*source), std::move(memory), queue_, sequence_,
                                   std::move(callbacks), camera.max_silence_s);
}

Result<void> Service::open() {
  if (auto opened = open_camera(); !opened) return opened;
  publisher_->change_listeners(std::move(listeners_), {});
  publisher_->settle();
  return {};
}

Result<void> Service::open_camera() {
  auto made = make_capture(*configuration());
  if (!made) return tl::make_unexpected(made.error());
  const std::shared_ptr<Capture> opened = *made;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    capture_ = opened;
  }
  const auto format = opened->open();
  if (format) return camera_opened(*format);
  if (!opened->is_live() || !may_come(format.error())) return tl::make_unexpected(format.error());
  // A camera may come; what the configuration cannot do with it is refused now.
  const auto backend = check_unseen_camera(*configuration(), parts_.make_processor);
  if (!backend) return tl::make_unexpected(backend.error());
  tell_backend(*backend);
  camera_changed(true, format.error().message);
  return {};
}

void Service::start() {
  started_ = true;
  capture()->start();
}

// On the capture thread, or on the main one before it starts.
Result<void> Service::camera_opened(const SourceFormat& format) {
  const std::lock_guard<std::mutex> change(change_mutex_);
  std::shared_ptr<const Configuration> configuration;
  std::uint32_t number = 0;
  bool fits = false;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    configuration = configuration_;
    number = configuration_number_;
    format_ = format;
    fits = generation_ != nullptr && same_format(generation_->format, format) &&
           generation_->number == number;
  }
  if (fits) return {};
  auto generation = make_generation(*configuration, number, format, parts_.make_processor);
  if (!generation) return tl::make_unexpected(generation.error());
  use(*generation);
  publisher_->greet_with(greeting_for(*configuration, generation->get()));
  return {};
}

void Service::use(const std::shared_ptr<Generation>& generation) {
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    generation_ = generation;
  }
  compute_->set_next(generation);
  tell_backend(generation->backend);
}

void Service::tell_backend(const BackendNote& note) {
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    if (note == told_backend_) return;
    told_backend_ = note;
  }
  log_backend(note);
}

void Service::camera_changed(bool lost, const std::string& reason) {
  const std::string name = configuration()->camera.name;
  if (lost) {
    spdlog::warn(
        "camera={} state=lost reason={} consequence=\"no results until it is back; "
        "patternd keeps trying\"",
        log_value(name), log_quoted(reason));
  } else {
    spdlog::info("camera={} state=running source={}", log_value(name), log_quoted(reason));
  }
  std::optional<FrameSize> frame;
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    if (!lost && format_) frame = FrameSize{format_->width, format_->height};
  }
  publisher_->tell_camera(lost, reason, frame);
  bell_.ring();
}

void Service::camera_ended(const std::optional<Error>& error) {
  {
    const std::lock_guard<std::mutex> lock(state_mutex_);
    end_error_ = error;
  }
  ended_ = true;
  bell_.ring();
}

std::optional<Error> Service::end_error() const {
  const std::lock_guard<std::mutex> lock(state_mutex_);
  return end_error_;
}

std::vector<std::uint64_t> Service::take_reload_requests() {
  const std::lock_guard<std::mutex> lock(state_mutex_);
  return std::exchange(reload_requests_, {});
}

void Service::tick() {
  bell_.clear();
  answer_pending();
  // What a reload replaced is taken apart here, away from the frames.
  (void)compute_->take_retired();
}

bool Service::stop(int patience_ms, int compute_ms) {
  if (stopped_) return true;
  stopped_ = true;
  const auto running = capture();
  if (running != nullptr) {
    running->request_stop();
    if (running->wait_stopped(kCaptureStopMs)) running->stop();
  }
  queue_.close();
  const bool computed = compute_ == nullptr || compute_->finish(compute_ms);
  if (!computed) spdlog::warn("state=stopping reason=\"a frame takes too long and is given up\"");
  if (frame_sender_ != nullptr) frame_sender_->stop();
  answer_pending();
  if (publisher_ != nullptr) publisher_->finish(patience_ms);
  return computed && (running == nullptr || running->wait_stopped(0));
}

Json Service::latency() const { return latency_json(statistics_, monotonic_ns()); }

bool Service::makes_progress(std::int64_t limit_ns) const {
  const std::int64_t oldest_allowed = monotonic_ns() - limit_ns;
  const auto running = capture();
  const bool captures = ended_ || running == nullptr || running->last_round_ns() >= oldest_allowed;
  return captures && compute_->last_round_ns() >= oldest_allowed &&
         publisher_->last_round_ns() >= oldest_allowed;
}

}  // namespace patternd
