// What the kernels need of CUDA's headers, in our own words, so that clang compiles them without a
// toolkit (universal image) and nvcc with its own (native images). Nothing here depends on a warp's
// size being anything but the hardware's.
//
// A warp's lanes run in step before Volta (sm_70); since then each runs by itself, and an exchange
// has to name the lanes that it waits for. PTX has the one form or the other, so the universal
// image is compiled for sm_30 and for sm_70; once more for sm_80 and its matrix units.
#pragma once

#include "cuda/kernels/parameters.h"

#if defined(__clang__)
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif
#define PATTERND_KERNEL extern "C" __global__ void
#define PATTERND_DEVICE static __device__ inline
// For the large functions that are called from many places: inlined everywhere they would multiply.
#define PATTERND_DEVICE_CALL static __device__ __attribute__((noinline))

#if !defined(__CUDA_ARCH__)
#define PATTERND_ARCH 0
#else
#define PATTERND_ARCH __CUDA_ARCH__
#endif
// clang's, where lanes run in step: its exchanges have no form that waits.
#define PATTERND_IN_STEP (PATTERND_ARCH < 700)

namespace patternd::cuda {

// Blocks of so many threads for a launch bound to ask a multiprocessor to take at a time, where it
// has places for so many: Turing's, which also runs what is made for Volta, for 1024 threads,
// others' for 1536 at least.
constexpr int blocks_at_a_time(int threads, int wanted) {
  const int most = (PATTERND_ARCH >= 700 && PATTERND_ARCH < 800 ? 1024 : 1536) / threads;
  return wanted < most ? wanted : most;
}

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;
constexpr u32 kAllLanes = 0xFFFFFFFFU;

// ---- Where a thread stands ----------------------------------------------------------------------
#if defined(__clang__)
PATTERND_DEVICE int thread_x() { return __nvvm_read_ptx_sreg_tid_x(); }
PATTERND_DEVICE int thread_y() { return __nvvm_read_ptx_sreg_tid_y(); }
PATTERND_DEVICE int block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
PATTERND_DEVICE int block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
PATTERND_DEVICE int block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
PATTERND_DEVICE int threads_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
PATTERND_DEVICE int threads_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
PATTERND_DEVICE int blocks_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
PATTERND_DEVICE int blocks_y() { return __nvvm_read_ptx_sreg_nctaid_y(); }
#else
PATTERND_DEVICE int thread_x() { return static_cast<int>(threadIdx.x); }
PATTERND_DEVICE int thread_y() { return static_cast<int>(threadIdx.y); }
PATTERND_DEVICE int block_x() { return static_cast<int>(blockIdx.x); }
PATTERND_DEVICE int block_y() { return static_cast<int>(blockIdx.y); }
PATTERND_DEVICE int block_z() { return static_cast<int>(blockIdx.z); }
PATTERND_DEVICE int threads_x() { return static_cast<int>(blockDim.x); }
PATTERND_DEVICE int threads_y() { return static_cast<int>(blockDim.y); }
PATTERND_DEVICE int blocks_x() { return static_cast<int>(gridDim.x); }
PATTERND_DEVICE int blocks_y() { return static_cast<int>(gridDim.y); }
#endif
// clang's builtins for barriers will not do: to LLVM (GlobalsAA, seen in clang 14) they write no
// memory, so it moves loads of shared memory that no address was taken of from behind a barrier to
// before it.
PATTERND_DEVICE void block_barrier() {
#if defined(__clang__)
  asm volatile("bar.sync 0;" ::: "memory");
#else
  __syncthreads();
#endif
}
// Makes what the warp's lanes wrote to shared memory known among them; all lanes take part.
PATTERND_DEVICE void warp_barrier() {
#if !defined(__clang__)
  __syncwarp();
#elif PATTERND_IN_STEP
  asm volatile("membar.cta;" ::: "memory");
#else
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
#endif
}
// What this thread wrote before is seen by other blocks before what it writes after.
PATTERND_DEVICE void device_fence() {
#if defined(__clang__)
  asm volatile("membar.gl;" ::: "memory");
#else
  __threadfence();
#endif
}
// First of all in a kernel that Stream::launch_early starts while the launch before it ends: waits
// until that one is done and what it wrote is known. Nothing where the GPU has no such launches.
PATTERND_DEVICE void await_launch_before() {
#if PATTERND_ARCH >= 900 && !defined(__clang__)
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// The next launch's blocks may take their places once all of this one's have come here. They wait
// in vain where others could work: for kernels that are done in a few microseconds.
PATTERND_DEVICE void let_next_launch_start() {
#if PATTERND_ARCH >= 900 && !defined(__clang__)
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}
// The GPU's clock, in nanoseconds; in steps of up to a microsecond on older ones.
PATTERND_DEVICE u64 gpu_clock_ns() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
  return now;
}

// ---- Memory -------------------------------------------------------------------------------------
// A parameter's 64-bit address as a pointer to global memory (so that the compiler emits ld.global,
// not the slower generic form).
template <class T>
PATTERND_DEVICE T* global(u64 address) {
#if defined(__clang__)
  using Global = T __attribute__((address_space(1)));
  return (T*)reinterpret_cast<Global*>(static_cast<__SIZE_TYPE__>(address));
#else
  // Not __cvta_global_to_generic: nvcc 13.0's optimiser never ends on it in a branch.
  T* pointer = reinterpret_cast<T*>(address);
  __builtin_assume(__isGlobal(pointer));
  return pointer;
#endif
}

// One thread of the launch notes the time where the host reads it; 0: nowhere.
PATTERND_DEVICE void note_moment(u64 address) {
  if (address != 0 && block_x() == 0 && block_y() == 0 && thread_x() == 0)
    *global<u64>(address) = gpu_clock_ns();
}

struct alignas(16) Float4 {
  float x, y, z, w;
};
// The block's shared memory whose size the launch gives.
extern __shared__ Float4 patternd_dynamic_shared[];
template <class T>
PATTERND_DEVICE T* dynamic_shared() {
  return reinterpret_cast<T*>(patternd_dynamic_shared);
}

struct alignas(16) Word4 {
  u32 x, y, z, w;
};
struct alignas(8) Word2 {
  u32 x, y;
};
struct alignas(8) UShort4 {
  u16 x, y, z, w;
};

// Reads through the read-only path where the architecture has one: of global memory that nothing
// writes meanwhile.
#if !defined(__clang__) && PATTERND_ARCH >= 350
PATTERND_DEVICE Float4 load_float4(const Float4* address) {
  const float4 value = __ldg(reinterpret_cast<const float4*>(address));
  return {value.x, value.y, value.z, value.w};
}
PATTERND_DEVICE Word4 load_word4(const Word4* address) {
  const uint4 value = __ldg(reinterpret_cast<const uint4*>(address));
  return {value.x, value.y, value.z, value.w};
}
PATTERND_DEVICE Word2 load_word2(const Word2* address) {
  const uint2 value = __ldg(reinterpret_cast<const uint2*>(address));
  return {value.x, value.y};
}
#elif PATTERND_ARCH >= 350
PATTERND_DEVICE Float4 load_float4(const Float4* address) {
  Float4 value;
  asm("ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];"
      : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
      : "l"(address));
  return value;
}
PATTERND_DEVICE Word4 load_word4(const Word4* address) {
  Word4 value;
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
      : "l"(address));
  return value;
}
PATTERND_DEVICE Word2 load_word2(const Word2* address) {
  Word2 value;
  asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(value.x), "=r"(value.y) : "l"(address));
  return value;
}
#else
PATTERND_DEVICE Float4 load_float4(const Float4* address) { return *address; }
PATTERND_DEVICE Word4 load_word4(const Word4* address) { return *address; }
PATTERND_DEVICE Word2 load_word2(const Word2* address) { return *address; }
#endif
// Has a line of global memory brought into the first cache.
PATTERND_DEVICE void prefetch(const void* address) {
  asm volatile("prefetch.global.L1 [%0];"
               :
#if defined(__clang__) && !defined(__LP64__)
               : "r"(address)
#else
               : "l"(address)
#endif
  );
}
// A load of its own, whatever the compiler knows of the value.
PATTERND_DEVICE u32 load_anew(const u32* address) {
  return *static_cast<const volatile u32*>(address);
}
// Whether loads of global memory go through the cache that textures use, without the texture unit.
#define PATTERND_PLAIN_LOADS (PATTERND_ARCH >= 700)
#if PATTERND_PLAIN_LOADS
// The float at an address of global memory, which nothing writes meanwhile; fetches its
// neighbourhood too, where the architecture does such.
template <int kOffset>
PATTERND_DEVICE float load_float(u64 address) {
  float value;
#if PATTERND_ARCH >= 800
  asm("ld.global.nc.L2::256B.f32 %0, [%1+%2];" : "=f"(value) : "l"(address), "n"(kOffset));
#else
  asm("ld.global.nc.f32 %0, [%1+%2];" : "=f"(value) : "l"(address), "n"(kOffset));
#endif
  return value;
}
// address + a·b, which the compilers make more of than one instruction.
PATTERND_DEVICE u64 add_product(u64 address, int a, int b) {
  u64 result;
  asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(result) : "r"(a), "r"(b), "l"(address));
  return result;
}
#endif

