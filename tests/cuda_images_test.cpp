// The compiled device images, as far as they can be checked without a GPU.
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

std::string read_from(const std::string& folder, const std::string& name) {
  std::ifstream file(folder + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string read(const std::string& name) { return read_from(PATTERND_IMAGE_DIR, name); }

// A form of the universal image: its address size and architecture.
struct Form {
  int bits;
  int architecture;
  const char* isa;
};
constexpr Form kBeforeVolta = {64, 30, "4.1"};
constexpr Form kSinceVolta = {64, 70, "6.0"};
constexpr Form kSinceAmpere = {64, 80, "7.4"};
constexpr Form kKeplerOf32Bits = {32, 30, "4.1"};

// Its file: those of a machine's own address size are embedded, the others are built beside them.
std::string file_of(const Form& form) {
  const std::string architecture = std::to_string(form.architecture);
  std::string embedded = "universal_" + architecture + ".universal";
  const std::string size = ".address_size " + std::to_string(form.bits);
  if (read(embedded).find(size) != std::string::npos) return embedded;
  return "universal" + std::to_string(form.bits) + "_" + architecture + ".ptx";
}
std::string universal(const Form& form) { return read(file_of(form)); }

// Kernel name -> bytes of its parameter struct.
std::map<std::string, int> kernels_of(const std::string& ptx) {
  std::map<std::string, int> kernels;
  const std::regex entry(
      R"(\.entry\s+(\w+)\s*\(\s*\.param\s+\.align\s+8\s+\.b8\s+\w+\[(\d+)\]\s*\))");
  for (std::sregex_iterator i(ptx.begin(), ptx.end(), entry), end; i != end; ++i)
    kernels[(*i)[1]] = std::stoi((*i)[2]);
  return kernels;
}

std::string newest_ptx() {
  for (int architecture : {120, 110, 100, 90, 89, 87, 86, 80, 75}) {
    std::string text = read("compute_" + std::to_string(architecture) + ".ptx");
    if (!text.empty()) return text;
  }
  return "";
}

// ptxas -v on an image: what it prints, or nothing where it cannot run.
std::string assemble(const std::string& image, const std::string& architecture) {
  const std::string command = std::string(PATTERND_PTXAS) + " -v -arch=" + architecture +
                              " -o /dev/null " + PATTERND_IMAGE_DIR + "/" + image + " 2>&1";
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[512];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) text += buffer;
  if (pipe == nullptr || pclose(pipe) != 0) ADD_FAILURE() << command << '\n' << text;
  return text;
}

// Bytes that a kernel may spill, around calls and where a launch bound asks for many warps.
constexpr int kMostSpilled = 256;

// Such as a launch bound that asks for what the architecture has no places for.
void expect_no_warning(const std::string& report) {
  EXPECT_EQ(report.find("warning"), std::string::npos) << report;
}

// Hardly any spills, and a block of 256 threads finds its
// registers on every GPU since Kepler.
void expect_lean(const std::string& report) {
  const std::regex spills(R"((\d+) bytes spill stores, (\d+) bytes spill loads)");
  for (std::sregex_iterator i(report.begin(), report.end(), spills), end; i != end; ++i) {
    EXPECT_LE(std::stoi((*i)[1]), kMostSpilled) << report;
    EXPECT_LE(std::stoi((*i)[2]), kMostSpilled) << report;
  }
  const std::regex registers(R"(Used (\d+) registers)");
  int kernels = 0;
  for (std::sregex_iterator i(report.begin(), report.end(), registers), end; i != end; ++i) {
    EXPECT_LE(std::stoi((*i)[1]), 255) << report;
    ++kernels;
  }
  EXPECT_GT(kernels, 0) << report;
}

class UniversalImage : public ::testing::TestWithParam<Form> {};

TEST_P(UniversalImage, IsOfItsPtxVersionArchitectureAndAddressSize) {
  const Form& form = GetParam();
  std::string text = universal(form);
  if (text.empty()) GTEST_SKIP() << "clang with the NVPTX back end is not here";
  EXPECT_NE(text.find(".version " + std::string(form.isa) + "\n"), std::string::npos);
  EXPECT_NE(text.find(".target sm_" + std::to_string(form.architecture) + "\n"), std::string::npos);
  EXPECT_NE(text.find(".address_size " + std::to_string(form.bits) + "\n"), std::string::npos);
  // Nothing of it may need a library to be linked on the device.
  EXPECT_EQ(text.find(".extern .func"), std::string::npos);
}
INSTANTIATE_TEST_SUITE_P(Forms, UniversalImage,
                         ::testing::Values(kBeforeVolta, kSinceVolta, kSinceAmpere,
                                           kKeplerOf32Bits));

// Where a warp's lanes run each by itself, no exchange may do without waiting for them.
TEST(DeviceImages, WaitForAllLanesInEachExchangeSinceVolta) {
  for (const Form& form : {kSinceVolta, kSinceAmpere}) {
    const std::string text = universal(form);
    if (text.empty()) GTEST_SKIP() << "clang with the NVPTX back end is not here";
    const std::regex exchange(R"(\b(shfl|vote)\.(\w+))");
    int exchanges = 0;
    for (std::sregex_iterator i(text.begin(), text.end(), exchange), end; i != end; ++i) {
      EXPECT_EQ("sync", (*i)[2]) << (*i)[0];
      ++exchanges;
    }
    EXPECT_GT(exchanges, 100);
    EXPECT_NE(text.find("bar.warp.sync"), std::string::npos);
  }
}

TEST(DeviceImages, MultiplyMatricesWhereTheArchitectureHasUnitsForIt) {
  const std::string text = universal(kSinceAmpere);
  if (text.empty()) GTEST_SKIP() << "clang with the NVPTX back end is not here";
  EXPECT_NE(text.find("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"), std::string::npos);
  EXPECT_NE(text.find("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32"), std::string::npos);
  for (const Form& form : {kBeforeVolta, kSinceVolta, kKeplerOf32Bits})
    EXPECT_EQ(universal(form).find("mma."), std::string::npos) << file_of(form);
}

// A way of a float picture that reads 256 bytes at a time, and tables through the read-only path.
TEST(DeviceImages, ReadAsWideAsTheArchitectureCan) {
  const std::string text = universal(kSinceAmpere);
  if (text.empty()) GTEST_SKIP() << "clang with the NVPTX back end is not here";
  EXPECT_NE(text.find("ld.global.nc.L2::256B.f32"), std::string::npos);
  for (const Form& form : {kSinceVolta, kSinceAmpere})
    EXPECT_NE(universal(form).find("ld.global.nc.v4.f32"), std::string::npos) << file_of(form);
}

// block_sum() writes a word a warp, waits, and reads all of them; three times in this kernel, in
// the same memory. A compiler that knows too little of barriers reads some before.
TEST(DeviceImages, ReadWhatOtherThreadsWroteBehindTheBarrierOnly) {
  for (const Form& form : {kBeforeVolta, kSinceVolta, kSinceAmpere}) {
    SCOPED_TRACE(file_of(form));
    const std::string text = universal(form);
    if (text.empty()) GTEST_SKIP() << "clang with the NVPTX back end is not here";
    std::istringstream lines(text.substr(text.find(".entry patternd_components_number(")));
    const std::regex store(R"(st\.shared\.u32)");
    const std::regex first_load(R"(ld\.shared\.u32.*of_warp\];)");
    int loads = 0;
    bool waited = false;  // since the last store
    for (std::string line; std::getline(lines, line) && line != "}";) {
      if (std::regex_search(line, store)) waited = false;
      if (line.find("bar.sync") != std::string::npos) waited = true;
      if (!std::regex_search(line, first_load)) continue;
      EXPECT_TRUE(waited) << line;
      ++loads;
    }
    EXPECT_EQ(3, loads);
  }
}

TEST(DeviceImages, HaveTheSameKernelsAndParametersInEachForm) {
  const auto narrow = kernels_of(universal(kKeplerOf32Bits));
  const auto wide = kernels_of(universal(kBeforeVolta));
  if (wide.empty()) GTEST_SKIP() << "clang with the NVPTX back end is not here";
  EXPECT_EQ(narrow, wide);
  EXPECT_EQ(kernels_of(universal(kSinceVolta)), wide);
  EXPECT_EQ(kernels_of(universal(kSinceAmpere)), wide);
}

TEST(DeviceImages, HaveTheSameKernelsAndParametersFromBothCompilers) {
  const auto native = kernels_of(newest_ptx());
  const auto wide = kernels_of(universal(kSinceVolta));
  if (wide.empty() || native.empty()) GTEST_SKIP() << "nvcc or clang is not here";
  EXPECT_EQ(native, wide);
}

// What Stream::launch_early starts before the launch ahead of it has ended.
TEST(DeviceImages, WaitForTheLaunchAheadInEveryKernelBehindTheSearchSinceHopper) {
  const std::string text = newest_ptx();
  const std::regex target(R"(\.target sm_(\d+))");
  std::smatch found;
  if (!std::regex_search(text, found, target) || std::stoi(found[1]) < 90)
    GTEST_SKIP() << "nvcc is not here, or knows no GPU since Hopper";
  const std::regex entry(R"(\.entry (patternd_(suppress|trace|refine)_\w+))");
  int kernels = 0;
  for (std::sregex_iterator i(text.begin(), text.end(), entry), end; i != end; ++i) {
    const auto start = static_cast<std::size_t>(i->position());
    const std::string body = text.substr(start, text.find("\n}\n", start) - start);
    const std::size_t wait = body.find("griddepcontrol.wait");
    ASSERT_NE(wait, std::string::npos) << (*i)[1];
    // Nothing of memory before it.
    EXPECT_EQ(body.substr(0, wait).find(".global"), std::string::npos) << (*i)[1];
    ++kernels;
  }
  EXPECT_GT(kernels, 6);
}

// The study's image is made by the same rule and never part of the service's.
TEST(DeviceImages, KeepTheStudysKernelsApart) {
  const std::string study = read_from(PATTERND_STUDY_IMAGE_DIR, file_of(kBeforeVolta));
  if (study.empty()) GTEST_SKIP() << "clang with the NVPTX back end is not here";
  EXPECT_NE(study.find(".version 4.1\n"), std::string::npos);
  EXPECT_NE(study.find(".target sm_30\n"), std::string::npos);
  EXPECT_EQ(study.find(".extern .func"), std::string::npos);
  EXPECT_NE(study.find(".entry patternd_study_copy"), std::string::npos);
  EXPECT_EQ(read(file_of(kBeforeVolta)).find("patternd_study_"), std::string::npos);
}

TEST(DeviceImages, SpillHardlyAnyRegistersInNativeCode) {
  if (std::string(PATTERND_PTXAS).empty() || newest_ptx().empty())
    GTEST_SKIP() << "ptxas is not here";
  for (int architecture : {120, 110, 100, 90, 89, 87, 86, 80, 75}) {
    const std::string number = std::to_string(architecture);
    if (read("compute_" + number + ".ptx").empty()) continue;
    const std::string report = assemble("compute_" + number + ".ptx", "sm_" + number);
    expect_lean(report);
    expect_no_warning(report);
  }
}

// Of all forms: today's assembler knows no GPU of before Volta.
TEST(DeviceImages, AssembleFromTheUniversalOneWithHardlyASpill) {
  if (std::string(PATTERND_PTXAS).empty() || universal(kSinceVolta).empty())
    GTEST_SKIP() << "ptxas or clang is not here";
  expect_lean(assemble(file_of(kBeforeVolta), "sm_75"));
  for (const auto& [form, architecture] :
       {std::pair(kSinceVolta, "sm_75"), std::pair(kSinceAmpere, "sm_80")}) {
    const std::string report = assemble(file_of(form), architecture);
    expect_lean(report);
    expect_no_warning(report);
  }
}

}  // namespace
