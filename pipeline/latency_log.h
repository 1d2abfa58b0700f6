// The latency log: a frame a line as CSV, written by a thread of its own so that a slow disk never
// holds up a frame.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/result.h"
#include "pipeline/stage.h"

namespace patternd {

class LatencyLog {
 public:
  // Opens `path` to append; an empty or new file gets the header
  //   seq,captured_mono_ns,capture,rectify,…,publish,total
  // (stages in microseconds). kIo where it cannot be opened.
  [[nodiscard]] static Result<std::unique_ptr<LatencyLog>> open(const std::string& path);
  // Whether open() would succeed; makes no file.
  [[nodiscard]] static Result<void> check(const std::string& path);
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
  LatencyLog(std::string path, int file);
  void write_rows();
  void write_text(const std::string& text, std::size_t rows);

  const std::string path_;
  const int file_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Row> queued_;
  State state_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace patternd
