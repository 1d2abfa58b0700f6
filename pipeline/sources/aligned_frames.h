// The plainest memory for frames.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/source.h"

namespace patternd {

// Page-aligned memory that lasts as long as this object.
class AlignedFrameAllocator : public FrameAllocator {
 public:
  [[nodiscard]] Result<std::uint8_t*> allocate(std::size_t size_bytes) override;

 private:
  struct Free {
    void operator()(std::uint8_t* memory) const;
  };
  std::vector<std::unique_ptr<std::uint8_t[], Free>> blocks_;
};

}  // namespace patternd
