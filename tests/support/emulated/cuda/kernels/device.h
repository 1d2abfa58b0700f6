// Stands in for cuda/kernels/device.h where kernels run on the CPU, for their logic to be tested
// without a GPU: the block's threads are fibers that take turns, in an order drawn anew each time,
// at barriers and, now and then, where they touch what others write at the same time. Lanes of a
// warp run apart, as they do since Volta: only what waits for others knows what they did. Ends the
// program where a lane is missing in its warp's exchange, or comes with another operation. What it
// cannot show is a race within one operation.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include "cuda/kernels/parameters.h"

#define PATTERND_EMULATED 1
#define PATTERND_ARCH 0
#define PATTERND_KERNEL [[maybe_unused]] static void
#define PATTERND_DEVICE [[maybe_unused]] static inline
#define PATTERND_DEVICE_CALL [[maybe_unused]] static
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

struct Extent {
  int x = 1;
  int y = 1;
};
struct Place {
  int thread = 0;  // of the block
  Extent block_at = {0, 0};
  Extent threads;
  Extent blocks;
};
extern Place now;

// Runs a kernel, block by block; `seed` draws the order of blocks and threads.
void launch(Extent blocks, Extent threads, std::uint32_t seed, const std::function<void()>& kernel);
inline void launch(int blocks_x, int blocks_y, int threads, std::uint32_t seed,
                   const std::function<void()>& kernel) {
  launch({blocks_x, blocks_y}, {threads, 1}, seed, kernel);
}
void barrier();

enum class Operation { kUp, kDown, kXor, kFrom, kBallot, kMatrix, kBarrier };
// What a lane brings to an exchange.
using LaneWords = std::array<std::uint32_t, 6>;
// All lanes' of this thread's warp; all its threads take part, with one operation.
const LaneWords* exchange(Operation operation, const LaneWords& words);
// The value that `lane` of this thread's warp brought.
std::uint64_t exchange(Operation operation, std::uint64_t value, int lane);
// Whether exchanges wait for the warp's lanes, as they do but for a test of what else becomes of
// them: without, they are those of PTX of before Volta on a GPU of since.
void let_exchanges_wait(bool wait);
// Now and then, others go on before this thread does.
void give_way();

// What all threads have done so far that costs a GPU time.
struct Counts {
  std::uint64_t working_blocks = 0;  // those that did any of the following but wait at barriers
  std::uint64_t lookups = 0;         // in textures
  std::uint64_t fused = 0;           // multiply-adds
  std::uint64_t exchanges = 0;       // with the warp, its barriers too
  std::uint64_t barriers = 0;        // of the block
};
extern Counts counts;

inline constexpr std::size_t kDynamicSharedBytes = 256 * 1024;
extern unsigned char dynamic_shared_bytes[];

// What a texture's address points to. `bytes` a value (1, 2; 4: float), `channels` side by side.
struct Texture {
  const u8* picture;
  int stride_bytes;
  int width;
  int height;
  int bytes;
  int channels;
  // As the unit gives it: 0 to 1, clamped to the picture.
  [[nodiscard]] float at(int x, int y, int channel) const {
    const u8* row =
        picture + static_cast<std::ptrdiff_t>(std::clamp(y, 0, height - 1)) * stride_bytes;
    const int i = std::clamp(x, 0, width - 1) * channels + channel;
    if (bytes == 1) return static_cast<float>(row[i]) / 255.0F;
    if (bytes == 2) return static_cast<float>(reinterpret_cast<const u16*>(row)[i]) / 65535.0F;
    return reinterpret_cast<const float*>(row)[i];
  }
};

}  // namespace emulated

