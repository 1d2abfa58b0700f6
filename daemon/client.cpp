#include "daemon/client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>

#include "daemon/line_writer.h"
#include "daemon/messages.h"

namespace patternd {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::size_t kMostLinesAtOnce = 16;
constexpr std::int64_t kFaultNs = 100'000'000;
constexpr std::int64_t kFreeFaults = 20;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Client::Client(std::uint64_t id, Connection connection, std::optional<IpAddress> peer,
               std::uint64_t next_result)
    : id_(id), connection_(std::move(connection)), peer_(peer), next_(next_result) {}

void Client::send_bulk(std::string text, std::shared_ptr<std::atomic<bool>> busy) {
  bulk_.push_back({std::move(text), std::move(busy)});
}

void Client::subscribe(const Subscription& subscription) {
  subscription_ = subscription;
  considered_ = 0;
  wanted_starts_.clear();
  if (!subscription.patterns) return;
  for (const std::string& name : *subscription.patterns) {
    std::string memory(json_text_bound(name.size()), '\0');
    LineWriter text(memory.data(), memory.size());
    text.text(name);
    wanted_starts_.push_back("{\"pattern\":" + std::string(text.view()) + ",");
  }
}

// Each line is asked about once: the answer counts the line for `every`.
bool Client::wants_next() {
  if (!subscription_.results || closing_) return false;
  return considered_++ % static_cast<std::uint64_t>(subscription_.every) == 0;
}

void Client::skip_to(std::uint64_t oldest, const ResultRing& ring) {
  if (next_ >= oldest) return;
  if (offset_ > 0) {
    held_.assign(ring.line(next_).substr(offset_));
    held_sent_ = 0;
    offset_ = 0;
    next_decided_ = false;
    ++next_;
  }
  for (; next_ < oldest; ++next_) {
    if (next_decided_ || wants_next()) {
      ++dropped_;
      ++dropped_total_;
    }
    next_decided_ = false;
  }
}

void Client::hold_filtered(std::uint64_t number, const ResultRing& ring) {
  const std::string_view line = ring.line(number);
  const std::size_t count = ring.span_count(number);
  held_sent_ = 0;
  if (count == 0) {
    held_.assign(line);
    return;
  }
  held_.assign(line.substr(0, ring.span(number, 0).begin));
  bool first = true;
  for (std::size_t i = 0; i < count; ++i) {
    const MatchSpan span = ring.span(number, i);
    const std::string_view match = line.substr(span.begin, span.end - span.begin);
    const auto starts = [match](const std::string& start) {
      return match.compare(0, start.size(), start) == 0;
    };
    if (std::none_of(wanted_starts_.begin(), wanted_starts_.end(), starts)) continue;
    if (!first) held_ += ',';
    held_.append(match);
    first = false;
  }
  held_.append(line.substr(ring.span(number, count - 1).end));
}

// Chooses what is sent next; false where there is nothing. Afterwards either held_ has bytes to
// send, or line next_ of the ring.
bool Client::prepare(const ResultRing& ring) {
  if (held_sent_ < held_.size() || offset_ > 0) return true;
  held_sent_ = 0;
  held_.clear();
  if (bulk_sent_ != nullptr) *std::exchange(bulk_sent_, nullptr) = false;
  if (dropped_ > 0) {
    held_ = dropped_line(std::exchange(dropped_, 0));
    return true;
  }
  if (!own_.empty()) {
    held_.swap(own_);
    return true;
  }
  if (!bulk_.empty()) {
    held_ = std::move(bulk_.front().text);
    bulk_sent_ = std::move(bulk_.front().busy);
    bulk_.pop_front();
    return true;
  }
  for (; next_ < ring.next(); ++next_) {
    if (!next_decided_ && !wants_next()) continue;
    if (!subscription_.patterns) {
      next_decided_ = true;
      return true;
    }
    next_decided_ = false;
    hold_filtered(next_++, ring);
    return true;
  }
  return false;
}

Client::Flow Client::flush(const ResultRing& ring) {
  Flow flow = Flow::kIdle;
  while (flow == Flow::kIdle && prepare(ring))
    flow = held_.empty() ? send_results(ring) : send_held();
  if (flow == Flow::kIdle && connection_.flush() != 0) flow = flow_after(errno);
  return flow;
}

Client::Flow Client::flow_after(int error) {
  if (would_block(error)) return Flow::kBlocked;
  vanished_ = tells_of_vanished_peer(error);
  return Flow::kGone;
}

Client::Flow Client::send_held() {
  const ssize_t sent = connection_.send(std::string_view(held_).substr(held_sent_));
  if (sent < 0) return flow_after(errno);
  held_sent_ += static_cast<std::size_t>(sent);
  if (held_sent_ < held_.size()) return Flow::kBlocked;
  // Swapping buffers and assigning to them keeps their memory; after a rare long line it is given
  // back.
  if (held_.capacity() > kMaxOwnBytes) std::string().swap(held_);
  held_.clear();
  held_sent_ = 0;
  return Flow::kIdle;
}

// Sends line next_ and, where every line is wanted, those behind it in the same call.
Client::Flow Client::send_results(const ResultRing& ring) {
  std::array<iovec, kMostLinesAtOnce> parts{};
  std::size_t count = 0;
  std::size_t bytes = 0;
  const std::size_t most = subscription_.every == 1 ? kMostLinesAtOnce : 1;
  for (std::uint64_t number = next_; number < ring.next() && count < most; ++number) {
    const std::string_view rest = ring.line(number).substr(count == 0 ? offset_ : 0);
    // Sending only reads, but its interface has no const.
    parts[count++] = {const_cast<char*>(rest.data()), rest.size()};
    bytes += rest.size();
  }
  const ssize_t result = connection_.send(parts.data(), count);
  if (result < 0) return flow_after(errno);
  auto sent = static_cast<std::size_t>(result);
  const bool all = sent == bytes;
  for (std::size_t i = 0; i < count && sent >= parts[i].iov_len; ++i) {
    sent -= parts[i].iov_len;
    if (i > 0) ++considered_;  // the first was counted when it was chosen
    offset_ = 0;
    next_decided_ = false;
    ++next_;
  }
  if (all) return Flow::kIdle;
  if (sent > 0 && !next_decided_) {
    next_decided_ = true;
    ++considered_;
  }
  offset_ += sent;
  return Flow::kBlocked;
}

Client::Input Client::receive() {
  if (input_read_ > 0) {
    input_.erase(0, input_read_);
    input_read_ = 0;
  }
  std::array<char, kReadBytes> buffer{};
  const ssize_t got = connection_.receive(buffer.data(), buffer.size());
  if (got < 0) return flow_after(errno) == Flow::kBlocked ? Input::kMore : Input::kGone;
  if (got == 0) {
    input_closed_ = true;
    return Input::kClosed;
  }
  if (!closing_) input_.append(buffer.data(), static_cast<std::size_t>(got));
  return Input::kMore;
}

bool Client::next_line(std::string_view& line) {
  const std::string_view rest = std::string_view(input_).substr(input_read_);
  std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) {
    if (!input_closed_ || rest.empty() || rest.size() > kMaxCommandBytes) return false;
    end = rest.size();
  }
  if (end > kMaxCommandBytes) return false;
  input_read_ += std::min(end + 1, rest.size());
  line = rest.substr(0, end);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return true;
}

