// What frames in flight share of a configuration, counted by a driver made for it.
#include <cmath>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "calibration/camera_model.h"
#include "cuda/cuda_processor.h"
#include "cuda/device_image.h"
#include "cuda/frame_plan.h"
#include "cuda/frame_slot.h"
#include "cuda/trace_plan.h"
#include "pipeline/pattern.h"

namespace patternd::cuda {
namespace {

constexpr int kSide = 256;
constexpr std::size_t kPatterns = 3;

// A texture that looks like itself nowhere else.
std::shared_ptr<const Pattern> pattern_number(std::size_t number) {
  auto image = Image::create(48, 48, PixelFormat::kGray8);
  EXPECT_TRUE(image);
  const double turn = 0.05 * static_cast<double>(number);
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 48; ++x) {
      const double grey =
          128 + 50 * std::sin((0.21 + turn) * x + 0.01 * x * y) + 50 * std::sin((0.27 - turn) * y);
      image->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(grey);
    }
  }
  auto pattern = teach_pattern("p" + std::to_string(number), image->view(), {}, {});
  EXPECT_TRUE(pattern) << pattern.error().message;
  return std::make_shared<const Pattern>(std::move(*pattern));
}

// Too small to be searched at any coarser level.
std::shared_ptr<const Pattern> small_pattern() {
  auto image = Image::create(8, 8, PixelFormat::kGray8);
  EXPECT_TRUE(image);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 8; ++x)
      image->row<std::uint8_t>(y)[x] =
          static_cast<std::uint8_t>((37 * x * x + 91 * y + x * y) % 251);
  auto pattern = teach_pattern("small", image->view(), {}, {});
  EXPECT_TRUE(pattern) << pattern.error().message;
  return std::make_shared<const Pattern>(std::move(*pattern));
}

// Rectified, with a part of the plane outside the frame, so that there are masks too.
ProcessorConfig searching_config() {
  ProcessorConfig config;
  config.width = config.height = kSide;
  config.stride_bytes = kSide;
  config.threads = 1;
  CameraModel model;
  model.image_width = model.image_height = kSide;
  Plane plane;
  plane.homography = {1, 0.1, -20, 0, 1, 3, 0, 0, 1};
  plane.width = plane.height = kSide;
  model.plane = plane;
  config.calibration = model;
  SearchParams params;
  params.angle_deg = {{-20, 20}};
  for (std::size_t number = 0; number < kPatterns; ++number)
    config.patterns.push_back({pattern_number(number), params});
  return config;
}

// Four blocks of one warp a pose find room where one of four does, if shared memory lets them.
TEST(PoseWarps, AreFewerWhereBlocksWaitForRoomAndOthersWouldFindIt) {
  DeviceProperties hopper;
  hopper.multiprocessors = 132;
  hopper.shared_bytes_per_multiprocessor = 228 * 1024;
  EXPECT_EQ(pose_warps(hopper, 32, 32, 100), 4);
  EXPECT_EQ(pose_warps(hopper, 32, 32, 265), 4);
  EXPECT_EQ(pose_warps(hopper, 32, 32, 400), 2);
  EXPECT_EQ(pose_warps(hopper, 32, 32, 800), 1);
  EXPECT_EQ(pose_warps(hopper, 32, 32, 100000), 1);
  // A pattern of few pixels has no work for more.
  EXPECT_EQ(pose_warps(hopper, 24, 24, 100), 2);
  EXPECT_EQ(pose_warps(hopper, 8, 8, 100), 1);
  DeviceProperties orin = hopper;
  orin.multiprocessors = 8;
  orin.shared_bytes_per_multiprocessor = 164 * 1024;
  EXPECT_EQ(pose_warps(orin, 32, 32, 10), 4);
  EXPECT_EQ(pose_warps(orin, 32, 32, 100), 2);
  DeviceProperties k1 = hopper;
  k1.multiprocessors = 1;
  k1.shared_bytes_per_multiprocessor = 48 * 1024;
  EXPECT_EQ(pose_warps(k1, 32, 32, 100), 4);
  k1.shared_bytes_per_multiprocessor = 0;  // its driver does not say
  EXPECT_EQ(pose_warps(k1, 32, 32, 100), 4);
}

