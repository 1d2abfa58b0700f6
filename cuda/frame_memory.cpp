#include "cuda/frame_memory.h"

#include <utility>

namespace patternd::cuda {

FrameMemory::FrameMemory(std::shared_ptr<const Device> device, MemoryMode mode,
                         std::unique_ptr<FrameAllocator> plain)
    : device_(std::move(device)), mode_(mode), plain_(std::move(plain)), page_locked_(device_) {}

FrameMemory::~FrameMemory() {
  for (const SharedBuffer& buffer : shared_) device_->reachable().remove(buffer.host());
}

Result<std::uint8_t*> FrameMemory::allocate(std::size_t size_bytes) {
  auto memory = allocate_reachable(size_bytes);
  if (memory) return memory;
  if (memory.error().code == ErrorCode::kDevice) device_->give_up();
  plain_used_ = true;
  return plain_->allocate(size_bytes);
}

Result<std::uint8_t*> FrameMemory::allocate_reachable(std::size_t size_bytes) {
  if (auto ok = device_->make_current(); !ok) return tl::make_unexpected(ok.error());
  if (mode_ == MemoryMode::kCopy) return page_locked_.allocate(size_bytes);
  auto buffer = SharedBuffer::create(device_, mode_, size_bytes);
  if (!buffer) return tl::make_unexpected(buffer.error());
  device_->reachable().add({buffer->host(), size_bytes, buffer->device()});
  shared_.push_back(std::move(*buffer));
  return shared_.back().host();
}

bool FrameMemory::shared_with_host() const {
  return mode_ != MemoryMode::kManaged || device_->properties().concurrent_managed_access;
}

const char* FrameMemory::kind() const {
  if (plain_used_) return plain_->kind();
  return mode_ == MemoryMode::kCopy ? "page-locked" : name_of(mode_);
}

}  // namespace patternd::cuda
