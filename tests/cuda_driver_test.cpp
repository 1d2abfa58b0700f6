// How the driver's absence, age and faults are told apart, with drivers made for the purpose.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "cuda/device.h"
#include "cuda/device_image.h"
#include "cuda/driver.h"
#include "cuda/memory.h"
#include "cuda/picture.h"
#include "cuda/stream.h"

namespace patternd::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The knobs of the fake driver.
class FakeDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(PATTERND_FAKE_FAILING, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    reset(0);
  }
  void TearDown() override { dlclose(library_); }

  template <class Function>
  Function symbol(const char* name) {
    return reinterpret_cast<Function>(dlsym(library_, name));
  }
  void reset(int fail_at, Status status = 999, bool all_later = false) {
    symbol<void (*)(int, Status, bool)>("fake_reset")(fail_at, status, all_later);
  }
  int calls() { return symbol<int (*)()>("fake_calls")(); }

 private:
  void* library_ = nullptr;
};

TEST(Driver, SaysThatThereIsNoneWhereTheLibraryIsMissing) {
  const auto driver = Driver::open("libpatternd-no-such-driver.so.1");
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(driver.error().message, StartsWith("no NVIDIA driver: "));
  EXPECT_THAT(driver.error().message, HasSubstr("install the GPU's driver"));
}

TEST(Driver, NamesTheFunctionThatATooOldOneLacks) {
  const auto driver = Driver::open(PATTERND_FAKE_LACKING);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(driver.error().message, HasSubstr("too old"));
  EXPECT_THAT(driver.error().message, HasSubstr("cuTexObjectDestroy"));
}

TEST_F(FakeDriver, OpensWithoutTheOptionalFunctionsAndSaysWhichAreMissing) {
  const auto driver = Driver::open(PATTERND_FAKE_FAILING);
  ASSERT_TRUE(driver) << driver.error().message;
  EXPECT_FALSE((*driver)->has_graphs());
  EXPECT_THAT((*driver)->missing_graphs(), HasSubstr("cuStreamBeginCapture_v2"));
  EXPECT_EQ((*driver)->version(), 13000);
}

TEST_F(FakeDriver, TellsThatThereIsNoGpu) {
  reset(1, kNoDevice);
  const auto driver = Driver::open(PATTERND_FAKE_FAILING);
  ASSERT_FALSE(driver);
  EXPECT_EQ(driver.error().message, "the NVIDIA driver sees no GPU");
}

TEST_F(FakeDriver, NamesTheCallAndTheCodeOfAFault) {
  const auto driver = Driver::open(PATTERND_FAKE_FAILING);
  ASSERT_TRUE(driver);
  const Error error = (*driver)->error(kOutOfMemory, "cuMemAlloc of 16 bytes");
  EXPECT_EQ(error.code, ErrorCode::kExhausted);
  EXPECT_EQ(error.message, "cuMemAlloc of 16 bytes: CUDA_ERROR_MADE_BY_THE_TEST (2)");
  // A call that asks for no memory of a size is not to be made again with less.
  const auto launched = (*driver)->check(kOutOfMemory, "patternd_trace_step");
  ASSERT_FALSE(launched);
  EXPECT_EQ(launched.error().code, ErrorCode::kDevice);
  EXPECT_EQ(launched.error().message, "patternd_trace_step: CUDA_ERROR_MADE_BY_THE_TEST (2)");
}

// (And never more than its own memory, whatever the machine has.)
TEST_F(FakeDriver, TellsThatThereIsNoMemoryForWhatIsTooLarge) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  const auto driver = Driver::open(PATTERND_FAKE_FAILING);
  ASSERT_TRUE(driver) << driver.error().message;
  const auto device = Device::open(*driver, 0, "auto");
  ASSERT_TRUE(device) << device.error().message;
  const std::size_t bytes = (*device)->properties().memory_bytes + 1;
  const auto buffer = DeviceBuffer::create(*device, bytes);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, ErrorCode::kExhausted);
  EXPECT_THAT(buffer.error().message, HasSubstr("(2)"));
  for (const MemoryMode mode : {MemoryMode::kCopy, MemoryMode::kMapped, MemoryMode::kManaged}) {
    SCOPED_TRACE(name_of(mode));
    const auto shared = SharedBuffer::create(*device, mode, bytes);
    ASSERT_FALSE(shared);
    EXPECT_EQ(shared.error().code, ErrorCode::kExhausted);
  }
  EXPECT_FALSE((*device)->is_given_up());
}

