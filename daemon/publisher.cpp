#include "daemon/publisher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <utility>

namespace patternd {
namespace {

constexpr std::uint64_t kBellTag = 0;
constexpr std::uint64_t kFirstClient = 1000;
constexpr int kRoundMs = 500;
constexpr std::int64_t kMs = 1'000'000;
// Lines of one client that are answered between two looks for results.
constexpr int kMostLines = 8;
// Of TLS handshakes that go on at once: each may cost the processor a millisecond or more.
constexpr std::size_t kMostHandshakeSteps = 2;

// As many as the limit on open files leaves room for.
std::size_t most_clients() {
  constexpr std::size_t kFewest = 8;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return Publisher::kMaxClients;
  const auto files = static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, 1U << 20));
  const std::size_t room =
      files > Publisher::kReservedFiles ? files - Publisher::kReservedFiles : 0;
  return std::clamp(room, kFewest, Publisher::kMaxClients);
}

}  // namespace

Publisher::Publisher(std::vector<Listener> listeners, PublisherCallbacks callbacks,
                     LatencyStatistics& statistics, std::size_t slots,
                     std::chrono::milliseconds peer_patience)
    : callbacks_(std::move(callbacks)),
      statistics_(statistics),
      free_(slots),
      ready_(slots),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      listeners_(std::move(listeners)),
      next_client_(kFirstClient),
      most_clients_(most_clients()),
      ring_(kRingBytes, kRingLines),
      refused_limit_(10'000 * kMs),
      denied_limit_(10'000 * kMs),
      vanished_limit_(10'000 * kMs),
      peer_patience_(peer_patience) {
  take_spare();
  for (std::size_t i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<ResultSlot>());
    free_.try_push(slots_.back().get());
  }
  for (const Listener& listener : listeners_) bound_.push_back(listener.bound_address());
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;  // each ring wakes: the bell need not be read
  event.data.u64 = kBellTag;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.fd(), &event);
  last_round_ns_ = monotonic_ns();
  thread_ = std::thread([this] { run(); });
}

Publisher::~Publisher() { finish(0); }

ResultSlot* Publisher::acquire(std::chrono::milliseconds timeout) {
  return free_.pop(timeout).value_or(nullptr);
}

void Publisher::submit(ResultSlot* slot) {
  ++submitted_;
  ready_.try_push(slot);  // there is room for every slot
  bell_.ring();
}

void Publisher::abandon(ResultSlot* slot) { free_.try_push(slot); }

void Publisher::post(Task task) {
  {
    const std::lock_guard<std::mutex> lock(tasks_mutex_);
    tasks_.push_back(std::move(task));
  }
  bell_.ring();
}

void Publisher::reply(std::uint64_t client, std::string line) {
  post([this, client, text = std::move(line)] {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return;
    found->second->reply_came();
    found->second->send_own(text);
    if (!advance(*found->second)) remove_client(client);
  });
}

void Publisher::send_bulk(std::uint64_t client, std::string text,
                          std::shared_ptr<std::atomic<bool>> busy) {
  // std::function copies what it holds; frames are moved on instead.
  const auto moved = std::make_shared<std::string>(std::move(text));
  post([this, client, moved, busy_flag = std::move(busy)] {
    const auto found = clients_.find(client);
    if (found == clients_.end()) return;
    if (busy_flag == nullptr) found->second->reply_came();
    found->second->send_bulk(std::move(*moved), busy_flag);
    const bool blocked = (found->second->watched_events & EPOLLOUT) != 0;
    if (!blocked && !advance(*found->second)) remove_client(client);
  });
}

void Publisher::tell_camera(bool lost, const std::string& reason,
                            const std::optional<FrameSize>& frame) {
  post([this, lost, text = camera_line(lost, reason, frame)] {
    if (!lost && camera_lost_.empty()) return;  // nobody was told of a loss: no news
    if (lost) publish_ready();  // results from before the loss come before; after it, after
    camera_lost_ = lost ? text : std::string();
    for (const auto& [id, client] : clients_) {
      if (client->subscription().camera && !client->closing()) client->send_own(text);
    }
    flush_clients();
  });
}

void Publisher::tell_drift(const Drift& drift) {
  post([this, last = submitted_.load(), moved = drift.moved, text = drift_line(drift)] {
    publish_ready(last);  // results from before come before, others behind
    camera_moved_ = moved ? text : std::string();
    for (const auto& [id, client] : clients_) {
      if (client->subscription().drift && !client->closing()) client->send_own(text);
    }
    flush_clients();
  });
}

void Publisher::forget_drift() {
  post([this] { camera_moved_.clear(); });
}

void Publisher::greet_with(const Greeting& greeting) {
  post([this, text = hello_line(greeting), names = greeting.patterns] {
    greeting_ = text;
    pattern_names_ = names;
  });
}

void Publisher::change_listeners(std::vector<Listener> added, std::vector<Address> keep) {
  // std::function copies what it holds; a listener has one owner.
  const auto moved = std::make_shared<std::vector<Listener>>(std::move(added));
  post([this, moved, kept = std::move(keep)] {
    listening_ = false;
    const auto goes = [&kept](const Listener& listener) {
      return std::find(kept.begin(), kept.end(), listener.address()) == kept.end();
    };
    for (const Listener& listener : listeners_)
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.fd(), nullptr);
    listeners_.erase(std::remove_if(listeners_.begin(), listeners_.end(), goes), listeners_.end());
    for (Listener& listener : *moved) listeners_.push_back(std::move(listener));
    watch_listeners();
    const std::lock_guard<std::mutex> lock(tasks_mutex_);
    bound_.clear();
    for (const Listener& listener : listeners_) bound_.push_back(listener.bound_address());
  });
}

