// The choice between CPU and GPU, and what becomes of frames when the GPU fails, without one.
#include <gmock/gmock.h>

#include "cuda/backend.h"
#include "cuda/device_image.h"

namespace patternd::cuda {
namespace {

using ::testing::HasSubstr;
using Backend = ComputeOptions::Backend;

ProcessorConfig plain_config() {
  ProcessorConfig config;
  config.width = 64;
  config.height = 48;
  config.stride_bytes = 64;
  config.threads = 1;
  return config;
}

TEST(Backend, TakesTheCpuWhereThereIsNoDriverAndSaysWhy) {
  ComputeOptions options;
  options.driver = "libpatternd-no-such-driver.so.1";
  const auto chosen = make_processor(options, plain_config());
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_STREQ(chosen->processor->backend(), "cpu");
  EXPECT_THAT(chosen->reason, HasSubstr("no NVIDIA driver"));
}

TEST(Backend, RefusesCudaWhereThereIsNoDriver) {
  ComputeOptions options;
  options.backend = Backend::kCuda;
  options.driver = "libpatternd-no-such-driver.so.1";
  const auto chosen = make_processor(options, plain_config());
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().message, HasSubstr("compute.backend: cuda is not available"));
  EXPECT_THAT(chosen.error().message, HasSubstr("set auto or cpu"));
}

TEST(Backend, TakesTheCpuWhereTheDriverIsTooOld) {
  ComputeOptions options;
  options.driver = PATTERND_FAKE_LACKING;
  const auto chosen = make_processor(options, plain_config());
  ASSERT_TRUE(chosen);
  EXPECT_STREQ(chosen->processor->backend(), "cpu");
  EXPECT_THAT(chosen->reason, HasSubstr("cuTexObjectDestroy"));
}

// The fake's kernels do nothing, so nothing is found where the CPU finds something.
TEST(Backend, RefusesAGpuThatFailsItsSelfTest) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  ComputeOptions options;
  options.driver = PATTERND_FAKE_FAILING;
  const auto chosen = make_processor(options, plain_config());
  ASSERT_TRUE(chosen);
  EXPECT_STREQ(chosen->processor->backend(), "cpu");
  EXPECT_THAT(chosen->reason, HasSubstr("self-test failed"));
}

TEST(Backend, TakesTheCpuAsAsked) {
  ComputeOptions options;
  options.backend = Backend::kCpu;
  const auto chosen = make_processor(options, plain_config());
  ASSERT_TRUE(chosen);
  EXPECT_STREQ(chosen->processor->backend(), "cpu");
  EXPECT_EQ(chosen->reason, "as configured");
}

}  // namespace
}  // namespace patternd::cuda
