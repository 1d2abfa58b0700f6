#include "pipeline/sources/aligned_frames.h"

#include <cstdlib>
#include <string>

namespace patternd {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

void AlignedFrameAllocator::Free::operator()(std::uint8_t* memory) const { std::free(memory); }

Result<std::uint8_t*> AlignedFrameAllocator::allocate(std::size_t size_bytes) {
  const std::size_t rounded = (size_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  auto* memory = static_cast<std::uint8_t*>(std::aligned_alloc(kPageBytes, rounded));
  if (memory == nullptr || rounded < size_bytes) {
    std::free(memory);
    return fail(ErrorCode::kExhausted, "no memory for a frame of " + std::to_string(size_bytes) +
                                           " bytes; choose a smaller width and height");
  }
  blocks_.emplace_back(memory);
  return memory;
}

}  // namespace patternd