void Publisher::set_latency_log(std::shared_ptr<LatencyLog> log) {
  post([this, next = std::move(log)] { latency_log_ = next; });
}

void Publisher::settle() {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  post([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    done = true;
    changed.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done; });
}

void Publisher::finish(int patience_ms) {
  if (!thread_.joinable()) return;
  finish_deadline_ns_ = monotonic_ns() + patience_ms * kMs;
  finishing_ = true;
  bell_.ring();
  thread_.join();
}

PublisherCounters Publisher::counters() const {
  return {client_count_, accepted_, refused_, denied_,         failed_handshakes_,
          wrong_tokens_, vanished_, results_, dropped_results_};
}

std::vector<Address> Publisher::bound_addresses() const {
  const std::lock_guard<std::mutex> lock(tasks_mutex_);
  return bound_;
}

void Publisher::run() {
  watch_listeners();
  while (!finishing_) round(kRoundMs);
  run_tasks();
  publish_ready();
  while (!everything_sent() && monotonic_ns() < finish_deadline_ns_) round(10);
  for (const auto& [id, client] : clients_) client->finish_output();
  clients_.clear();
  client_count_ = 0;
  handshakes_.clear();
  listeners_.clear();
  run_tasks();
}

bool Publisher::everything_sent() const {
  return std::none_of(clients_.begin(), clients_.end(), [](const auto& entry) {
    return (entry.second->watched_events & EPOLLOUT) != 0;
  });
}

void Publisher::round(int timeout_ms) {
  std::array<epoll_event, 64> events{};
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                               asking_.empty() ? timeout_ms : 0);
  last_round_ns_ = monotonic_ns();
  std::array<std::uint64_t, kMostHandshakeSteps> handshakes{};
  std::size_t handshake_count = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const std::uint64_t tag = event.data.u64;
    if (tag == kBellTag) {
      take_turn();
    } else if (tag < kFirstClient) {
      const std::size_t index = tag - kFirstListenerTag;
      if (index < listeners_.size()) accept_clients(listeners_[index]);
    } else {
      const auto found = clients_.find(tag);
      if (found != clients_.end()) {
        serve(*found->second, event.events);
      } else if (handshake_count < handshakes.size()) {
        handshakes[handshake_count++] = tag;  // what does not fit is there in the next round
      }
    }
  }
  // After the results: they never wait for more than these.
  for (std::size_t i = 0; i < handshake_count; ++i) continue_handshake(handshakes[i]);
  read_on();
  if (!listening_) watch_listeners();
  end_overdue_handshakes();
  look_after_clients();
  look_for_vanished();
}

