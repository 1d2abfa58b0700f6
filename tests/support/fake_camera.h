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

// What a processor made for tests does, shared by the test and every processor made of it. Any
// thread.
class FakeDevice {
 public:
  explicit FakeDevice(std::size_t depth = 1, int delay_us = 0)
      : depth_(depth), delay_us_(delay_us) {}
  // No frame becomes ready until that is taken back.
  void hold(bool held);
  // The frame with this number in its first pixels fails: when it is collected, or submitted.
  void fail_collecting(std::uint32_t number);
  void fail_submitting(std::uint32_t number);
  // Waits until so many frames are in flight.
  void wait_for_in_flight(std::size_t frames) const;
  [[nodiscard]] std::size_t most_in_flight() const;

 private:
  friend class FakeProcessor;
  const std::size_t depth_;
  const int delay_us_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool held_ = false;
  std::optional<std::uint32_t> failing_collect_;
  std::optional<std::uint32_t> failing_submit_;
  std::size_t in_flight_ = 0;
  std::size_t most_in_flight_ = 0;
};

// A processor that finds one match of each pattern, at x_px = the first four pixels as a number
// (the source writes its count there). A frame is done the device's delay after it is submitted,
// but not before the one before it.
[[nodiscard]] std::unique_ptr<FrameProcessor> make_fake_processor(
    const ProcessorConfig& config,
    std::shared_ptr<FakeDevice> device = std::make_shared<FakeDevice>());

}  // namespace patternd::test
