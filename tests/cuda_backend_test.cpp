// The choice between CPU and GPU, and what becomes of frames when the GPU fails, without one.
#include <cmath>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <tuple>

#include "cuda/backend.h"
#include "cuda/device_image.h"
#include "cuda/driver_api.h"
#include "pipeline/pattern.h"

namespace patternd::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
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
  EXPECT_FALSE(chosen->passes_gpu_over);
}

TEST(Backend, RefusesCudaWhereThereIsNoDriver) {
  ComputeOptions options;
  options.backend = Backend::kCuda;
  options.driver = "libpatternd-no-such-driver.so.1";
  const auto chosen = make_processor(options, plain_config());
  ASSERT_FALSE(chosen);
  EXPECT_THAT(chosen.error().message, HasSubstr("compute.backend: cuda is not available"));
  EXPECT_THAT(chosen.error().message, HasSubstr("set auto or cpu"));
  EXPECT_EQ(chosen.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(chosen.error().names_setting);
}

// What asks for a GPU that is not there is named as the user wrote it, with its own cure; `auto`
// takes the CPU and says that a GPU was missed.
TEST(Backend, NamesTheSettingThatMissesTheGpu) {
  ComputeOptions wrong_device;
  wrong_device.driver = PATTERND_FAKE_FAILING;
  wrong_device.names.device = "p.yaml:2:3: compute.device";
  wrong_device.names.image = "--image";
  ComputeOptions wrong_image = wrong_device;
  wrong_device.device = 63;
  wrong_image.image = "sm_53";
  for (auto [options, start, cure] :
       std::vector<std::tuple<ComputeOptions, const char*, const char*>>{
           {wrong_device, "p.yaml:2:3: compute.device: is 63; must be ", "0"},
           {wrong_image, "--image: is sm_53, of which this build has nothing for this GPU",
            "must be auto, or one of "}}) {
    if (options.image != "auto" && embedded_images().empty()) continue;
    options.backend = Backend::kCuda;
    const auto refused = make_processor(options, plain_config());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, StartsWith(start));
    EXPECT_THAT(refused.error().message, HasSubstr(cure));
    EXPECT_THAT(refused.error().message, Not(HasSubstr("cpu")));
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(refused.error().names_setting);
    options.backend = Backend::kAuto;
    const auto chosen = make_processor(options, plain_config());
    ASSERT_TRUE(chosen);
    EXPECT_STREQ(chosen->processor->backend(), "cpu");
    EXPECT_TRUE(chosen->passes_gpu_over);
    EXPECT_THAT(chosen->reason, StartsWith(start));
  }
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
  EXPECT_TRUE(chosen->passes_gpu_over);
}

// A picture of something that looks like itself nowhere else, moved to the right from frame to
// frame.
Image moving_frame(int frame) {
  auto image = Image::create(64, 48, PixelFormat::kGray8);
  EXPECT_TRUE(image);
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 64; ++x) {
      const double u = x - 3 * frame;
      const double grey = 128 + 50 * std::sin(0.31 * u + 0.02 * u * y) + 50 * std::sin(0.27 * y);
      image->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(grey);
    }
  }
  return std::move(*image);
}

RawImageView raw_of(const Image& image) {
  const ImageView view = image.view();
  return {view.data,        view.stride_bytes * 48, 64, 48, view.stride_bytes,
          RawFormat::kGrey, BayerOrder::kRggb};
}

ProcessorConfig search_config() {
  ProcessorConfig config = plain_config();
  const Image first = moving_frame(0);
  config.stride_bytes = first.view().stride_bytes;
  auto pattern = teach_pattern("made", first.view().crop(8, 12, 24, 24), {}, {});
  EXPECT_TRUE(pattern) << pattern.error().message;
  SearchParams params;
  params.angle_deg = {{-5, 5}};
  config.patterns.push_back({std::make_shared<const Pattern>(std::move(*pattern)), params});
  return config;
}

