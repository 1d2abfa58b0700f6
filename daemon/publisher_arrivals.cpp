// The publisher's door: who connects, who is turned away and why, TLS handshakes, and what those
// inside may change.
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <utility>

#include "daemon/log_value.h"
#include "daemon/peer_watch.h"
#include "daemon/publisher.h"

namespace patternd {
namespace {

// What the kernel buffers for one client (it doubles the number): a bound on its memory too.
constexpr int kSocketBufferBytes = 256 << 10;
constexpr int kMostAcceptedAtOnce = 64;

void tune(int socket_fd, bool is_tcp) {
  const int on = 1;
  setsockopt(socket_fd, SOL_SOCKET, SO_SNDBUF, &kSocketBufferBytes, sizeof kSocketBufferBytes);
  if (!is_tcp) return;
  setsockopt(socket_fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ask_silent_peer(socket_fd);
}

void tell(Connection& connection, const std::string& line) { (void)connection.send(line); }

}  // namespace

void Publisher::set_access(std::shared_ptr<const Access> access) {
  post([this, next = std::move(access)] {
    access_ = next;
    handshakes_.clear();  // begun under other terms; whoever it was connects again
    const std::int64_t now = monotonic_ns();
    for (const auto& [id, client] : clients_) {
      if (!client->peer() || client->closing()) continue;
      const bool listed = access_->admits(*client->peer());
      if (listed && (access_->tls == nullptr || client->has_tls())) continue;
      ++denied_;
      client->send_own(
          error_line("", listed ? "publish.tcp.tls has been set; connect again with TLS"
                                : shown(*client->peer()) + " is no longer in publish.tcp.allow"));
      client->begin_close(now + kCloseNs);
    }
    flush_clients();
  });
}

void Publisher::watch_listeners() {
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kFirstListenerTag + i;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listeners_[i].fd(), &event);
  }
  listening_ = true;
}

