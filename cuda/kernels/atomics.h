// Atomic operations on global or shared memory, in forms that sm_30 has and both compilers take.
#pragma once

#include "cuda/kernels/device.h"

namespace patternd::cuda {

#if !defined(PATTERND_EMULATED)

#if defined(__clang__)
#if defined(__LP64__)
#define PATTERND_POINTER "l"
#else
#define PATTERND_POINTER "r"
#endif
#define PATTERND_ATOMIC_32(name, builtin, operation)     \
  PATTERND_DEVICE u32 name(u32* address, u32 value) {    \
    u32 old;                                             \
    asm volatile("atom." operation " %0, [%1], %2;"      \
                 : "=r"(old)                             \
                 : PATTERND_POINTER(address), "r"(value) \
                 : "memory");                            \
    return old;                                          \
  }
PATTERND_DEVICE void atomic_sum(u64* address, u64 value) {
  [[maybe_unused]] u64 old;
  asm volatile("atom.add.u64 %0, [%1], %2;"
               : "=l"(old)
               : PATTERND_POINTER(address), "l"(value)
               : "memory");
}
PATTERND_DEVICE u64 atomic_exchange_if(u64* address, u64 expected, u64 value) {
  u64 old;
  asm volatile("atom.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : PATTERND_POINTER(address), "l"(expected), "l"(value)
               : "memory");
  return old;
}
#else
// Not in assembly, which would hide from nvcc whether the address is of shared memory.
#define PATTERND_ATOMIC_32(name, builtin, operation) \
  PATTERND_DEVICE u32 name(u32* address, u32 value) { return builtin(address, value); }
PATTERND_DEVICE void atomic_sum(u64* address, u64 value) { atomicAdd(address, value); }
PATTERND_DEVICE u64 atomic_exchange_if(u64* address, u64 expected, u64 value) {
  return atomicCAS(address, expected, value);
}
#endif
PATTERND_ATOMIC_32(atomic_minimum, atomicMin, "min.u32")
PATTERND_ATOMIC_32(atomic_maximum, atomicMax, "max.u32")
PATTERND_ATOMIC_32(atomic_sum, atomicAdd, "add.u32")
PATTERND_ATOMIC_32(atomic_set_bits, atomicOr, "or.b32")
PATTERND_ATOMIC_32(atomic_keep_bits, atomicAnd, "and.b32")
#undef PATTERND_ATOMIC_32

// What other threads write at the same time, read and written in one piece.
PATTERND_DEVICE u32 load_fresh(const u32* address) {
  return *static_cast<const volatile u32*>(address);
}
PATTERND_DEVICE void store_through(u32* address, u32 value) {
#if defined(PATTERND_RACECHECK)  // tells atomic operations alone from races
  atomicExch(address, value);
#else
  *static_cast<volatile u32*>(address) = value;
#endif
}

// How many zeros above the highest set bit.
PATTERND_DEVICE int leading_zeros(u32 word) {
  int count;
  asm("clz.b32 %0, %1;" : "=r"(count) : "r"(word));
  return count;
}
PATTERND_DEVICE int population(u32 word) {
  int count;
  asm("popc.b32 %0, %1;" : "=r"(count) : "r"(word));
  return count;
}

#endif

PATTERND_DEVICE void atomic_maximum(u64* address, u64 value) {
#if PATTERND_ARCH >= 350 && !defined(__clang__)
  atomicMax(address, value);
#else  // sm_30 has no 64-bit maximum
  u64 seen = *static_cast<volatile u64*>(address);
  while (seen < value) {
    const u64 old = atomic_exchange_if(address, seen, value);
    if (old == seen) return;
    seen = old;
  }
#endif
}

PATTERND_DEVICE int highest_bit(u32 word) { return 31 - leading_zeros(word); }
PATTERND_DEVICE int lowest_bit(u32 word) { return highest_bit(word & (0U - word)); }

}  // namespace patternd::cuda