PATTERND_DEVICE int thread_x() { return emulated::now.thread % emulated::now.threads.x; }
PATTERND_DEVICE int thread_y() { return emulated::now.thread / emulated::now.threads.x; }
PATTERND_DEVICE int block_x() { return emulated::now.block_at.x; }
PATTERND_DEVICE int block_y() { return emulated::now.block_at.y; }
PATTERND_DEVICE int threads_x() { return emulated::now.threads.x; }
PATTERND_DEVICE int threads_y() { return emulated::now.threads.y; }
PATTERND_DEVICE int blocks_x() { return emulated::now.blocks.x; }
PATTERND_DEVICE int blocks_y() { return emulated::now.blocks.y; }
PATTERND_DEVICE void block_barrier() { emulated::barrier(); }
PATTERND_DEVICE void warp_barrier() { emulated::exchange(emulated::Operation::kBarrier, 0, 0); }
PATTERND_DEVICE void device_fence() {}
PATTERND_DEVICE void await_launch_before() {}
PATTERND_DEVICE void let_next_launch_start() {}

template <class T>
PATTERND_DEVICE T* global(u64 address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

PATTERND_DEVICE u64 gpu_clock_ns() {
  return static_cast<u64>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                              std::chrono::steady_clock::now().time_since_epoch())
                              .count());
}
PATTERND_DEVICE void note_moment(u64 address) {
  if (address != 0 && block_x() == 0 && block_y() == 0 && thread_x() == 0)
    *global<u64>(address) = gpu_clock_ns();
}

struct alignas(16) Float4 {
  float x, y, z, w;
};
struct alignas(16) Word4 {
  u32 x, y, z, w;
};
struct alignas(8) Word2 {
  u32 x, y;
};
struct alignas(8) UShort4 {
  u16 x, y, z, w;
};
PATTERND_DEVICE Float4 load_float4(const Float4* address) { return *address; }
PATTERND_DEVICE Word4 load_word4(const Word4* address) { return *address; }
PATTERND_DEVICE Word2 load_word2(const Word2* address) { return *address; }
PATTERND_DEVICE void prefetch(const void*) {}
PATTERND_DEVICE u32 load_anew(const u32* address) { return *address; }
#define PATTERND_PLAIN_LOADS 1
template <int kOffset>
PATTERND_DEVICE float load_float(u64 address) {
  return *global<const float>(address + kOffset);
}
PATTERND_DEVICE u64 add_product(u64 address, int a, int b) {
  return address + static_cast<u64>(static_cast<i64>(a) * b);
}
template <class T>
PATTERND_DEVICE T* dynamic_shared() {
  return reinterpret_cast<T*>(emulated::dynamic_shared_bytes);
}

// A value of up to eight bytes from another lane of the warp.
template <class T>
PATTERND_DEVICE T from_lane(emulated::Operation operation, T value, int lane) {
  u64 bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = emulated::exchange(operation, bits, lane);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
PATTERND_DEVICE int lane_of_warp() { return emulated::now.thread % kWarpSize; }
template <class T>
PATTERND_DEVICE T shuffle_xor(T value, int mask) {
  return from_lane(emulated::Operation::kXor, value, lane_of_warp() ^ mask);
}
PATTERND_DEVICE int shuffle_up(int value, int lanes) {
  const int lane = lane_of_warp();
  return from_lane(emulated::Operation::kUp, value, lane >= lanes ? lane - lanes : lane);
}
template <class T>
PATTERND_DEVICE T shuffle_down(T value, int lanes) {
  const int lane = lane_of_warp();
  return from_lane(emulated::Operation::kDown, value,
                   lane + lanes < kWarpSize ? lane + lanes : lane);
}
PATTERND_DEVICE int shuffle_from(int value, int lane) {
  return from_lane(emulated::Operation::kFrom, value, lane);
}
template <class T>
PATTERND_DEVICE T warp_sum(T value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2)
    value = static_cast<T>(value + shuffle_xor(value, mask));
  return value;
}

