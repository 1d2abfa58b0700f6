// A GPU that fails part-way, without one: what is given up, and that no later frame pays for it.
#include <cmath>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <random>

#include "cuda/backend.h"
#include "cuda/cuda_processor.h"
#include "cuda/device_image.h"
#include "cuda/supervised_processor.h"
#include "pipeline/pattern.h"
#include "tests/support/frame_memory.h"

namespace patternd::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kWidth = 64;
constexpr int kHeight = 48;

// A made driver with its knobs, and a device on it.
class DeviceFault : public ::testing::Test {
 protected:
  void SetUp() override {
    if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  }
  void TearDown() override { close(); }
  void close() {
    device_ = nullptr;
    if (library_ == nullptr) return;
    reset(0);
    dlclose(std::exchange(library_, nullptr));
  }
  void open(const char* library) {
    library_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    reset(0);
    const auto driver = Driver::open(library);
    ASSERT_TRUE(driver) << driver.error().message;
    auto device = Device::open(*driver, 0, "auto");
    ASSERT_TRUE(device) << device.error().message;
    device_ = *device;
  }
  template <class Function>
  Function symbol(const char* name) {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  void reset(int fail_at, Status status = 999) {
    symbol<void (*)(int, Status, bool)>("fake_reset")(fail_at, status, false);
  }
  int calls() { return symbol<int (*)()>("fake_calls")(); }
  int contexts() { return symbol<int (*)()>("fake_contexts")(); }
  void lose_contexts() { symbol<void (*)()>("fake_lose_contexts")(); }
  void spoil_results(bool no_room, bool lost_teams) {
    symbol<void (*)(bool, bool)>("fake_spoil_results")(no_room, lost_teams);
  }

  std::shared_ptr<const Device> device_;

 private:
  void* library_ = nullptr;
};

// A blurred noise, which looks like itself nowhere else, with a shift down and to the right, and
// grains of its own.
Image made_frame(int shift, double grain, unsigned seed) {
  constexpr int kAround = 10;
  std::mt19937 random(77);
  std::normal_distribution<double> normal(0, 1);
  std::vector<std::vector<double>> noise(kHeight + 2 * kAround);
  for (auto& row : noise)
    for (int x = 0; x < kWidth + 2 * kAround; ++x) row.push_back(normal(random));
  random.seed(seed);
  auto image = Image::create(kWidth, kHeight, PixelFormat::kGray8);
  EXPECT_TRUE(image);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      double sum = 0;
      for (int j = -3; j <= 3; ++j) {
        for (int i = -3; i <= 3; ++i) {
          sum += std::exp(-(i * i + j * j) / 4.5) *
                 noise[static_cast<std::size_t>(kAround + y + j - shift)]
                      [static_cast<std::size_t>(kAround + x + i - shift)];
        }
      }
      const double grey = 128 + 22 * sum + grain * normal(random);
      image->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::clamp(grey, 0.0, 255.0));
    }
  }
  return std::move(*image);
}

RawImageView raw_of(const Image& image) {
  const ImageView view = image.view();
  return {view.data,        view.stride_bytes * kHeight, kWidth,
          kHeight,          view.stride_bytes,           RawFormat::kGrey,
          BayerOrder::kRggb};
}

// The search of a part of `first`, upright.
ProcessorConfig search_config(const Image& first) {
  ProcessorConfig config;
  config.width = kWidth;
  config.height = kHeight;
  config.stride_bytes = first.view().stride_bytes;
  config.threads = 1;
  auto pattern = teach_pattern("made", first.view().crop(8, 12, 24, 24), {}, {});
  EXPECT_TRUE(pattern) << pattern.error().message;
  SearchParams params;
  params.angle_deg = {{0, 0}};
  params.min_score = 0.6;
  config.patterns.push_back({std::make_shared<const Pattern>(std::move(*pattern)), params});
  return config;
}

ProcessorConfig with_blobs(ProcessorConfig config, BlobParams::Reference reference) {
  config.blobs = BlobParams();
  config.blobs->threshold = 40;
  config.blobs->reference = reference;
  return config;
}

// With the CPU behind it and no other GPU to open.
std::unique_ptr<FrameProcessor> supervised(const std::shared_ptr<const Device>& device,
                                           const ProcessorConfig& config) {
  auto gpu = make_cuda_processor(device, "copy", config);
  auto cpu = make_cpu_processor(config);
  EXPECT_TRUE(gpu && cpu);
  return make_supervised_processor(
      std::move(*gpu), std::move(*cpu), config.blobs,
      {[]() -> Result<std::unique_ptr<FrameProcessor>> { return fail(ErrorCode::kDevice, "none"); },
       monotonic_ns});
}

