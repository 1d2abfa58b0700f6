// Many tables in one piece of device memory. A description of the tables runs twice: first to learn
// their size, then, the memory being allocated, to lay them out with their addresses.
//   auto memory = fill_arena(device, [&](Arena& arena) { p.runs = arena.put(runs); });
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/memory.h"

namespace patternd::cuda {

class Arena {
 public:
  explicit Arena(Address base) : base_(base) {}

  // A table's address, 256-byte aligned; 0 for an empty one.
  template <class T>
  [[nodiscard]] Address put(const T* values, std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (count == 0) return 0;
    const std::size_t at = bytes_.size();
    bytes_.resize((at + count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment);
    std::memcpy(bytes_.data() + at, values, count * sizeof(T));
    return base_ + at;
  }
  template <class T>
  [[nodiscard]] Address put(const std::vector<T>& values) {
    return put(values.data(), values.size());
  }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 256;
  Address base_;
  std::vector<std::uint8_t> bytes_;
};

template <class Describe>
[[nodiscard]] Result<DeviceBuffer> fill_arena(const std::shared_ptr<const Device>& device,
                                              const Describe& describe) {
  Arena sizes(0);
  describe(sizes);
  auto memory = DeviceBuffer::create(device, sizes.bytes().size());
  if (!memory) return memory;
  Arena arena(memory->address());
  describe(arena);
  if (auto ok = memory->write(device, arena.bytes().data(), arena.bytes().size()); !ok)
    return tl::make_unexpected(ok.error());
  return memory;
}

// The same for memory without contents: pieces of one allocation, 256-byte aligned.
class ScratchLayout {
 public:
  explicit ScratchLayout(Address base) : base_(base) {}
  [[nodiscard]] Address take(std::size_t bytes) {
    const std::size_t at = size_;
    size_ += (bytes + 255) / 256 * 256;
    return base_ + at;
  }
  [[nodiscard]] std::size_t size_bytes() const { return size_; }

 private:
  Address base_;
  std::size_t size_ = 0;
};

// All of it zero; waits.
template <class Describe>
[[nodiscard]] Result<DeviceBuffer> allocate_scratch(const std::shared_ptr<const Device>& device,
                                                    const Describe& describe) {
  ScratchLayout sizes(0);
  describe(sizes);
  auto memory = DeviceBuffer::create(device, sizes.size_bytes());
  if (!memory) return memory;
  ScratchLayout layout(memory->address());
  describe(layout);
  auto stream = Stream::create(device);
  if (!stream) return tl::make_unexpected(stream.error());
  if (auto ok = stream->fill(memory->pointer(), 0, memory->size_bytes()); !ok)
    return tl::make_unexpected(ok.error());
  if (auto ok = stream->wait(); !ok) return tl::make_unexpected(ok.error());
  return memory;
}

}  // namespace patternd::cuda