// As in cuda/kernels/device.h.
inline constexpr bool kHasMatrixUnits = true;
template <class Byte>
PATTERND_DEVICE void add_byte_products(int (&sums)[4], const emulated::LaneWords& own) {
  const emulated::LaneWords* lanes = emulated::exchange(emulated::Operation::kMatrix, own);
  const int g = lane_of_warp() / 4;
  const int t = lane_of_warp() % 4;
  for (int i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < 32; ++k) {
      // A's words are {rows g, g + 8} of the first 16 columns, then of the others.
      const std::size_t a = 2 * (k / 16) + static_cast<std::size_t>(i / 2);
      const std::size_t b = 4 + k / 16;
      const auto shift = 8 * (k % 4);
      const std::size_t part = k % 16 / 4;
      const auto row = static_cast<std::size_t>(g) * 4 + part;
      const auto column = static_cast<std::size_t>(2 * t + i % 2) * 4 + part;
      sums[i] += static_cast<Byte>(lanes[row][a] >> shift) *
                 static_cast<signed char>(lanes[column][b] >> shift);
    }
  }
}
PATTERND_DEVICE void add_products(int (&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3,
                                  const u32 (&b)[2]) {
  add_byte_products<signed char>(sums, {a0, a1, a2, a3, b[0], b[1]});
}
PATTERND_DEVICE void add_products_unsigned(int (&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3,
                                           const u32 (&b)[2]) {
  add_byte_products<u8>(sums, {a0, a1, a2, a3, b[0], b[1]});
}

PATTERND_DEVICE u32 warp_ballot(bool yes) {
  u32 lanes = yes ? 1U << (thread_x() % kWarpSize) : 0;
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2)
    lanes |= from_lane(emulated::Operation::kBallot, lanes, lane_of_warp() ^ mask);
  return lanes;
}
PATTERND_DEVICE float fused(float a, float b, float c) {
  ++emulated::counts.fused;
  return std::fma(a, b, c);
}
PATTERND_DEVICE double fused(double a, double b, double c) { return std::fma(a, b, c); }
PATTERND_DEVICE float root(float value) { return std::sqrt(value); }
PATTERND_DEVICE double root(double value) { return std::sqrt(value); }
PATTERND_DEVICE float inverse_root(float value) { return 1.0F / std::sqrt(value); }
PATTERND_DEVICE float reciprocal(float value) { return 1.0F / value; }
inline constexpr float kRounder = 12582912.0F;
inline constexpr int kRounderBits = 0x4B400000;
// For kRounder, whose neighbours are one apart.
PATTERND_DEVICE float add_down(float a, float b) { return std::floor(a) + b; }
PATTERND_DEVICE int bits_of(float value) {
  int bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
PATTERND_DEVICE int minimum(int a, int b) { return a < b ? a : b; }
PATTERND_DEVICE int maximum(int a, int b) { return a > b ? a : b; }
PATTERND_DEVICE float minimum(float a, float b) { return std::fmin(a, b); }
PATTERND_DEVICE float maximum(float a, float b) { return std::fmax(a, b); }
PATTERND_DEVICE u32 pick_bytes(u32 low, u32 high, u32 selector) {
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 from = selector >> 4 * i & 7U;
    result |= ((from < 4 ? low : high) >> 8 * (from % 4) & 0xFFU) << 8 * i;
  }
  return result;
}
PATTERND_DEVICE int floor_to_int(float value) { return static_cast<int>(std::floor(value)); }
PATTERND_DEVICE int floor_to_int(double value) { return static_cast<int>(std::floor(value)); }
PATTERND_DEVICE i64 floor_to_i64(double value) { return static_cast<i64>(std::floor(value)); }

PATTERND_DEVICE float fetch(u64 texture, float x, float y) {
  ++emulated::counts.lookups;
  return global<const emulated::Texture>(texture)->at(static_cast<int>(std::floor(x)),
                                                      static_cast<int>(std::floor(y)), 0);
}
struct Gathered {
  float left_bottom, right_bottom, right_top, left_top;
};
template <int kChannel>
PATTERND_DEVICE Gathered gather(u64 texture, float x, float y) {
  ++emulated::counts.lookups;
  const auto* t = global<const emulated::Texture>(texture);
  const int left = static_cast<int>(std::floor(x - 0.5F));
  const int top = static_cast<int>(std::floor(y - 0.5F));
  return {t->at(left, top + 1, kChannel), t->at(left + 1, top + 1, kChannel),
          t->at(left + 1, top, kChannel), t->at(left, top, kChannel)};
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
PATTERND_DEVICE u32 atomic_keep_bits(u32* address, u32 value) {
  return change_at_once(address, [=](u32 old) { return old & value; });
}
PATTERND_DEVICE u32 atomic_add(u32* address, u32 value) { return atomic_sum(address, value); }
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
