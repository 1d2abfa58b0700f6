// Stands in for cuda/kernels/device.h where kernels run on the CPU, for their logic to be tested
// without a GPU: the block's threads are fibers that take turns, in an order drawn anew each time,
// at barriers and, now and then, where they touch what others write at the same time. What it
// cannot show is a race within one operation.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>

#include "cuda/kernels/parameters.h"

#define PATTERND_EMULATED 1
#define PATTERND_ARCH 0
#define PATTERND_KERNEL static void
#define PATTERND_DEVICE [[maybe_unused]] static inline
#define __launch_bounds__(...)
#define __shared__ static
#define __device__

namespace patternd::cuda {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

namespace emulated {

struct Place {
  int thread_x = 0;
  int block_x = 0;
  int block_y = 0;
  int threads_x = 0;
  int blocks_x = 0;
};
extern Place now;

// Runs a kernel, block by block; `seed` draws the threads' order.
void launch(int blocks_x, int blocks_y, int threads, std::uint32_t seed,
            const std::function<void()>& kernel);
void barrier();
// The value that `lane` of this thread's warp brought; all threads of the warp take part.
std::uint64_t exchange(std::uint64_t value, int lane);
// Now and then, others go on before this thread does.
void give_way();

// What a texture's address points to.
struct Texture {
  const u8* picture;
  int stride_bytes;
};

}  // namespace emulated

PATTERND_DEVICE int thread_x() { return emulated::now.thread_x; }
PATTERND_DEVICE int block_x() { return emulated::now.block_x; }
PATTERND_DEVICE int block_y() { return emulated::now.block_y; }
PATTERND_DEVICE int threads_x() { return emulated::now.threads_x; }
PATTERND_DEVICE int blocks_x() { return emulated::now.blocks_x; }
PATTERND_DEVICE void block_barrier() { emulated::barrier(); }

template <class T>
PATTERND_DEVICE T* global(u64 address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

template <class T>
PATTERND_DEVICE T shuffle_xor(T value, int mask) {
  return static_cast<T>(emulated::exchange(static_cast<u64>(value), thread_x() % kWarpSize ^ mask));
}
template <class T>
PATTERND_DEVICE T warp_sum(T value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2)
    value = static_cast<T>(value + shuffle_xor(value, mask));
  return value;
}
PATTERND_DEVICE int shuffle_from(int value, int lane) {
  return static_cast<int>(emulated::exchange(static_cast<u32>(value), lane));
}
PATTERND_DEVICE int shuffle_up(int value, int lanes) {
  const int lane = thread_x() % kWarpSize;
  return shuffle_from(value, lane >= lanes ? lane - lanes : lane);
}
PATTERND_DEVICE u32 warp_ballot(bool yes) {
  u32 lanes = yes ? 1U << (thread_x() % kWarpSize) : 0;
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) lanes |= shuffle_xor(lanes, mask);
  return lanes;
}
PATTERND_DEVICE int minimum(int a, int b) { return a < b ? a : b; }
PATTERND_DEVICE int maximum(int a, int b) { return a > b ? a : b; }
PATTERND_DEVICE i64 floor_to_i64(double value) { return static_cast<i64>(std::floor(value)); }

PATTERND_DEVICE float fetch(u64 texture, float x, float y) {
  const auto* t = global<const emulated::Texture>(texture);
  return static_cast<float>(
             t->picture[static_cast<int>(y) * t->stride_bytes + static_cast<int>(x)]) /
         255.0F;
}

// What `change` makes of *address; returns what was there.
template <class T, class Change>
PATTERND_DEVICE T change_at_once(T* address, const Change& change) {
  emulated::give_way();
  const T old = *address;
  *address = change(old);
  return old;
}
PATTERND_DEVICE u32 atomic_minimum(u32* address, u32 value) {
  return change_at_once(address, [=](u32 old) { return value < old ? value : old; });
}
PATTERND_DEVICE u32 atomic_maximum(u32* address, u32 value) {
  return change_at_once(address, [=](u32 old) { return value > old ? value : old; });
}
PATTERND_DEVICE u32 atomic_sum(u32* address, u32 value) {
  return change_at_once(address, [=](u32 old) { return old + value; });
}
PATTERND_DEVICE u32 atomic_set_bits(u32* address, u32 value) {
  return change_at_once(address, [=](u32 old) { return old | value; });
}
PATTERND_DEVICE void atomic_sum(u64* address, u64 value) {
  change_at_once(address, [=](u64 old) { return old + value; });
}
PATTERND_DEVICE u64 atomic_exchange_if(u64* address, u64 expected, u64 value) {
  return change_at_once(address, [=](u64 old) { return old == expected ? value : old; });
}
PATTERND_DEVICE u32 load_fresh(const u32* address) {
  emulated::give_way();
  return *address;
}
PATTERND_DEVICE void store_through(u32* address, u32 value) {
  emulated::give_way();
  *address = value;
}
PATTERND_DEVICE int leading_zeros(u32 word) { return word == 0 ? 32 : __builtin_clz(word); }
PATTERND_DEVICE int population(u32 word) { return __builtin_popcount(word); }

}  // namespace patternd::cuda