void Publisher::accept_clients(const Listener& listener) {
  const bool is_tcp = listener.address().kind == Address::Kind::kTcp;
  for (int i = 0; i < kMostAcceptedAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    FileDescriptor socket(accept4(listener.fd(), reinterpret_cast<sockaddr*>(&from), &size,
                                  SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      tune(socket.get(), is_tcp);
      if (is_tcp)
        meet(std::move(socket), ip_address_of(from).value_or(IpAddress()));
      else
        add_client(Connection(std::move(socket)), std::nullopt);
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      refuse_one(listener);
    if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

void Publisher::take_spare() { spare_.reset(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// No file descriptor is left: the spare one is given up for long enough to hang up on one client,
// which would otherwise wait in silence, and wake us for ever.
void Publisher::refuse_one(const Listener& listener) {
  if (make_room_for_client()) return;  // the next round accepts
  spare_.reset();
  bool hung_up = false;
  {
    const FileDescriptor refused(accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    hung_up = refused.valid();
  }
  if (hung_up) {
    ++refused_;
  } else {
    listening_ = false;  // not even that: look again in the next round
    for (const Listener& each : listeners_)
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, each.fd(), nullptr);
  }
  take_spare();
  warn_refused("no file descriptor is left; raise LimitNOFILE, or connect fewer clients");
}

void Publisher::warn_refused(const char* why) {
  if (!refused_limit_.allow(monotonic_ns())) return;
  spdlog::warn("client=refused clients={} refused={} reason={}", clients_.size(), refused_.load(),
               log_quoted(why));
}

// Clients that closed their side may be listening still, or may be gone for good without our being
// told; where room is short the one that did so first goes.
bool Publisher::make_room_for_client() {
  std::uint64_t oldest = 0;
  for (const auto& [id, client] : clients_) {
    if (client->input_closed() && (oldest == 0 || id < oldest)) oldest = id;
  }
  if (oldest == 0) return false;
  remove_client(oldest);
  return true;
}

// Somebody on TCP: allowed, and by TLS where that is set.
void Publisher::meet(FileDescriptor socket, const IpAddress& peer) {
  Connection connection(std::move(socket));
  if (!access_->admits(peer)) {
    const std::string why = shown(peer) + " is not in publish.tcp.allow";
    if (access_->tls == nullptr)
      tell(connection, error_line("", why + "; add its network there and reload"));
    return deny(peer, "not in publish.tcp.allow; add its network there where it belongs to yours");
  }
  if (access_->tls == nullptr) return add_client(std::move(connection), peer);
  if (!attempts_.allows(peer, monotonic_ns()))
    return deny(peer, "too many failed TLS handshakes from there; one a second is heard");
  begin_handshake(std::move(connection), peer);
}

void Publisher::deny(const IpAddress& peer, const std::string& why) {
  ++denied_;
  warn_denied(peer, why);
}

void Publisher::warn_denied(const IpAddress& peer, const std::string& why) {
  if (!denied_limit_.allow(monotonic_ns())) return;
  spdlog::warn("client=denied peer={} reason={} held_back={}", shown(peer), log_quoted(why),
               denied_limit_.take_held_back());
}

void Publisher::begin_handshake(Connection plain, const IpAddress& peer) {
  // Room is made by the one that has taken longest; whoever it was, it has had its time to answer.
  if (handshakes_.size() >= kMaxHandshakes) {
    const auto oldest = handshakes_.begin();
    if (!oldest->second.failed) note_failure(oldest->second, "was too slow");
    handshakes_.erase(oldest);
  }
  const int fd = plain.fd();
  auto session = TlsSession::create(access_->tls, fd);
  if (!session) return deny(peer, session.error().message);
  const std::uint64_t id = next_client_++;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return deny(peer, "the kernel watches no more sockets; raise fs.epoll.max_user_watches");
  plain.start(std::move(*session));
  handshakes_.emplace(
      id, Handshake{std::move(plain), peer, monotonic_ns() + kHandshakeNs, EPOLLIN, false});
}

void Publisher::continue_handshake(std::uint64_t id) {
  const auto found = handshakes_.find(id);
  if (found == handshakes_.end()) return;
  Handshake& handshake = found->second;
  if (handshake.failed) {
    if (!handshake.connection.discard_input()) handshakes_.erase(found);
    return;
  }
  const TlsSession::Progress progress = handshake.connection.session()->handshake();
  std::uint32_t wanted = EPOLLIN;
  if (progress == TlsSession::Progress::kDone) {
    Handshake done = std::move(handshake);
    handshakes_.erase(found);
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, done.connection.fd(), nullptr);
    return add_client(std::move(done.connection), done.peer);
  }
  if (progress == TlsSession::Progress::kFailed) {
    note_failure(handshake, handshake.connection.session()->failure());
    // Closing at once, with input unread, would take back the alert that says why.
    handshake.failed = true;
    handshake.deadline_ns = monotonic_ns() + kCloseNs;
    handshake.connection.finish_output();
  } else if (progress == TlsSession::Progress::kWantsWrite) {
    wanted = EPOLLOUT;
  }
  if (wanted == handshake.watched_events) return;
  epoll_event event{};
  event.events = handshake.watched_events = wanted;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, handshake.connection.fd(), &event);
}

void Publisher::note_failure(const Handshake& handshake, const std::string& why) {
  ++failed_handshakes_;
  // Somebody who looked whether the port is open, and said nothing, has failed at nothing.
  const std::int64_t now = monotonic_ns();
  if (!handshake.connection.session()->heard() && now < handshake.deadline_ns) return;
  attempts_.failed(handshake.peer, now);
  warn_denied(handshake.peer, "TLS handshake: " + why);
}

void Publisher::end_overdue_handshakes() {
  const std::int64_t now = monotonic_ns();
  for (auto each = handshakes_.begin(); each != handshakes_.end();) {
    const Handshake& handshake = each->second;
    const bool overdue = handshake.deadline_ns <= now;
    if (overdue && !handshake.failed) note_failure(handshake, "was not finished within 5 s");
    each = overdue ? handshakes_.erase(each) : std::next(each);
  }
}

// Answers for itself where it says no.
bool Publisher::may_change(Client& client, const ClientCommand& command) {
  if (!client.peer() || !access_->token) return true;
  const IpAddress peer = *client.peer();
  const std::int64_t now = monotonic_ns();
  if (!command.token.empty() && attempts_.allows(peer, now)) {
    if (access_->token->matches(command.token)) return true;
    attempts_.failed(peer, now);
    client.send_own(error_line(command.name,
                               "the token is wrong; it must be what publish.tcp.token_file holds"));
  } else {
    client.send_own(error_line(
        command.name,
        command.token.empty()
            ? "changes something and needs a \"token\" beside the command; patternctl has "
              "--token-file"
            : "too many failed attempts from this address; wait a few seconds"));
  }
  ++wrong_tokens_;
  warn_denied(peer, command.name + " without the right token");
  return false;
}

void Publisher::add_client(Connection connection, const std::optional<IpAddress>& peer) {
  const bool room = clients_.size() < most_clients_ || make_room_for_client();
  if (!room) {
    ++refused_;
    warn_refused(most_clients_ < kMaxClients
                     ? "the limit on open files leaves room for no more; raise LimitNOFILE"
                     : "too many clients; close some");
    return tell(connection, error_line("", "patternd serves " + std::to_string(most_clients_) +
                                               " clients at most; close some and connect again"));
  }
  const std::uint64_t id = next_client_++;
  auto client = std::make_unique<Client>(id, std::move(connection), peer, ring_.next());
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  client->watched_events = EPOLLIN;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client->fd(), &event) != 0) {
    ++refused_;
    warn_refused("the kernel watches no more sockets; raise fs.epoll.max_user_watches");
    return;
  }
  client->send_own(greeting_);
  for (const std::string& known : {camera_lost_, camera_moved_})
    client->send_own(known);  // what those who came earlier know
  Client& added = *client;
  clients_.emplace(id, std::move(client));
  ++accepted_;
  client_count_ = clients_.size();
  if (!advance(added)) remove_client(id);
}

}  // namespace patternd
