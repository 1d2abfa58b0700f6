// Memory for sources under test, which counts what they ask for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "pipeline/source.h"

namespace patternd::test {

class FrameMemory : public FrameAllocator {
 public:
  Result<std::uint8_t*> allocate(std::size_t size_bytes) override {
    const std::size_t whole_pages = (size_bytes + 4095) / 4096 * 4096;
    if (blocks_.size() == most_) return fail(ErrorCode::kExhausted, "no more memory");
    blocks_.push_back({std::unique_ptr<std::uint8_t, Free>(
                           static_cast<std::uint8_t*>(std::aligned_alloc(4096, whole_pages))),
                       whole_pages});
    return blocks_.back().memory.get();
  }
  [[nodiscard]] std::size_t count() const { return blocks_.size(); }
  // Gives no more than that many blocks.
  void set_most(std::size_t most) { most_ = most; }
  // The number of the block in which a byte lies, or count().
  [[nodiscard]] std::size_t block_of(const std::uint8_t* byte) const {
    const auto address = reinterpret_cast<std::uintptr_t>(byte);
    const auto found = std::find_if(blocks_.begin(), blocks_.end(), [address](const Block& block) {
      const auto begin = reinterpret_cast<std::uintptr_t>(block.memory.get());
      return address >= begin && address - begin < block.size_bytes;
    });
    return static_cast<std::size_t>(found - blocks_.begin());
  }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };
  struct Block {
    std::unique_ptr<std::uint8_t, Free> memory;
    std::size_t size_bytes;
  };
  std::vector<Block> blocks_;
  std::size_t most_ = std::numeric_limits<std::size_t>::max();
};

}  // namespace patternd::test
