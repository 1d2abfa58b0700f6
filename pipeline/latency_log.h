// The latency log: a frame a line as CSV, written by a thread of its own so that a slow disk never
// holds up a frame.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "pipeline/file_descriptor.h"
#include "pipeline/result.h"
#include "pipeline/stage.h"

namespace patternd {

class LatencyLog {
 public:
  // Opens `path` to append; an empty or new file gets the header
  //   seq,captured_mono_ns,capture,rectify,…,publish,total
  // (stages in microseconds). kIo where it cannot be opened, kInvalidArgument where is_ours() says
  // no. A disk that is full is neither: state() tells, and lines are lost until it has room, as
  // with one that fills up later.
  [[nodiscard]] static Result<std::unique_ptr<LatencyLog>> open(const std::string& path);
  // Whether open() would succeed; makes no file.
  [[nodiscard]] static Result<void> check(const std::string& path);
  // Whether what stands at `path` may be appended to: nothing, an empty file, or one that begins
  // with the header's first two columns (other versions may have other stages). What may not be
  // read counts as ours.
  [[nodiscard]] static Result<void> is_ours(const std::string& path);
  // Writes what is queued, then closes.
  ~LatencyLog();
  LatencyLog(const LatencyLog&) = delete;
  LatencyLog& operator=(const LatencyLog&) = delete;

  // Queues one line; allocates nothing and never waits for the disk. Where the queue (4,096 lines)
  // is full the line is lost and counted.
  void add(std::uint64_t seq, std::int64_t captured_mono_ns, const StageTimes& times);

  struct State {
    std::uint64_t lost = 0;  // lines that the disk did not take in time, or at all
    std::string error;       // of the last write that failed, else empty
  };
  [[nodiscard]] State state() const;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct Row {
    std::uint64_t seq = 0;
    std::int64_t captured_mono_ns = 0;
    StageTimes times;
  };
  explicit LatencyLog(std::string path) : path_(std::move(path)) {}
  // Opens the file where it isn't yet, and gives it its header; false, and errno, where that fails.
  [[nodiscard]] bool make_ready();
  void write_rows();
  void write_text(const std::string& text, std::size_t rows);

  const std::string path_;
  FileDescriptor file_;         // the writing thread's, once there is one
  bool header_missing_ = true;  // likewise
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Row> queued_;
  State state_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace patternd
