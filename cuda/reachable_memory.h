// Which host memory a GPU reads in place, and where it finds it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda/kernels/parameters.h"

namespace patternd::cuda {

// Sources' memory enters itself here when it is allocated; a frame is then known by its address,
// without a call of the driver's (Tegra K1's 32-bit one has none that would tell). Any thread.
class ReachableMemory {
 public:
  struct Range {
    const std::uint8_t* host = nullptr;
    std::size_t size_bytes = 0;
    Address device = 0;  // of the first byte, for kernels
  };
  void add(const Range& range);
  // The range that begins at `host`, which is freed.
  void remove(const std::uint8_t* host);
  // The range in which all of these bytes lie.
  [[nodiscard]] std::optional<Range> find(const std::uint8_t* data, std::size_t size_bytes) const;

 private:
  mutable std::mutex mutex_;
  std::vector<Range> ranges_;
};

}  // namespace patternd::cuda
