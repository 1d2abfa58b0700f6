// Memory for a source's frames in a GPU's reach, so that cameras capture straight into what the GPU
// reads or copies from.
#pragma once

#include <memory>
#include <vector>

#include "cuda/device.h"
#include "cuda/memory.h"
#include "pipeline/source.h"

namespace patternd::cuda {

// By the mode: page-locked memory that copies run from without the host (copy), the same that
// kernels read in place (mapped), or managed memory. Page-aligned. It keeps the device's context,
// which its frames may outlive by nothing; a GPU that has failed and is opened anew copies from it.
class FrameMemory final : public FrameAllocator {
 public:
  // `plain` serves what the GPU's driver has no memory for.
  FrameMemory(std::shared_ptr<const Device> device, MemoryMode mode,
              std::unique_ptr<FrameAllocator> plain);
  ~FrameMemory() override;
  FrameMemory(const FrameMemory&) = delete;
  FrameMemory& operator=(const FrameMemory&) = delete;

  [[nodiscard]] Result<std::uint8_t*> allocate(std::size_t size_bytes) override;
  [[nodiscard]] const char* kind() const override;
  [[nodiscard]] bool shared_with_host() const override;

 private:
  [[nodiscard]] Result<std::uint8_t*> allocate_reachable(std::size_t size_bytes);

  const std::shared_ptr<const Device> device_;
  const MemoryMode mode_;
  const std::unique_ptr<FrameAllocator> plain_;
  bool plain_used_ = false;
  PageLockedFrameAllocator page_locked_;
  std::vector<SharedBuffer> shared_;
};

}  // namespace patternd::cuda