// Whichever call of a frame it is: this is no frame with more candidates than there is room for.
TEST_F(DeviceFault, WantOfMemoryPartWayThroughAFrameIsTheDevicesFault) {
  open(PATTERND_FAKE_FAILING);
  const Image frame = made_frame(0, 0, 1);
  const ProcessorConfig config =
      with_blobs(search_config(frame), BlobParams::Reference::kAlternate);
  for (const char* memory : {"copy", "mapped", "managed"}) {
    SCOPED_TRACE(memory);
    FrameResult result;
    auto processor = make_cuda_processor(device_, memory, config);
    ASSERT_TRUE(processor) << processor.error().message;
    reset(0);
    ASSERT_TRUE((*processor)->process(raw_of(frame), result));
    const int all = calls();
    ASSERT_GT(all, 15);
    for (int n = 1; n <= all; ++n) {
      SCOPED_TRACE("call " + std::to_string(n) + " fails");
      reset(0);
      auto own = Device::open(Driver::open(PATTERND_FAKE_FAILING).value(), 0, "auto");
      ASSERT_TRUE(own);
      processor = make_cuda_processor(*own, memory, config);
      ASSERT_TRUE(processor);
      reset(n, kOutOfMemory);
      const auto done = (*processor)->process(raw_of(frame), result);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, ErrorCode::kDevice) << done.error().message;
      EXPECT_TRUE((*own)->is_given_up());
      reset(0);
      const auto next = (*processor)->process(raw_of(frame), result);
      ASSERT_FALSE(next);  // what was left half-way is nobody's
      EXPECT_EQ(next.error().code, ErrorCode::kDevice);
      EXPECT_THAT(next.error().message, HasSubstr("must be made anew"));
    }
  }
}

// Nothing of the frame that failed half-way is in the next one, on either way to search.
class DeviceFaultByImage : public DeviceFault, public ::testing::WithParamInterface<const char*> {};
TEST_P(DeviceFaultByImage, ANextFrameFindsItsMatchesAfterOneThatFailedAnywhere) {
  const std::string image = GetParam();
  if (!images_for(embedded_images(), 9, 0, image))
    GTEST_SKIP() << "clang with the NVPTX back end was not there when this was built";
  const Image before = made_frame(0, 0, 1);
  const Image after = made_frame(2, 25, 2);
  const ProcessorConfig config = search_config(before);
  auto cpu = make_cpu_processor(config);
  ASSERT_TRUE(cpu);
  FrameResult expected;
  ASSERT_TRUE((*cpu)->process(raw_of(after), expected));
  ASSERT_EQ(expected.matches.size(), 1U);
  open(PATTERND_EMULATED);
  auto device = Device::open(Driver::open(PATTERND_EMULATED).value(), 0, image);
  ASSERT_TRUE(device) << device.error().message;
  device_ = std::move(*device);
  ASSERT_EQ(device_->has_matrix_units(), image == "auto");
  int failed = 0;
  for (int n = 1;; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " fails");
    const auto processor = supervised(device_, config);
    FrameResult found;
    reset(n, kOutOfMemory);
    ASSERT_TRUE(processor->process(raw_of(before), found));
    const bool ended = calls() < n;
    reset(0);
    if (ended) break;
    ++failed;
    ASSERT_TRUE(processor->process(raw_of(after), found));
    ASSERT_EQ(found.matches.size(), 1U);
    EXPECT_NEAR(found.matches[0].x_px, expected.matches[0].x_px, 0.05);
    EXPECT_NEAR(found.matches[0].score, expected.matches[0].score, 1e-3);
  }
  EXPECT_GT(failed, 10);
}
INSTANTIATE_TEST_SUITE_P(Image, DeviceFaultByImage, ::testing::Values("auto", "universal_sm_70"));

// Frames' memory holds the device; the context is lost, and only asking for it tells.
TEST_F(DeviceFault, GivesUpADeviceWhoseContextIsLost) {
  open(PATTERND_FAKE_FAILING);
  const Image frame = made_frame(0, 0, 1);
  const ProcessorConfig config = search_config(frame);
  FrameResult result;
  for (const bool in_flight : {false, true}) {
    SCOPED_TRACE(in_flight);
    device_ = Device::open(Driver::open(PATTERND_FAKE_FAILING).value(), 0, "auto").value();
    const auto processor = make_cuda_processor(device_, "copy", config);
    ASSERT_TRUE(processor) << processor.error().message;
    if (in_flight) {
      ASSERT_TRUE((*processor)->submit(raw_of(frame)));
    }
    lose_contexts();
    const auto done =
        in_flight ? (*processor)->collect(result) : (*processor)->submit(raw_of(frame));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kDevice);
    EXPECT_THAT(done.error().message, HasSubstr("cuCtxSetCurrent"));
    EXPECT_TRUE(device_->is_given_up());
  }
}

