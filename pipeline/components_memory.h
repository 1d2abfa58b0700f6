// Memory for a worst case that seldom comes: address space is reserved, and a page becomes resident
// when it is first written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <sys/mman.h>
#include <utility>

#include "pipeline/result.h"

namespace patternd::components {

// An array of `count` elements that are zero until written; move-only. T is trivial.
template <class T>
class ReservedArray {
 public:
  ReservedArray() = default;
  // Fails with kExhausted where the address space does not suffice.
  [[nodiscard]] static Result<ReservedArray> create(std::uint64_t count) {
    ReservedArray array;
    if (count == 0) return array;
    const bool fits = count <= std::numeric_limits<std::size_t>::max() / 2 / sizeof(T);
    const std::size_t bytes = fits ? static_cast<std::size_t>(count) * sizeof(T) : 0;
    void* memory = fits ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                        : MAP_FAILED;
    if (memory == MAP_FAILED) {
      return fail(ErrorCode::kExhausted,
                  "components: cannot reserve " + std::to_string(count) + " times " +
                      std::to_string(sizeof(T)) +
                      " bytes for the worst picture of this size; label a smaller picture or an "
                      "roi, or lift the process's address-space limit");
    }
    // Large pages spare the first pictures most page faults; a refusal costs only time.
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    array.data_ = static_cast<T*>(memory);
    array.bytes_ = bytes;
    return array;
  }
  ~ReservedArray() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  ReservedArray(ReservedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ReservedArray& operator=(ReservedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  [[nodiscard]] T* data() const { return data_; }
  T& operator[](std::size_t index) const { return data_[index]; }

 private:
  T* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace patternd::components