class SharedPlan : public ::testing::Test {
 protected:
  void SetUp() override {
    if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
    library_ = dlopen(PATTERND_FAKE_FAILING, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    const auto driver = Driver::open(PATTERND_FAKE_FAILING);
    ASSERT_TRUE(driver) << driver.error().message;
    auto device = Device::open(*driver, 0, "auto");
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(*device);
    ASSERT_TRUE(device_->make_current());
  }
  void TearDown() override {
    device_ = nullptr;
    if (library_ != nullptr) dlclose(library_);
  }
  [[nodiscard]] std::size_t bytes(const char* which) const {
    return reinterpret_cast<std::size_t (*)()>(dlsym(library_, which))();
  }
  [[nodiscard]] std::size_t sent() const { return bytes("fake_bytes_sent"); }
  [[nodiscard]] std::size_t held() const { return bytes("fake_bytes_held"); }

  struct Cost {
    std::size_t sent = 0;
    std::size_t held = 0;
  };
  // Of a processor's start, and of what it keeps.
  [[nodiscard]] Cost cost_of(const ProcessorConfig& config, int streams) const {
    const Cost before{sent(), held()};
    const auto processor = make_cuda_processor(device_, "copy", config, streams);
    EXPECT_TRUE(processor) << processor.error().message;
    return {sent() - before.sent, held() - before.held};
  }

  std::shared_ptr<const Device> device_;

 private:
  void* library_ = nullptr;
};

std::size_t in_arena(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// What a slot has to send: where its own memory lies.
std::size_t places_bytes(const GpuMatcherPlan& plan) {
  return in_arena(plan.coarse.images.size() * sizeof(CoarseImage)) +
         in_arena(plan.coarse.groups.size() * sizeof(CoarseGroup)) +
         in_arena(plan.coarse.planes.size() * sizeof(CoarsePlane)) +
         static_cast<std::size_t>(plan.levels + 1) * sizeof(TraceImage);
}

TEST_F(SharedPlan, IsSentOnceHoweverManyStreamsThereAre) {
  const ProcessorConfig config = searching_config();
  ThreadPool pool(1);
  const std::size_t before = sent();
  const auto plan = FramePlan::create(device_, MemoryMode::kCopy, config, &pool);
  ASSERT_TRUE(plan) << plan.error().message;
  const std::size_t shared = sent() - before;
  ASSERT_TRUE((*plan)->luma.rectify);
  ASSERT_FALSE((*plan)->matcher->valid.empty());
  const std::size_t own = places_bytes(*(*plan)->matcher);
  ASSERT_GT(shared, 10 * own);
  for (const std::size_t streams : {1U, 2U, 4U}) {
    SCOPED_TRACE(streams);
    EXPECT_EQ(cost_of(config, static_cast<int>(streams)).sent, shared + streams * own);
  }
}

// A small pattern is searched at no coarser level: in a large picture that is more tiles than a
// grid has blocks in its second dimension.
TEST_F(SharedPlan, OfALargePictureHasNoLaunchThatTheDriverRefuses) {
  ProcessorConfig config;
  config.width = 8200;
  config.height = 4200;
  config.stride_bytes = 8200;
  config.threads = 1;
  SearchParams params;
  params.angle_deg = {{0, 0}};
  config.patterns.push_back({small_pattern(), params});
  ThreadPool pool(1);
  const auto plan = FramePlan::create(device_, MemoryMode::kCopy, config, &pool);
  ASSERT_TRUE(plan) << plan.error().message;
  const CoarsePlan& coarse = (*plan)->matcher->coarse;
  ASSERT_EQ((*plan)->matcher->levels, 0);
  for (const Shape& shape :
       {coarse.score_shape, coarse.prepare_shape, coarse.bound_shape, coarse.search_shape,
        coarse.judge_shape, coarse.list_shape, coarse.planes_shape, coarse.select_shape})
    EXPECT_LE(shape.grid_y, 65535U);
  EXPECT_GT(std::max(coarse.score_shape.grid_x, coarse.search_shape.grid_x), 65535U);
  auto slot = FrameSlot::create(device_, *plan);
  EXPECT_TRUE(slot) << slot.error().message;
}

TEST_F(SharedPlan, LiesInMemoryOnce) {
  const ProcessorConfig config = searching_config();
  ThreadPool pool(1);
  const std::size_t before = held();
  const auto plan = FramePlan::create(device_, MemoryMode::kCopy, config, &pool);
  ASSERT_TRUE(plan) << plan.error().message;
  const std::size_t shared = held() - before;
  const auto slot = FrameSlot::create(device_, *plan);
  ASSERT_TRUE(slot) << slot.error().message;
  const std::size_t own = held() - before - shared;
  for (const std::size_t streams : {1U, 2U, 4U}) {
    SCOPED_TRACE(streams);
    EXPECT_EQ(cost_of(config, static_cast<int>(streams)).held, shared + streams * own);
  }
}

TEST_F(SharedPlan, IsFreedWithTheLastSlot) {
  const std::size_t before = held();
  ThreadPool pool(1);
  auto plan = FramePlan::create(device_, MemoryMode::kCopy, searching_config(), &pool);
  ASSERT_TRUE(plan) << plan.error().message;
  const std::size_t shared = held() - before;
  auto first = FrameSlot::create(device_, *plan);
  auto second = FrameSlot::create(device_, *plan);
  ASSERT_TRUE(first && second);
  plan->reset();
  first->reset();
  EXPECT_GT(held() - before, shared);
  second->reset();
  EXPECT_EQ(held(), before);
}

}  // namespace
}  // namespace patternd::cuda
