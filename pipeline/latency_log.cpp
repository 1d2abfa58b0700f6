#include "pipeline/latency_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "pipeline/file_descriptor.h"

namespace patternd {
namespace {

constexpr std::size_t kMostQueued = 4096;
constexpr int kOpenFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;

std::string header() {
  std::string line = "seq,captured_mono_ns";
  for (const char* stage : kStageNames) line.append(",").append(stage);
  return line + "\n";
}

tl::unexpected<Error> cannot_write(const std::string& path, const std::string& why) {
  return fail(ErrorCode::kIo, path + ": the latency log cannot be written (" + why +
                                  "); latency.log must name a file in a folder that patternd may "
                                  "write to");
}

}  // namespace

Result<void> LatencyLog::check(const std::string& path) {
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) return cannot_write(path, std::strerror(errno));
  // Nobody may be reading a pipe, and we would wait for them.
  if (exists && S_ISFIFO(status.st_mode)) return cannot_write(path, "it is a pipe");
  if (exists && S_ISDIR(status.st_mode)) return cannot_write(path, std::strerror(EISDIR));
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const bool may =
      exists ? ::access(path.c_str(), W_OK) == 0 : ::access(folder.c_str(), W_OK | X_OK) == 0;
  return may ? Result<void>() : cannot_write(path, std::strerror(errno));
}

Result<std::unique_ptr<LatencyLog>> LatencyLog::open(const std::string& path) {
  if (auto good = check(path); !good) return tl::make_unexpected(good.error());
  const int file = ::open(path.c_str(), kOpenFlags, 0644);
  if (file < 0) return cannot_write(path, std::strerror(errno));
  struct stat status {};
  const bool fresh = fstat(file, &status) == 0 && status.st_size == 0;
  if (fresh && !write_all(file, header())) {
    const int error = errno;
    close(file);
    return cannot_write(path, std::strerror(error));
  }
  return std::unique_ptr<LatencyLog>(new LatencyLog(path, file));
}

LatencyLog::LatencyLog(std::string path, int file) : path_(std::move(path)), file_(file) {
  queued_.reserve(kMostQueued);
  thread_ = std::thread([this] { write_rows(); });
}

LatencyLog::~LatencyLog() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
  close(file_);
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
  const int error = write_all(file_, text) ? 0 : errno;
  const std::lock_guard<std::mutex> lock(mutex_);
  state_.error = error == 0 ? "" : std::strerror(error);
  if (error != 0) state_.lost += rows;
}

}  // namespace patternd