// (Here a GPU that opens fails its self-test, because the made driver's kernels do nothing.)
TEST_F(DeviceFault, ALostDeviceThatFramesMemoryHoldsIsOpenedAnew) {
  open(PATTERND_FAKE_FAILING);
  const Image frame = made_frame(0, 0, 1);
  ComputeOptions options;
  options.driver = PATTERND_FAKE_FAILING;
  const auto memory = make_frame_memory(options, std::make_unique<test::FrameMemory>());
  ASSERT_TRUE(memory->allocate(1000));
  ASSERT_STREQ(memory->kind(), "page-locked");
  const auto reason = [&] {
    const auto chosen = make_processor(options, search_config(frame));
    return chosen ? chosen->reason : chosen.error().message;
  };
  ASSERT_THAT(reason(), HasSubstr("self-test failed"));
  lose_contexts();
  EXPECT_THAT(reason(), HasSubstr("cuCtxSetCurrent"));
  EXPECT_THAT(reason(), HasSubstr("self-test failed"));
  // Another fault, part-way through making a processor on the one that frames' memory shares now.
  const auto next = make_frame_memory(options, std::make_unique<test::FrameMemory>());
  const int before = contexts();
  reset(3, 719);
  EXPECT_THAT(reason(), Not(HasSubstr("self-test failed")));
  reset(0);
  EXPECT_EQ(contexts(), before);
  EXPECT_THAT(reason(), HasSubstr("self-test failed"));
  EXPECT_EQ(contexts(), before + 1);
}

// By the call behind those of cuCtxSetCurrent.
TEST_F(DeviceFault, GivesUpADeviceThatFailsToGiveFramesMemory) {
  open(PATTERND_FAKE_FAILING);
  ComputeOptions options;
  options.driver = PATTERND_FAKE_FAILING;
  for (const auto& [status, opened_anew] :
       std::vector<std::pair<Status, int>>{{719, 1}, {kOutOfMemory, 0}}) {
    SCOPED_TRACE(status);
    const auto memory = make_frame_memory(options, std::make_unique<test::FrameMemory>());
    reset(3, status);
    EXPECT_TRUE(memory->allocate(1000));
    EXPECT_STREQ(memory->kind(), "plain");
    reset(0);
    const int before = contexts();
    const auto next = make_frame_memory(options, std::make_unique<test::FrameMemory>());
    EXPECT_EQ(contexts(), before + opened_anew);
    EXPECT_TRUE(next->allocate(1000));
    EXPECT_STREQ(next->kind(), "page-locked");
  }
}

TEST_F(DeviceFault, BlocksThatLoseEachOtherAreTheDevicesFault) {
  open(PATTERND_EMULATED);
  const Image frame = made_frame(0, 0, 1);
  const auto processor = supervised(device_, search_config(frame));
  FrameResult result;
  spoil_results(true, true);  // a broken one may well say that it had no room
  const auto done = processor->process(raw_of(frame), result);
  spoil_results(false, false);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(result.matches.size(), 1U);
  EXPECT_TRUE(device_->is_given_up());
  EXPECT_STREQ(processor->backend(), "cpu");
  EXPECT_THAT(processor->description(),
              HasSubstr("pattern made: the GPU's blocks lost each other"));
}

// The GPU has the frame before, the CPU does not.
TEST_F(DeviceFault, AFrameWithTooManyCandidatesKeepsItsBlobs) {
  open(PATTERND_EMULATED);
  std::vector<Image> frames;
  for (int frame = 0; frame < 3; ++frame) {
    frames.push_back(made_frame(0, 0, 1));
    for (int y = 30; y < 34; ++y)
      for (int x = 0; x < 6; ++x) frames.back().row<std::uint8_t>(y)[40 + 6 * frame + x] = 255;
  }
  const ProcessorConfig config =
      with_blobs(search_config(frames[0]), BlobParams::Reference::kAlternate);
  auto cpu = make_cpu_processor(config);
  ASSERT_TRUE(cpu);
  const auto processor = supervised(device_, config);
  for (std::size_t frame = 0; frame < frames.size(); ++frame) {
    SCOPED_TRACE(frame);
    FrameResult expected;
    FrameResult found;
    ASSERT_TRUE((*cpu)->process(raw_of(frames[frame]), expected));
    spoil_results(frame == 1, false);
    ASSERT_TRUE(processor->process(raw_of(frames[frame]), found));
    EXPECT_EQ(expected.blobs_total > 0, frame > 0);
    EXPECT_EQ(found.blobs_total, expected.blobs_total);
    ASSERT_EQ(found.blobs.size(), expected.blobs.size());
    for (std::size_t blob = 0; blob < found.blobs.size(); ++blob)
      EXPECT_EQ(found.blobs[blob].area_px, expected.blobs[blob].area_px);
    EXPECT_EQ(found.matches.size(), expected.matches.size());
  }
  spoil_results(false, false);
  EXPECT_STREQ(processor->backend(), "cuda");
  EXPECT_THAT(processor->description(), HasSubstr("1 frames done by the CPU"));
}

}  // namespace
}  // namespace patternd::cuda