// What a program does with a device, from opening it to one of everything.
Result<void> use_a_device() {
  auto driver = Driver::open(PATTERND_FAKE_FAILING);
  if (!driver) return tl::make_unexpected(driver.error());
  auto device = Device::open(*driver, 0, "auto");
  if (!device) return tl::make_unexpected(device.error());
  auto stream = Stream::create(*device);
  if (!stream) return tl::make_unexpected(stream.error());
  auto event = Event::create(*device);
  if (!event) return tl::make_unexpected(event.error());
  for (MemoryMode mode : {MemoryMode::kCopy, MemoryMode::kMapped, MemoryMode::kManaged}) {
    auto buffer = SharedBuffer::create(*device, mode, 1000);
    if (!buffer) return tl::make_unexpected(buffer.error());
    if (auto ok = buffer->upload(*stream, 1000); !ok) return ok;
    if (auto ok = buffer->download(*stream, 1000); !ok) return ok;
  }
  auto picture = DevicePicture::create(*device, 33, 5, PixelFormat::kGray16);
  if (!picture) return tl::make_unexpected(picture.error());
  auto host = Image::create(33, 5, PixelFormat::kGray16);
  if (!host) return tl::make_unexpected(host.error());
  if (auto ok = upload(*stream, host->view(), picture->view()); !ok) return ok;
  if (auto ok = download(*stream, picture->view(), host->view()); !ok) return ok;
  if (auto ok = stream->record(*event); !ok) return ok;
  if (auto ok = event->wait(); !ok) return ok;
  return stream->wait();
}

// Every call in turn: each failure comes back as an Error that names the code, nothing leaks
// (asan), nothing crashes, and the next attempt works. An image that does not load is passed over.
TEST_F(FakeDriver, TurnsTheFailureOfAnyCallIntoAnError) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  ASSERT_TRUE(use_a_device());
  const int all = calls();
  ASSERT_GT(all, 40);
  int refused = 0;
  for (int n = 1; n <= all; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " fails");
    reset(n);
    const auto used = use_a_device();
    if (used) continue;  // an optional question, a passed-over image, or the freeing at the end
    ++refused;
    EXPECT_THAT(used.error().message, HasSubstr("CUDA_ERROR_MADE_BY_THE_TEST (999)"));
  }
  EXPECT_GT(refused, 30);
  reset(0);
  EXPECT_TRUE(use_a_device());
}

// What a stream is waited for: asked awake, then slept for.
TEST_F(FakeDriver, IsAskedWhetherAStreamIsDoneAndThenSleptFor) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  const auto driver = Driver::open(PATTERND_FAKE_FAILING);
  ASSERT_TRUE(driver) << driver.error().message;
  const auto device = Device::open(*driver, 0, "auto");
  ASSERT_TRUE(device) << device.error().message;
  const auto stream = Stream::create(*device);
  const auto done = Event::create_to_sleep_for(*device);
  ASSERT_TRUE(stream && done);
  const auto keep_busy = symbol<void (*)(int)>("fake_keep_busy");
  const auto slept = symbol<int (*)()>("fake_waits_asleep");
  constexpr std::int64_t kHour = 3'600'000'000'000;
  const int before = slept();
  keep_busy(1000);
  EXPECT_TRUE(stream->wait(*done, kHour));
  EXPECT_EQ(slept(), before);
  EXPECT_TRUE(stream->wait(*done, 0));  // there is nothing to wait for
  EXPECT_EQ(slept(), before);
  keep_busy(1'000'000'000);
  EXPECT_TRUE(stream->wait(*done, 0));
  EXPECT_EQ(slept(), before + 1);
  keep_busy(3);
  reset(1, 719, true);
  const auto failed = stream->wait(*done, kHour);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kDevice);
  reset(0);
}