void Publisher::run_tasks() {
  std::vector<Task> tasks;
  {
    const std::lock_guard<std::mutex> lock(tasks_mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) task();
}

void Publisher::take_turn() {
  do {
    const std::uint64_t waiting = published_ + ready_.size();
    run_tasks();
    publish_ready(waiting);
  } while (ready_.size() > 0);
}

void Publisher::publish_ready(std::uint64_t last) {
  while (published_ < last) {
    const auto slot = ready_.try_pop();
    if (!slot) return;
    ++published_;
    publish(**slot);
    free_.try_push(*slot);
  }
}

void Publisher::publish(ResultSlot& slot) {
  write_line(slot);
  flush_clients();
  const std::int64_t now = monotonic_ns();
  slot.result.times[Stage::kPublish] = now - slot.processed_ns;
  slot.result.times[Stage::kTotal] = now - slot.started_ns;
  statistics_.record(slot.result.times, now);
  if (latency_log_ != nullptr)
    latency_log_->add(slot.info.seq, slot.info.captured_mono_ns, slot.result.times);
}

void Publisher::write_line(ResultSlot& slot) {
  const std::size_t line_bytes = result_line_bound(*slot.format);
  const std::size_t matches = std::min(match_bound(*slot.format), slot.result.matches.size());
  const std::size_t bytes = ResultRing::bytes_for(line_bytes, matches);
  const std::uint64_t oldest = ring_.oldest_after(bytes);
  for (const auto& [id, client] : clients_) {
    const std::uint64_t before = client->dropped_total();
    client->skip_to(oldest, ring_);
    dropped_results_ += client->dropped_total() - before;
  }
  ResultLineWriter writer(ring_.reserve(bytes), line_bytes);
  writer.begin(*slot.format, slot.info, slot.result, {}, &spans_);
  // The line itself can only tell the time until now; the statistics count until it was handed
  // over.
  StageTimes times = slot.result.times;
  const std::int64_t now = monotonic_ns();
  times[Stage::kPublish] = now - slot.processed_ns;
  times[Stage::kTotal] = now - slot.started_ns;
  ring_.commit(writer.finish(times).size(), spans_);
  ++results_;
}

void Publisher::flush_clients() {
  gone_.clear();
  for (const auto& [id, client] : clients_) {
    const bool blocked = (client->watched_events & EPOLLOUT) != 0;
    if (!blocked && !advance(*client)) gone_.push_back(id);
  }
  for (const std::uint64_t id : gone_) remove_client(id);
}

void Publisher::remove_client(std::uint64_t id) {
  const auto found = clients_.find(id);
  if (found != clients_.end() && found->second->vanished()) note_vanished(*found->second);
  clients_.erase(id);  // closing the socket takes it out of the epoll set too
  client_count_ = clients_.size();
  if (callbacks_.gone) callbacks_.gone(id);
}

void Publisher::look_after_clients() {
  gone_.clear();
  const std::int64_t now = monotonic_ns();
  for (const auto& [id, client] : clients_) {
    const bool overdue = client->closing() && now >= client->close_deadline_ns();
    if (overdue || (client->hear_again(now) && !advance(*client))) gone_.push_back(id);
  }
  for (const std::uint64_t id : gone_) remove_client(id);
}

void Publisher::look_for_vanished() {
  constexpr int kLooksWithinPatience = 6;
  if (last_round_ns_ < next_look_ns_) return;
  const std::chrono::milliseconds step = peer_patience_ / kLooksWithinPatience;
  next_look_ns_ = last_round_ns_ + step.count() * kMs;
  gone_.clear();
  for (const auto& [id, client] : clients_) {
    if (client->unanswered(peer_patience_ - step)) gone_.push_back(id);
  }
  for (const std::uint64_t id : gone_) remove_client(id);
}

void Publisher::note_vanished(const Client& client) {
  ++vanished_;
  if (!vanished_limit_.allow(monotonic_ns())) return;
  spdlog::warn(
      "client=vanished peer={} vanished={} reason=\"its machine answers no more; look whether it "
      "runs, and at the network between\" held_back={}",
      client.peer() ? shown(*client.peer()) : "unix", vanished_.load(),
      vanished_limit_.take_held_back());
}

void Publisher::serve(Client& client, std::uint32_t events) {
  const std::uint64_t id = client.id();
  if ((events & (EPOLLIN | EPOLLHUP)) != 0 && !client.input_closed()) {
    if (client.receive() == Client::Input::kGone) return remove_client(id);
    read_commands(client);
  }
  const bool hung_up = (events & (EPOLLERR | EPOLLHUP)) != 0;
  if (hung_up) client.note_hang_up();
  const bool closed_down = client.output_finished() && client.input_closed();
  if (hung_up || closed_down || !advance(client)) remove_client(id);
}

void Publisher::read_commands(Client& client) {
  std::string_view line;
  for (int i = 0; i < kMostLines && client.may_ask() && client.next_line(line); ++i) {
    if (!line.empty()) answer(client, line);
  }
  if (client.oversized() && !client.closing()) {
    client.send_own(error_line("",
                               "a line of more than 65536 bytes; commands are shorter, and the "
                               "connection closes now"));
    client.begin_close(monotonic_ns() + kCloseNs);
  }
}

// Whoever sends many lines at once has them answered over several rounds.
void Publisher::read_on() {
  heard_.swap(asking_);
  asking_.clear();
  for (const std::uint64_t id : heard_) {
    const auto found = clients_.find(id);
    if (found == clients_.end()) continue;
    found->second->asking = false;
    read_commands(*found->second);
    if (!advance(*found->second)) remove_client(id);
  }
  heard_.clear();
}

void Publisher::answer(Client& client, std::string_view line) {
  const auto command = parse_command(line, pattern_names_);
  if (command) {
    execute(client, *command);
  } else {
    client.send_own(error_line(command.error().name, command.error().message));
    client.note_fault(monotonic_ns());
  }
}

void Publisher::execute(Client& client, const ClientCommand& command) {
  if (changes_something(command.kind) && !may_change(client, command)) return;
  switch (command.kind) {
    case ClientCommand::Kind::kStatus:
      return client.send_own(reply_line(command.name, callbacks_.status()));
    case ClientCommand::Kind::kLatency:
      return client.send_own(reply_line(command.name, callbacks_.latency()));
    case ClientCommand::Kind::kReload:
      client.expect_reply();
      return callbacks_.reload(client.id());
    case ClientCommand::Kind::kRecord:
    case ClientCommand::Kind::kSnapshot:
      return execute_frames(client, command);
    case ClientCommand::Kind::kSubscribe:
      break;
  }
  const Subscription& wanted = command.subscription;
  client.subscribe(wanted);
  Json types = Json::array();
  if (wanted.results) types.push_back("result");
  if (wanted.camera) types.push_back("camera");
  if (wanted.drift) types.push_back("drift");
  const Json patterns = wanted.patterns.value_or(pattern_names_);
  client.send_own(reply_line(command.name,
                             {{"types", types}, {"patterns", patterns}, {"every", wanted.every}}));
}

void Publisher::execute_frames(Client& client, const ClientCommand& command) {
  const auto begun = callbacks_.frames(client.id(), command);
  if (begun)
    client.expect_reply();
  else
    client.send_own(error_line(command.name, begun.error().message));
}

bool Publisher::advance(Client& client) {
  const Client::Flow flow = client.flush(ring_);
  if (flow == Client::Flow::kGone) return false;
  // Many programs close their whole connection in a way that looks like this from here; they would
  // stay until the network gives them up.
  const bool done = flow == Client::Flow::kIdle && !client.closing() && client.done();
  if (done || (flow == Client::Flow::kIdle && client.closing() && !client.output_finished()))
    client.finish_output();
  if (done) return false;
  watch(client, flow == Client::Flow::kBlocked);
  if (!client.asking && client.may_ask()) {
    client.asking = true;
    asking_.push_back(client.id());
  }
  return true;
}

void Publisher::watch(Client& client, bool blocked) {
  const std::uint32_t wanted = (client.wants_input() ? static_cast<std::uint32_t>(EPOLLIN) : 0U) |
                               (blocked ? static_cast<std::uint32_t>(EPOLLOUT) : 0U);
  if (wanted == client.watched_events) return;
  epoll_event event{};
  event.events = wanted;
  event.data.u64 = client.id();
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, client.fd(), &event);
  client.watched_events = wanted;
}

}  // namespace patternd