// ---- Warps --------------------------------------------------------------------------------------
// All lanes of the warp must take part.
PATTERND_DEVICE int shuffle_down(int value, int lanes) {
#if !defined(__clang__)
  return __shfl_down_sync(kAllLanes, value, static_cast<unsigned>(lanes));
#elif PATTERND_IN_STEP
  return __nvvm_shfl_down_i32(value, lanes, 0x1f);
#else
  return __nvvm_shfl_sync_down_i32(kAllLanes, value, lanes, 0x1f);
#endif
}
PATTERND_DEVICE int shuffle_up(int value, int lanes) {
#if !defined(__clang__)
  return __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(lanes));
#elif PATTERND_IN_STEP
  return __nvvm_shfl_up_i32(value, lanes, 0);
#else
  return __nvvm_shfl_sync_up_i32(kAllLanes, value, lanes, 0);
#endif
}
PATTERND_DEVICE int shuffle_xor(int value, int mask) {
#if !defined(__clang__)
  return __shfl_xor_sync(kAllLanes, value, mask);
#elif PATTERND_IN_STEP
  return __nvvm_shfl_bfly_i32(value, mask, 0x1f);
#else
  return __nvvm_shfl_sync_bfly_i32(kAllLanes, value, mask, 0x1f);
#endif
}
PATTERND_DEVICE int shuffle_from(int value, int lane) {
#if !defined(__clang__)
  return __shfl_sync(kAllLanes, value, lane);
#elif PATTERND_IN_STEP
  return __nvvm_shfl_idx_i32(value, lane, 0x1f);
#else
  return __nvvm_shfl_sync_idx_i32(kAllLanes, value, lane, 0x1f);
#endif
}
PATTERND_DEVICE float shuffle_down(float value, int lanes) {
  union {
    float f;
    int i;
  } bits{value};
  bits.i = shuffle_down(bits.i, lanes);
  return bits.f;
}
PATTERND_DEVICE float shuffle_xor(float value, int mask) {
  union {
    float f;
    int i;
  } bits{value};
  bits.i = shuffle_xor(bits.i, mask);
  return bits.f;
}
PATTERND_DEVICE i64 shuffle_xor(i64 value, int mask) {
  const int low = shuffle_xor(static_cast<int>(value), mask);
  const int high = shuffle_xor(static_cast<int>(value >> 32), mask);
  return static_cast<i64>((static_cast<u64>(static_cast<u32>(high)) << 32) | static_cast<u32>(low));
}
PATTERND_DEVICE double shuffle_xor(double value, int mask) {
  union {
    double f;
    i64 i;
  } bits{value};
  bits.i = shuffle_xor(bits.i, mask);
  return bits.f;
}
// The sum over the warp, in every lane; always in the same order.
template <class T>
PATTERND_DEVICE T warp_sum(T value) {
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

// ---- Arithmetic ---------------------------------------------------------------------------------
// Contraction is off in every image; where a fused multiply-add is meant, it is written.
#if defined(__clang__)
PATTERND_DEVICE float fused(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
PATTERND_DEVICE double fused(double a, double b, double c) { return __nvvm_fma_rn_d(a, b, c); }
PATTERND_DEVICE double root(double value) { return __nvvm_sqrt_rn_d(value); }
PATTERND_DEVICE float root(float value) { return __nvvm_sqrt_rn_f(value); }
#else
PATTERND_DEVICE float fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PATTERND_DEVICE double fused(double a, double b, double c) { return __fma_rn(a, b, c); }
PATTERND_DEVICE double root(double value) { return __dsqrt_rn(value); }
PATTERND_DEVICE float root(float value) { return __fsqrt_rn(value); }
#endif
// 1 / sqrt(value), to 2e-7 of it, in one instruction.
PATTERND_DEVICE float inverse_root(float value) {
  float result;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
// 1 / value, to 2e-7 of it, in one instruction.
PATTERND_DEVICE float reciprocal(float value) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
// Added to a float of small magnitude it leaves a whole number, whose bits less kRounderBits are
// the number's as an integer, in an addition at full rate (conversions run at a quarter of it).
inline constexpr float kRounder = 12582912.0F;  // 1.5 · 2^23
inline constexpr int kRounderBits = 0x4B400000;
// Rounded down.
#if defined(__clang__)
PATTERND_DEVICE float add_down(float a, float b) { return __nvvm_add_rm_f(a, b); }
#else
PATTERND_DEVICE float add_down(float a, float b) { return __fadd_rd(a, b); }
#endif
PATTERND_DEVICE int bits_of(float value) {
  union {
    float f;
    int i;
  } bits{value};
  return bits.i;
}
PATTERND_DEVICE int minimum(int a, int b) { return a < b ? a : b; }
PATTERND_DEVICE int maximum(int a, int b) { return a > b ? a : b; }
PATTERND_DEVICE float minimum(float a, float b) {
  float result;
  asm("min.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
PATTERND_DEVICE float maximum(float a, float b) {
  float result;
  asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
// Four bytes of eight: the selector's digits, from its lowest on, say which of `low`'s (0 to 3) and
// `high`'s (4 to 7) they are.
PATTERND_DEVICE u32 pick_bytes(u32 low, u32 high, u32 selector) {
  u32 result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
  return result;
}
// Largest integer not above the value.
PATTERND_DEVICE int floor_to_int(float value) {
  int result;
  asm("cvt.rmi.s32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}
PATTERND_DEVICE int floor_to_int(double value) {
  int result;
  asm("cvt.rmi.s32.f64 %0, %1;" : "=r"(result) : "d"(value));
  return result;
}

PATTERND_DEVICE i64 floor_to_i64(double value) {
  i64 result;
  asm("cvt.rmi.s64.f64 %0, %1;" : "=l"(result) : "d"(value));
  return result;
}

// ---- Matrix units -------------------------------------------------------------------------------
// sums += A·B, in exact integers, A of 16×32 and B of 32×8 bytes, which the warp holds together;
// all lanes take part. With g = lane / 4, t = lane % 4, and four bytes a word, the first in its
// lowest bits: a[0], a[1] are columns 4t … 4t + 3 of A's rows g and g + 8, a[2], a[3] the same 16
// columns on; b[0], b[1] are rows 4t … and 16 + 4t … of B's column g. sums[0], [1] are row g,
// columns 2t and 2t + 1; sums[2], [3] row g + 8. B's bytes are signed; A's too, or not. Units for
// it are in GPUs since sm_80: others are never asked (Device::has_matrix_units).
inline constexpr bool kHasMatrixUnits = PATTERND_ARCH >= 800;
#if PATTERND_ARCH >= 800
#define PATTERND_ADD_PRODUCTS(name, type)                                                      \
  PATTERND_DEVICE void name(int(&sums)[4], u32 a0, u32 a1, u32 a2, u32 a3, const u32(&b)[2]) { \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." type                                          \
        ".s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"              \
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])                           \
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b[0]), "r"(b[1]));                           \
  }
#else
#define PATTERND_ADD_PRODUCTS(name, type)                                     \
  PATTERND_DEVICE void name(int(&)[4], u32, u32, u32, u32, const u32(&)[2]) { \
    asm volatile("trap;");                                                    \
  }
#endif
PATTERND_ADD_PRODUCTS(add_products, "s8")
PATTERND_ADD_PRODUCTS(add_products_unsigned, "u8")
#undef PATTERND_ADD_PRODUCTS

PATTERND_DEVICE u32 atomic_add(u32* address, u32 value) {
  u32 old;
  asm volatile("atom.global.add.u32 %0, [%1], %2;"
               : "=r"(old)
#if defined(__clang__) && !defined(__LP64__)
               : "r"(address), "r"(value)
#else
               : "l"(address), "r"(value)
#endif
               : "memory");
  return old;
}

// ---- Textures -----------------------------------------------------------------------------------
// The four texels around a corner between texels, as the hardware orders them: w z over x y, i.e.
// (left, bottom), (right, bottom), (right, top), (left, top). `x`, `y` are in texels; the centre of
// texel (0, 0) is (0.5, 0.5).
struct Gathered {
  float left_bottom, right_bottom, right_top, left_top;
};
template <int kChannel>
PATTERND_DEVICE Gathered gather(u64 texture, float x, float y) {
  Gathered g;
  if (kChannel == 0) {
    asm("tld4.r.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
        : "=f"(g.left_bottom), "=f"(g.right_bottom), "=f"(g.right_top), "=f"(g.left_top)
        : "l"(texture), "f"(x), "f"(y));
  } else {
    asm("tld4.g.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
        : "=f"(g.left_bottom), "=f"(g.right_bottom), "=f"(g.right_top), "=f"(g.left_top)
        : "l"(texture), "f"(x), "f"(y));
  }
  return g;
}
// One filtered (or, by the texture's mode, nearest) value of the first channel.
PATTERND_DEVICE float fetch(u64 texture, float x, float y) {
  float r;
  [[maybe_unused]] float g, b, a;
  asm("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];"
      : "=f"(r), "=f"(g), "=f"(b), "=f"(a)
      : "l"(texture), "f"(x), "f"(y));
  return r;
}

}  // namespace patternd::cuda
