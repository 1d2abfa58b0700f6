// Memory for sources under test, which counts what they ask for.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "pipeline/source.h"

namespace patternd::test {

class FrameMemory : public FrameAllocator {
 public:
  Result<std::uint8_t*> allocate(std::size_t size_bytes) override {
    const std::size_t whole_pages = (size_bytes + 4095) / 4096 * 4096;
    blocks_.emplace_back(static_cast<std::uint8_t*>(std::aligned_alloc(4096, whole_pages)));
    return blocks_.back().get();
  }
  [[nodiscard]] std::size_t count() const { return blocks_.size(); }

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const { std::free(memory); }
  };
  std::vector<std::unique_ptr<std::uint8_t, Free>> blocks_;
};

}  // namespace patternd::test
