// Which instruction sets the kernels may use, as pipeline/highway_runtime.cpp tells Highway.
#include <cstdint>
#include <fstream>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <sstream>
#include <string>

namespace patternd {
namespace {

// The words of the CPU's feature line in /proc/cpuinfo, with a blank on both sides of each. Under
// qemu-user the file can be the host's: its line has another name there.
std::string kernel_features() {
  const std::string name = HWY_ARCH_X86 != 0 ? "flags" : "Features";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name, 0) == 0) return " " + line.substr(line.find(':') + 1) + " ";
  }
  return "";
}

bool has_all(const std::string& features, const std::string& wanted) {
  std::istringstream words(wanted);
  for (std::string word; words >> word;) {
    if (features.find(" " + word + " ") == std::string::npos) return false;
  }
  return true;
}

TEST(HighwayRuntime, ReportsWhatTheKernelSaysTheCpuHas) {
  const std::string features = kernel_features();
  if (features.empty()) GTEST_SKIP() << "/proc/cpuinfo lists no features of this CPU here";
  const int64_t targets = hwy::SupportedTargets();
#if HWY_ARCH_X86
  const std::string sse4 = "ssse3 sse4_1 sse4_2 pclmulqdq aes";
  const std::string avx2 = sse4 + " avx avx2 fma bmi1 bmi2 f16c abm";
  EXPECT_EQ((targets & HWY_SSE4) != 0, has_all(features, sse4)) << features;
  EXPECT_EQ((targets & HWY_AVX2) != 0, has_all(features, avx2)) << features;
  EXPECT_EQ((targets & HWY_AVX3) != 0,
            has_all(features, avx2 + " avx512f avx512vl avx512dq avx512bw"))
      << features;
#elif HWY_ARCH_ARM_A64
  EXPECT_EQ((targets & HWY_NEON) != 0, has_all(features, "asimd aes")) << features;
#elif HWY_ARCH_ARM_V7
  EXPECT_EQ((targets & HWY_NEON) != 0, has_all(features, "neon vfpv4")) << features;
#else
  EXPECT_NE(targets & HWY_SCALAR, 0);
#endif
}

TEST(HighwayRuntime, ChoosesAnotherTargetOnceTheBestIsMasked) {
  const int64_t all = hwy::SupportedTargets();
  const int64_t best = all & -all;  // the lowest bit is the best target
  hwy::DisableTargets(best);
  const int64_t rest = hwy::SupportedTargets();
  hwy::DisableTargets(0);
  EXPECT_EQ(hwy::SupportedTargets(), all);
  if ((best & (HWY_EMU128 | HWY_SCALAR)) == 0) {
    EXPECT_EQ(rest, all & ~best);
  } else {
    EXPECT_EQ(rest, all) << "plain C++ can't be masked";
  }
}

TEST(HighwayRuntime, AlwaysKeepsPlainCode) {
  hwy::SetSupportedTargetsForTest(HWY_SCALAR);
  const int64_t targets = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_EQ(targets, HWY_EMU128 | HWY_SCALAR);
  EXPECT_NE(hwy::SupportedTargets() & HWY_EMU128, 0);
}

}  // namespace
}  // namespace patternd
