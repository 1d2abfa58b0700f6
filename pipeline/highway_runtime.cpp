// Highway's run-time part: which of the instruction sets that the kernels were compiled for this
// CPU has. Highway's headers do the rest. Debian and Ubuntu have it only as a shared library, under
// a name and version of each release, and the one for armhf never reports NEON; with this file a
// package needs no libhwy and a Tegra K1 gets its vectors. It defines what <hwy/targets.h> and
// <hwy/base.h> declare, for Highway 1.0 and later.
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <hwy/base.h>
#include <hwy/targets.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace hwy {
namespace {

std::atomic<int64_t> disabled_targets{0};
std::atomic<int64_t> supported_for_test{0};

#if HWY_ARCH_X86

// The two features that older compilers' __builtin_cpu_supports() doesn't know.
bool has_f16c_and_lzcnt() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & bit_F16C) == 0) return false;
  return __get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_LZCNT) != 0;
}

// __builtin_cpu_supports() also asks whether the system keeps the wide registers.
int64_t cpu_targets() {
  __builtin_cpu_init();
  int64_t targets = 0;
  if (__builtin_cpu_supports("ssse3")) targets |= HWY_SSSE3;
  const bool sse4 = __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                    __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  if (!sse4) return targets;
  targets |= HWY_SSE4;
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    has_f16c_and_lzcnt();
  if (!avx2) return targets;
  targets |= HWY_AVX2;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return avx512 ? targets | HWY_AVX3 : targets;
}

#elif HWY_ARCH_ARM_A64

// Highway's NEON takes the AES instructions for granted. SVE is left out of the build (see
// pipeline/CMakeLists.txt).
int64_t cpu_targets() { return (getauxval(AT_HWCAP) & HWCAP_AES) != 0 ? HWY_NEON : 0; }

#elif HWY_ARCH_ARM_V7

// Kernels are compiled with +neon-vfpv4.
int64_t cpu_targets() {
  constexpr unsigned long kNeeded = HWCAP_NEON | HWCAP_VFPv4;
  return (getauxval(AT_HWCAP) & kNeeded) == kNeeded ? HWY_NEON : 0;
}

#else

int64_t cpu_targets() { return 0; }

#endif

}  // namespace

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

int64_t SupportedTargets() {
  static const int64_t cpu = cpu_targets() | HWY_STATIC_TARGET;
  const int64_t test = supported_for_test.load(std::memory_order_relaxed);
  const int64_t found = test != 0 ? test : cpu & ~disabled_targets.load(std::memory_order_relaxed);
  const int64_t targets = found | HWY_EMU128 | HWY_SCALAR;
  GetChosenTarget().Update(targets);
  return targets;
}

void DisableTargets(int64_t targets) {
  disabled_targets.store(targets & ~(HWY_EMU128 | HWY_SCALAR), std::memory_order_relaxed);
  GetChosenTarget().DeInit();
}

void SetSupportedTargetsForTest(int64_t targets) {
  supported_for_test.store(targets, std::memory_order_relaxed);
  GetChosenTarget().DeInit();
}

void Abort(const char* file, int line, const char* format, ...) {
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::va_list values;
  va_start(values, format);
  std::vfprintf(stderr, format, values);
  va_end(values);
  std::fputc('\n', stderr);
  std::abort();
}

}  // namespace hwy
