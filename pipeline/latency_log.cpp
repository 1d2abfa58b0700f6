#include "pipeline/latency_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace patternd {
namespace {

constexpr std::size_t kMostQueued = 4096;
constexpr int kOpenFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;

constexpr std::string_view kFirstColumns = "seq,captured_mono_ns,";

std::string header() {
  std::string line(kFirstColumns.substr(0, kFirstColumns.size() - 1));
  for (const char* stage : kStageNames) line.append(",").append(stage);
  return line + "\n";
}

tl::unexpected<Error> cannot_write(const std::string& path, const std::string& why) {
  return fail(ErrorCode::kIo, path + ": the latency log cannot be written (" + why +
                                  "); latency.log must name a file in a folder that patternd may "
                                  "write to");
}

}  // namespace

Result<void> LatencyLog::is_ours(const std::string& path) {
  struct stat status {};
  // Opening some devices does something to them.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, kFirstColumns.size()> begin{};
  const ssize_t size = file.valid() ? pread(file.get(), begin.data(), begin.size(), 0) : 0;
  if (size <= 0) return {};
  if (std::string_view(begin.data(), static_cast<std::size_t>(size)) == kFirstColumns) return {};
  return fail(ErrorCode::kInvalidArgument, path +
                                               " holds something else than a latency log; must "
                                               "name a file that is new, empty or such a log");
}

Result<void> LatencyLog::check(const std::string& path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) return cannot_write(path, std::strerror(errno));
  // Nobody may be reading a pipe, and we would wait for them.
  if (exists && S_ISFIFO(status.st_mode)) return cannot_write(path, "it is a pipe");
  if (exists && S_ISSOCK(status.st_mode)) return cannot_write(path, std::strerror(ENXIO));
  if (exists && S_ISDIR(status.st_mode)) return cannot_write(path, std::strerror(EISDIR));
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool may =
      exists ? ::access(path.c_str(), W_OK) == 0 : ::access(folder.c_str(), W_OK | X_OK) == 0;
  return may ? is_ours(path) : cannot_write(path, std::strerror(errno));
}

Result<std::unique_ptr<LatencyLog>> LatencyLog::open(const std::string& path) {
  if (auto good = check(path); !good) return tl::make_unexpected(good.error());
  std::unique_ptr<LatencyLog> log(new LatencyLog(path));
  if (!log->make_ready()) {
    const int error = errno;
    if (error != ENOSPC && error != EDQUOT) return cannot_write(path, std::strerror(error));
    log->state_.error = std::strerror(error);
  }
  log->queued_.reserve(kMostQueued);
  log->thread_ = std::thread([self = log.get()] { self->write_rows(); });
  return log;
}

bool LatencyLog::make_ready() {
  if (!file_.valid()) {
    file_.reset(::open(path_.c_str(), kOpenFlags, 0644));
    struct stat status {};
    header_missing_ = file_.valid() && fstat(file_.get(), &status) == 0 && status.st_size == 0;
  }
  if (!file_.valid()) return false;
  if (!header_missing_) return true;
  if (write_all(file_.get(), header())) {
    header_missing_ = false;
    return true;
  }
  const int error = errno;
  // Half a header would be taken for another file's text. (What is no file has no length.)
  (void)!ftruncate(file_.get(), 0);
  errno = error;
  return false;
}

LatencyLog::~LatencyLog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();  // not where open() failed
}

void LatencyLog::add(std::uint64_t seq, std::int64_t captured_mono_ns, const StageTimes& times) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (queued_.size() == kMostQueued) {
      ++state_.lost;
      return;
    }
    queued_.push_back({seq, captured_mono_ns, times});
  }
  changed_.notify_one();
}

LatencyLog::State LatencyLog::state() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return state_;
}

void LatencyLog::write_rows() {
  std::vector<Row> rows;
  rows.reserve(kMostQueued);
  std::string text;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !queued_.empty(); });
      if (queued_.empty()) return;
      rows.swap(queued_);
    }
    text.clear();
    for (const Row& row : rows) {
      text += std::to_string(row.seq) + "," + std::to_string(row.captured_mono_ns);
      for (const std::int64_t ns : row.times.ns)
        text.append(",").append(std::to_string(std::max<std::int64_t>(ns + 500, 0) / 1000));
      text += '\n';
    }
    write_text(text, rows.size());
    rows.clear();
  }
}

void LatencyLog::write_text(const std::string& text, std::size_t rows) {
  const int error = make_ready() && write_all(file_.get(), text) ? 0 : errno;
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.error = error == 0 ? "" : std::strerror(error);
  if (error != 0) state_.lost += rows;
}

}  // namespace patternd
