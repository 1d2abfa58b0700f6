// Checks of a driver's sequence numbers and time stamps.
#pragma once

#include <cstdint>
#include <optional>

namespace patternd {

// Counts the frames that a driver lost by its 32-bit sequence numbers, which wrap.
class SequenceGaps {
 public:
  // Frames lost between the last frame and this one. A number that repeats or falls back (drivers
  // that don't count, or begin again) tells nothing: 0.
  //   4294967295, then 1: one frame (0) was lost.
  [[nodiscard]] std::uint64_t lost_before(std::uint32_t sequence);
  void restart() { last_.reset(); }

 private:
  std::optional<std::uint32_t> last_;
};

// Decides which instant a frame was captured at: the driver's stamp where it can be right, else the
// frame's arrival. Given instants rise strictly.
class StampChecker {
 public:
  // `driver_ns`: the stamp, nothing where it is of another clock than CLOCK_MONOTONIC. `since_ns`:
  // the buffer was free to be filled from then on. A stamp more than a second before that, or after
  // `arrived_ns`, is of another clock, whatever it claims; one a little after it (drivers that
  // stamp by the nominal rate) is the arrival.
  [[nodiscard]] std::int64_t captured_ns(std::optional<std::int64_t> driver_ns,
                                         std::int64_t since_ns, std::int64_t arrived_ns);
  // Frames stamped on arrival because their stamp could not be right.
  [[nodiscard]] std::uint64_t implausible() const { return implausible_; }

 private:
  std::int64_t last_ns_ = 0;
  std::uint64_t implausible_ = 0;
};

// CLOCK_REALTIME minus CLOCK_MONOTONIC now: turns an instant of one into the other.
[[nodiscard]] std::int64_t unix_minus_monotonic_ns();

}  // namespace patternd
