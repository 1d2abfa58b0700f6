// A camera made for tests of the service: it gives what the test says, when it says so.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "pipeline/frame_processor.h"
#include "pipeline/source.h"

namespace patternd::test {

// What the camera does, shared by the test and every source made of it. Any thread.
class FakeCamera {
 public:
  explicit FakeCamera(bool live) : live_(live) {}

  // Frames that may still be taken; each source counts its own frames from 0.
  void allow(std::uint64_t frames);
  // From now on next() fails with this, until heal(); start() too.
  void fail_with(const Error& error);
  void heal();
  // next() waits in vain.
  void stall(bool stalled);
  // start() waits until this is taken back.
  void block_starts(bool blocked);
  // A recording's end, once the allowed frames have been taken.
  void end_when_empty();
  void set_size(int width, int height);

  [[nodiscard]] std::uint64_t taken() const;
  [[nodiscard]] std::uint64_t starts() const;
  [[nodiscard]] std::unique_ptr<Source> make_source();

 private:
  friend class FakeSource;
  const bool live_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t allowed_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t starts_ = 0;
  bool stalled_ = false;
  bool starts_blocked_ = false;
  bool ends_ = false;
  std::optional<Error> error_;
  int width_ = 32;
  int height_ = 16;
};

// A processor that finds one match of each pattern, at x_px = the first four pixels as a number
// (the source writes its count there), after `delay_us`.
[[nodiscard]] std::unique_ptr<FrameProcessor> make_fake_processor(const ProcessorConfig& config,
                                                                  int delay_us);

}  // namespace patternd::test
