#include "pipeline/sources/frame_clock.h"

#include <algorithm>
#include <ctime>

#include "pipeline/stage.h"

namespace patternd {
namespace {

// Clocks that are not the monotonic one differ by far more.
constexpr std::int64_t kToleranceNs = 1'000'000'000;

}  // namespace

std::uint64_t SequenceGaps::lost_before(std::uint32_t sequence) {
  const std::uint32_t step = last_ ? sequence - *last_ : 1;  // modulo 2^32
  last_ = sequence;
  const bool forward = step >= 1 && step <= UINT32_MAX / 2;
  return forward ? step - 1 : 0;
}

std::int64_t StampChecker::captured_ns(std::optional<std::int64_t> driver_ns, std::int64_t since_ns,
                                       std::int64_t arrived_ns) {
  std::int64_t at = arrived_ns;
  if (driver_ns) {
    const bool plausible =
        *driver_ns >= since_ns - kToleranceNs && *driver_ns <= arrived_ns + kToleranceNs;
    if (plausible)
      at = std::min(*driver_ns, arrived_ns);
    else
      ++implausible_;
  }
  last_ns_ = std::max(at, last_ns_ + 1);
  return last_ns_;
}

std::int64_t unix_minus_monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec - monotonic_ns();
}

}  // namespace patternd
