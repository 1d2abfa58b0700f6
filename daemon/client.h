// One connected client of the publisher: what it sent, what it still gets.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/client_command.h"
#include "daemon/connection.h"
#include "daemon/network.h"
#include "daemon/peer_watch.h"
#include "daemon/result_ring.h"

namespace patternd {

// Results are not queued: the client remembers the number of the line of the ring that it gets
// next. Lines of its own (hello, replies, camera, dropped) go out between two results. All sockets
// are non-blocking. Used by the publisher's thread alone.
class Client {
 public:
  // `peer`: where it connects from; nothing over a Unix socket.
  Client(std::uint64_t id, Connection connection, std::optional<IpAddress> peer,
         std::uint64_t next_result);

  [[nodiscard]] std::uint64_t id() const { return id_; }
  [[nodiscard]] int fd() const { return connection_.fd(); }
  [[nodiscard]] const std::optional<IpAddress>& peer() const { return peer_; }
  [[nodiscard]] bool has_tls() const { return connection_.session() != nullptr; }

  // Lines of its own that wait, at most; a client that asks more than it reads is not read from
  // until some have gone. Nor is one whose lines have not all been answered.
  static constexpr std::size_t kMaxOwnBytes = std::size_t{256} << 10;
  void send_own(std::string_view line) { own_.append(line); }
  // Text that may be long, sent in order between other lines; `busy` (may be null) becomes false
  // once the socket has taken all of it. Who sends these bounds how many wait.
  void send_bulk(std::string text, std::shared_ptr<std::atomic<bool>> busy);
  // A command was taken whose reply comes later, and that reply.
  void expect_reply() { ++expected_replies_; }
  void reply_came() { --expected_replies_; }
  void subscribe(const Subscription& subscription);
  [[nodiscard]] const Subscription& subscription() const { return subscription_; }

  // Moves past the lines before `oldest`, which are about to give way: what it would have got of
  // them counts as dropped; a line half sent is kept and finished.
  void skip_to(std::uint64_t oldest, const ResultRing& ring);

  enum class Flow {
    kIdle,     // nothing left to send
    kBlocked,  // the socket is full; more when it is writable
    kGone      // the client has gone
  };
  // Sends as much as the socket takes.
  [[nodiscard]] Flow flush(const ResultRing& ring);

  enum class Input {
    kMore,    // there may be more another time
    kClosed,  // the client will send nothing more; it may still receive
    kGone
  };
  // Reads what is there. Complete lines are then given out by next_line().
  [[nodiscard]] Input receive();
  // The next complete line without its end, false where there is none. The view lasts until the
  // next call of receive() or next_line(). At the end of input the rest counts as a line.
  [[nodiscard]] bool next_line(std::string_view& line);
  // next_line() would give one that is to be answered now.
  [[nodiscard]] bool may_ask() const;
  // A line could not be read. Twenty are answered at once; whoever goes on is not heard for a
  // second, and then has ten more: ten a second, so that garbage costs frames no time.
  void note_fault(std::int64_t now_ns);
  // Hears a client again whose time has come; true where it was not heard until now.
  bool hear_again(std::int64_t now_ns);
  // More than a command may have arrived without an end of line.
  [[nodiscard]] bool oversized() const;
  [[nodiscard]] bool wants_input() const;
  [[nodiscard]] bool input_closed() const { return input_closed_; }
  // It asks for nothing more, and nothing more is to come to it once what waits has been sent.
  [[nodiscard]] bool done() const;

  // Nothing more is read as a command; once all is sent the connection is to be closed, or at the
  // deadline (CLOCK_MONOTONIC).
  void begin_close(std::int64_t deadline_ns);
  [[nodiscard]] bool closing() const { return closing_; }
  [[nodiscard]] std::int64_t close_deadline_ns() const { return close_deadline_ns_; }
  // Tells the client that nothing more comes, and throws away what it sent, so that closing does
  // not take back what is on its way.
  void finish_output();
  [[nodiscard]] bool output_finished() const { return output_finished_; }

  // Looks whether the peer's machine still answers (PeerWatch); asked every few seconds. Where not,
  // what is on its way to it is thrown away with the socket.
  [[nodiscard]] bool unanswered(std::chrono::milliseconds patience);
  // The kernel reports the connection's end: notes why.
  void note_hang_up();
  // The machine vanished, by unanswered() or by the connection's end.
  [[nodiscard]] bool vanished() const { return vanished_; }

  [[nodiscard]] std::uint64_t dropped_total() const { return dropped_total_; }
  // What the publisher's epoll watches for.
  std::uint32_t watched_events = 0;
  bool asking = false;  // the publisher knows that may_ask()

 private:
  [[nodiscard]] bool has_line() const;
  [[nodiscard]] bool has_room() const { return own_.size() < kMaxOwnBytes; }
  [[nodiscard]] bool wants_next();
  void hold_filtered(std::uint64_t number, const ResultRing& ring);
  [[nodiscard]] bool prepare(const ResultRing& ring);
  [[nodiscard]] Flow send_held();
  [[nodiscard]] Flow send_results(const ResultRing& ring);
  [[nodiscard]] Flow flow_after(int error);

  const std::uint64_t id_;
  Connection connection_;
  const std::optional<IpAddress> peer_;
  std::string input_;
  std::size_t input_read_ = 0;    // bytes of input_ given out as lines
  std::int64_t forgiven_ns_ = 0;  // when all of its faults are
  bool held_back_ = false;
  bool input_closed_ = false;
  bool closing_ = false;
  bool output_finished_ = false;
  std::int64_t close_deadline_ns_ = 0;
  PeerWatch watch_;
  bool vanished_ = false;

  struct Bulk {
    std::string text;
    std::shared_ptr<std::atomic<bool>> busy;
  };

  std::string own_;
  std::deque<Bulk> bulk_;
  std::shared_ptr<std::atomic<bool>> bulk_sent_;  // of the bulk that is in held_
  std::string held_;                              // being sent
  std::size_t held_sent_ = 0;
  std::uint64_t next_;            // line of the ring
  std::size_t offset_ = 0;        // bytes of line next_ already sent
  bool next_decided_ = false;     // wants_next() has been asked and was true
  std::uint64_t considered_ = 0;  // results since the subscription
  std::uint64_t dropped_ = 0;     // not yet told
  std::uint64_t dropped_total_ = 0;
  std::uint64_t expected_replies_ = 0;
  Subscription subscription_;
  // {"pattern":"NAME", of each pattern that the subscription names.
  std::vector<std::string> wanted_starts_;
};

}  // namespace patternd