TEST_F(FakeDriver, RefusesADeviceWithoutMultiprocessors) {
  const auto driver = Driver::open(PATTERND_FAKE_FAILING);
  ASSERT_TRUE(driver);
  const auto set = symbol<void (*)(int)>("fake_set_multiprocessors");
  set(0);
  const auto device = Device::open(*driver, 0, "auto");
  set(2);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(device.error().message, HasSubstr("no multiprocessors"));
}

TEST_F(FakeDriver, SurvivesADeviceThatIsLostForGood) {
  if (embedded_images().empty()) GTEST_SKIP() << "this build has no device images";
  for (int n = 1; n <= 40; ++n) {  // later ones only free
    reset(n, 719, true);
    EXPECT_FALSE(use_a_device()) << n;
  }
}

TEST_F(FakeDriver, PassesOverAnImageThatDoesNotLoadAndSaysSo) {
  if (embedded_images().size() < 3) GTEST_SKIP() << "this build lacks native or universal images";
  const auto driver = Driver::open(PATTERND_FAKE_FAILING);
  ASSERT_TRUE(driver);
  ASSERT_TRUE(Device::open(*driver, 0, "auto"));
  const auto fitting = images_for(embedded_images(), 9, 0, "auto");
  ASSERT_TRUE(fitting);
  ASSERT_GE(fitting->size(), 2U);
  const std::string best = described(fitting->front());  // sm_90 where this build has it
  const std::string next = fitting->at(1).name;
  // Find the load: the one call whose failure changes the image and not the outcome.
  int passed_over = 0;
  for (int n = 1; n <= 40; ++n) {
    reset(n);
    const auto device = Device::open(*driver, 0, "auto");
    if (device && (*device)->image() == next) {
      EXPECT_THAT((*device)->description(), HasSubstr("image " + best + " not used"));
      ++passed_over;
    }
  }
  EXPECT_EQ(passed_over, 1);
}

TEST(MemoryMode, FollowsTheDevicesAttributes) {
  DeviceProperties gpu;
  gpu.name = "GPU";
  gpu.can_map_host_memory = true;
  gpu.managed_memory = true;
  gpu.major = 9;
  EXPECT_EQ(memory_mode_for(gpu, "auto").value(), MemoryMode::kCopy);
  gpu.integrated = true;
  gpu.major = 3, gpu.minor = 2;  // Tegra K1
  EXPECT_EQ(memory_mode_for(gpu, "auto").value(), MemoryMode::kManaged);
  gpu.major = 5, gpu.minor = 3;  // TX1, Nano
  EXPECT_EQ(memory_mode_for(gpu, "auto").value(), MemoryMode::kManaged);
  gpu.major = 7, gpu.minor = 2;  // Xavier: coherent from here on
  EXPECT_EQ(memory_mode_for(gpu, "auto").value(), MemoryMode::kMapped);
  gpu.major = 8, gpu.minor = 7;  // Orin
  EXPECT_EQ(memory_mode_for(gpu, "auto").value(), MemoryMode::kMapped);
  EXPECT_EQ(memory_mode_for(gpu, "copy").value(), MemoryMode::kCopy);
}

TEST(MemoryMode, RefusesWhatTheDeviceLacksAndUnknownWords) {
  DeviceProperties gpu;
  gpu.name = "GPU";
  EXPECT_EQ(memory_mode_for(gpu, "mapped").error().message,
            "compute.memory: is mapped, but GPU has no mapped host memory; must be auto or copy");
  EXPECT_EQ(memory_mode_for(gpu, "managed").error().message,
            "compute.memory: is managed, but GPU has no managed memory; must be auto or copy");
  EXPECT_EQ(memory_mode_for(gpu, "fast").error().message,
            "compute.memory: is fast; must be auto, copy, mapped or managed");
}

}  // namespace
}  // namespace patternd::cuda