bool Client::has_line() const {
  const std::string_view rest = std::string_view(input_).substr(input_read_);
  const std::size_t end = rest.find('\n');
  if (end != std::string_view::npos) return end <= kMaxCommandBytes;
  return input_closed_ && !rest.empty() && rest.size() <= kMaxCommandBytes;
}

bool Client::may_ask() const { return !closing_ && !held_back_ && has_room() && has_line(); }

void Client::note_fault(std::int64_t now_ns) {
  forgiven_ns_ = std::max(forgiven_ns_, now_ns) + kFaultNs;
  held_back_ = held_back_ || forgiven_ns_ - now_ns > kFreeFaults * kFaultNs;
}

bool Client::hear_again(std::int64_t now_ns) {
  if (!held_back_ || forgiven_ns_ - now_ns > kFreeFaults / 2 * kFaultNs) return false;
  held_back_ = false;
  return true;
}

bool Client::oversized() const {
  const std::string_view rest = std::string_view(input_).substr(input_read_);
  return std::min(rest.find('\n'), rest.size()) > kMaxCommandBytes;
}

bool Client::wants_input() const {
  return !input_closed_ && (closing_ || (has_room() && !held_back_ && !has_line()));
}

bool Client::done() const {
  const bool subscribed = subscription_.results || subscription_.camera || subscription_.drift;
  return input_closed_ && !has_line() && !subscribed && expected_replies_ == 0;
}

bool Client::unanswered(std::chrono::milliseconds patience) {
  if (!peer_ || !watch_.vanished(fd(), patience)) return false;
  const linger reset{1, 0};
  setsockopt(fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  vanished_ = true;
  return true;
}

void Client::note_hang_up() {
  int error = 0;
  socklen_t size = sizeof error;
  const bool known = getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) == 0;
  vanished_ = vanished_ || (known && tells_of_vanished_peer(error));
}

void Client::begin_close(std::int64_t deadline_ns) {
  if (closing_) return;
  closing_ = true;
  close_deadline_ns_ = deadline_ns;
  input_.clear();
  input_read_ = 0;
}

void Client::finish_output() {
  output_finished_ = true;
  connection_.finish_output();
  (void)connection_.discard_input();
}

}  // namespace patternd
