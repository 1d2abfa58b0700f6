#include "cuda/stage_clock.h"

#include <algorithm>
#include <cstring>

namespace patternd::cuda {

Result<StageClock> StageClock::create(const std::shared_ptr<const Device>& device,
                                      std::size_t ends) {
  StageClock clock;
  clock.ends_ = ends;
  const std::size_t bytes = (kMoments + ends) * sizeof(std::uint64_t);
  auto times = SharedBuffer::create(device, memory_for_results(*device), bytes);
  if (!times) return tl::make_unexpected(times.error());
  clock.times_ = std::move(*times);
  std::memset(clock.times_.host(), 0, bytes);
  return clock;
}

Address StageClock::address_of(Moment moment) const {
  return times_.device() + static_cast<Address>(moment) * sizeof(std::uint64_t);
}

Result<void> StageClock::download(const Stream& stream) const {
  return times_.download(stream, times_.size_bytes());
}

// A stage without a kernel has no moment: it ends where it begins. Ends are not cleared: those of
// frames before are earlier.
std::uint64_t StageClock::time_of(Moment moment) const {
  const auto* times = times_.host_as<const std::uint64_t>();
  for (int i = moment; i < kMoments; ++i)
    if (times[i] != 0) return times[i];
  return std::max(times[kRefine], *std::max_element(times + kMoments, times + kMoments + ends_));
}

std::int64_t StageClock::ns_between(Moment from, Moment to) const {
  const std::uint64_t start = time_of(from);
  const std::uint64_t end = time_of(to);
  return end > start ? static_cast<std::int64_t>(end - start) : 0;
}

}  // namespace patternd::cuda