TEST(Backend, DoesAllFramesInFlightAgainOnTheCpuInOrderWhereTheGpuFails) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  ComputeOptions options;
  options.driver = PATTERND_EMULATED;
  options.streams = 3;
  const ProcessorConfig config = search_config();
  auto chosen = make_processor(options, config);
  ASSERT_TRUE(chosen) << chosen.error().message;
  FrameProcessor& processor = *chosen->processor;
  ASSERT_STREQ(processor.backend(), "cuda") << chosen->reason;
  ASSERT_EQ(processor.depth(), 3U);
  auto cpu = make_cpu_processor(config);
  ASSERT_TRUE(cpu);

  std::vector<Image> frames;
  for (int frame = 0; frame < 4; ++frame) frames.push_back(moving_frame(frame));
  for (std::size_t frame = 0; frame < 3; ++frame)
    ASSERT_TRUE(processor.submit(raw_of(frames[frame])));
  void* const driver = dlopen(PATTERND_EMULATED, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(driver, nullptr);
  const auto reset = reinterpret_cast<void (*)(int, int, bool)>(dlsym(driver, "fake_reset"));
  reset(1, 999, true);
  const auto expect_cpus = [&](std::size_t frame) {
    SCOPED_TRACE(frame);
    FrameResult expected;
    FrameResult found;
    ASSERT_TRUE((*cpu)->process(raw_of(frames[frame]), expected));
    EXPECT_TRUE(processor.ready());
    const auto done = processor.collect(found);
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_FALSE(expected.matches.empty());
    ASSERT_EQ(found.matches.size(), expected.matches.size());
    EXPECT_EQ(found.matches[0].x_px, expected.matches[0].x_px);
    EXPECT_NEAR(found.matches[0].x_px, 19.5 + 3.0 * static_cast<double>(frame), 0.5);
  };
  for (std::size_t frame = 0; frame < 3; ++frame) expect_cpus(frame);
  EXPECT_STREQ(processor.backend(), "cpu");
  EXPECT_THAT(processor.description(), HasSubstr("3 frames done by the CPU"));
  ASSERT_TRUE(processor.submit(raw_of(frames[3])));  // the GPU is not tried again yet
  expect_cpus(3);
  reset(0, 0, false);
  dlclose(driver);
}

// Frames' memory is in the GPU's reach, and there is one context for it and the processor.
TEST(Backend, GivesFramesMemoryOfTheSameDevice) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  class PlainMemory : public FrameAllocator {
   public:
    Result<std::uint8_t*> allocate(std::size_t) override {
      return fail(ErrorCode::kExhausted, "plain memory was asked for");
    }
  };
  ComputeOptions options;
  options.driver = PATTERND_FAKE_FAILING;
  for (const auto& [memory, kind] : std::vector<std::pair<const char*, const char*>>{
           {"copy", "page-locked"}, {"mapped", "mapped"}, {"managed", "managed"}}) {
    options.memory = memory;
    const auto frames = make_frame_memory(options, std::make_unique<PlainMemory>());
    const auto place = frames->allocate(10'000);
    ASSERT_TRUE(place) << place.error().message;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*place) % 4096, 0U);
    EXPECT_STREQ(frames->kind(), kind);
  }
  options.backend = Backend::kCpu;
  EXPECT_STREQ(make_frame_memory(options, std::make_unique<PlainMemory>())->kind(), "plain");
}

// Where the driver has no such memory left, frames lie in plain memory and status says so.
TEST(Backend, GivesPlainMemoryWhereTheDriverHasNone) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  class PlainMemory : public FrameAllocator {
   public:
    Result<std::uint8_t*> allocate(std::size_t) override { return &byte_; }

   private:
    std::uint8_t byte_ = 0;
  };
  ComputeOptions options;
  options.driver = PATTERND_FAKE_FAILING;
  const auto frames = make_frame_memory(options, std::make_unique<PlainMemory>());
  void* const driver = dlopen(PATTERND_FAKE_FAILING, RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(driver, nullptr);
  const auto reset = reinterpret_cast<void (*)(int, int, bool)>(dlsym(driver, "fake_reset"));
  reset(1, kOutOfMemory, true);
  EXPECT_TRUE(frames->allocate(10'000));
  reset(0, 0, false);
  EXPECT_STREQ(frames->kind(), "plain");
  dlclose(driver);
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
