// Clients of every kind, all of one thread: what a service has to bear. Started by tests/load/run.
//   load_clients PORT CLIENTS SECONDS SEED
// The first client watches: it reads every result and keeps its `total`, from capture to the queue
// of the clients. Of the others a tenth never read, a tenth send garbage, a fifth vanish and come
// back at random, half of these without a word (RST). Prints one JSON object.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/in.h>
#include <random>
#include <string>
#include <string_view>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <vector>

#include "daemon/file_descriptor.h"
#include "pipeline/stage.h"

namespace patternd {
namespace {

constexpr std::int64_t kMs = 1'000'000;

enum class Kind { kWatcher, kReader, kSilent, kGarbage, kVisitor };

Kind kind_of(std::size_t index) {
  if (index == 0) return Kind::kWatcher;
  switch (index % 10) {
    case 1:
      return Kind::kSilent;
    case 2:
      return Kind::kGarbage;
    case 3:
    case 4:
      return Kind::kVisitor;
    default:
      return Kind::kReader;
  }
}

struct LoadClient {
  Kind kind = Kind::kReader;
  FileDescriptor socket;
  std::int64_t next_act_ns = 0;  // sends garbage, vanishes, or comes back
};

struct Counts {
  std::uint64_t connects = 0;
  std::uint64_t vanished = 0;
  std::uint64_t garbage_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hung_up = 0;  // by the service
};

class Load {
 public:
  Load(std::uint16_t port, std::size_t clients, std::uint32_t seed)
      : port_(port), clients_(clients), random_(seed), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < clients; ++i) {
      clients_[i].kind = kind_of(i);
      connect(i);
      if (clients_[i].kind == Kind::kVisitor || clients_[i].kind == Kind::kGarbage) plan(i);
    }
  }

  void run(int seconds) {
    const std::int64_t end = monotonic_ns() + std::int64_t{1000} * seconds * kMs;
    while (monotonic_ns() < end) {
      std::array<epoll_event, 64> events{};
      const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 2);
      for (int i = 0; i < count; ++i) read(events[static_cast<std::size_t>(i)].data.u64);
      const std::int64_t now = monotonic_ns();
      for (std::size_t i = 0; i < clients_.size(); ++i) {
        if (clients_[i].next_act_ns != 0 && now >= clients_[i].next_act_ns) act(i);
      }
    }
  }

  void print() {
    std::sort(totals_us_.begin(), totals_us_.end());
    std::printf(
        "{\"clients\":%zu,\"results\":%zu,\"lost\":%llu,\"p50_us\":%lld,\"p99_us\":%lld,"
        "\"connects\":%llu,\"vanished\":%llu,\"hung_up\":%llu,\"garbage_bytes\":%llu,"
        "\"bytes\":%llu}\n",
        clients_.size(), totals_us_.size(), static_cast<unsigned long long>(lost_), quantile(0.5),
        quantile(0.99), static_cast<unsigned long long>(counts_.connects),
        static_cast<unsigned long long>(counts_.vanished),
        static_cast<unsigned long long>(counts_.hung_up),
        static_cast<unsigned long long>(counts_.garbage_bytes),
        static_cast<unsigned long long>(counts_.bytes));
  }

 private:
  void connect(std::size_t index) {
    LoadClient& client = clients_[index];
    client.socket.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port_);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(client.socket.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where)) {
      std::fprintf(stderr, "client %zu cannot connect: %s\n", index, std::strerror(errno));
      std::exit(1);
    }
    ++counts_.connects;
    if (client.kind == Kind::kSilent) return;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = index;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, client.socket.get(), &event);
  }

  void plan(std::size_t index) {
    LoadClient& client = clients_[index];
    const int most_ms = client.kind == Kind::kGarbage ? 100 : 4000;
    client.next_act_ns =
        monotonic_ns() + std::uniform_int_distribution<int>(1, most_ms)(random_) * kMs;
  }

  void act(std::size_t index) {
    LoadClient& client = clients_[index];
    if (client.kind == Kind::kVisitor) {
      if (client.socket.valid())
        vanish(client);
      else
        connect(index);
    } else if (client.socket.valid()) {
      send_garbage(client);
    } else {
      connect(index);  // a line of more than 64 KiB got it hung up on
    }
    plan(index);
  }

  void vanish(LoadClient& client) {
    const linger at_once{1, 0};
    if (random_() % 2 == 0)
      setsockopt(client.socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    client.socket.reset();
    ++counts_.vanished;
  }

  void send_garbage(const LoadClient& client) {
    std::array<char, 1024> bytes{};
    for (char& byte : bytes) byte = static_cast<char>(random_());
    const ssize_t sent =
        send(client.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) counts_.garbage_bytes += static_cast<std::uint64_t>(sent);
  }

  void read(std::size_t index) {
    LoadClient& client = clients_[index];
    if (!client.socket.valid()) return;
    const ssize_t got = recv(client.socket.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
      client.socket.reset();
      ++counts_.hung_up;
      return;
    }
    counts_.bytes += static_cast<std::uint64_t>(got);
    if (client.kind == Kind::kWatcher) watch({buffer_.data(), static_cast<std::size_t>(got)});
  }

  void watch(std::string_view text) {
    watched_.append(text);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = watched_.find('\n', begin)) != std::string::npos;) {
      note(std::string_view(watched_).substr(begin, end - begin));
      begin = end + 1;
    }
    watched_.erase(0, begin);
  }

  void note(std::string_view line) {
    if (line.rfind("{\"type\":\"result\",\"seq\":", 0) != 0) return;
    const std::uint64_t seq = std::strtoull(line.data() + 23, nullptr, 10);
    if (last_seq_ != 0 && seq != last_seq_ + 1) lost_ += seq - last_seq_ - 1;
    last_seq_ = seq;
    const std::size_t at = line.rfind("\"total\":");
    if (at != std::string_view::npos)
      totals_us_.push_back(std::strtoll(line.data() + at + 8, nullptr, 10));
  }

  [[nodiscard]] long long quantile(double share) const {
    if (totals_us_.empty()) return 0;
    const auto rank =
        static_cast<std::size_t>(std::ceil(share * static_cast<double>(totals_us_.size())));
    return totals_us_[std::max<std::size_t>(rank, 1) - 1];
  }

  std::uint16_t port_;
  std::vector<LoadClient> clients_;
  std::mt19937 random_;
  FileDescriptor epoll_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{64} << 10);
  std::string watched_;
  std::uint64_t last_seq_ = 0;
  std::uint64_t lost_ = 0;
  std::vector<long long> totals_us_;
  Counts counts_;
};

int run(int argc, char** argv) {
  if (argc != 5) {
    std::fputs("load_clients PORT CLIENTS SECONDS SEED\n", stderr);
    return 2;
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Load load(static_cast<std::uint16_t>(std::atoi(argv[1])),
            static_cast<std::size_t>(std::atoi(argv[2])),
            static_cast<std::uint32_t>(std::atoi(argv[4])));
  load.run(std::atoi(argv[3]));
  load.print();
  return 0;
}

}  // namespace
}  // namespace patternd

int main(int argc, char** argv) { return patternd::run(argc, argv); }
