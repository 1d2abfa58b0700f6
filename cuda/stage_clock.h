// When the stages of a frame began, by the GPU's own clock. Events between a graph's kernels cost
// more than a microsecond each, and no kernel starts early behind one; so a stage's first kernel
// notes the time in memory that the host reads. As coarse as that clock: a microsecond at worst.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/memory.h"

namespace patternd::cuda {

class StageClock {
 public:
  // When each stage of the search begins, in order.
  enum Moment { kPyramid, kSearch, kSuppression, kTrace, kRefine, kMoments };

  // `ends`: places in which the last stage's blocks note when they are done.
  [[nodiscard]] static Result<StageClock> create(const std::shared_ptr<const Device>& device,
                                                 std::size_t ends);
  // Where a kernel notes a moment, and the first of the ends.
  [[nodiscard]] Address address_of(Moment moment) const;
  [[nodiscard]] Address ends() const { return address_of(kMoments); }
  // Enqueues, behind the last stage, what makes them known to the host.
  [[nodiscard]] Result<void> download(const Stream& stream) const;

  // After that: nanoseconds from one moment to a later one, at least 0; kMoments is the end of the
  // last stage, or its beginning where nothing was to be done.
  [[nodiscard]] std::int64_t ns_between(Moment from, Moment to) const;

 private:
  [[nodiscard]] std::uint64_t time_of(Moment moment) const;
  std::size_t ends_ = 0;
  SharedBuffer times_;  // u64[kMoments + ends_]
};

}  // namespace patternd::cuda
