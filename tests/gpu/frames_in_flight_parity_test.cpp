// Several frames in flight on one processor: each is what it would be alone, and they come in
// order.
#include <cstring>
#include <gtest/gtest.h>

#include "cuda/cuda_processor.h"
#include "cuda/frame_memory.h"
#include "tests/gpu/gpu.h"
#include "tests/support/reference_rectify.h"

namespace patternd::cuda::test {
namespace {

// A scene's picture seen through a window that moves on from frame to frame.
class Frames {
 public:
  Frames(Scene scene, int width, int height, int step)
      : scene_(std::move(scene)), width_(width), height_(height), step_(step) {}
  [[nodiscard]] int count() const { return (scene_.picture.width() - width_) / step_ + 1; }
  [[nodiscard]] RawImageView at(int frame) const {
    const ImageView whole = std::as_const(scene_.picture).view();
    const std::uint8_t* data = whole.data + static_cast<std::ptrdiff_t>(frame) * step_;
    return {data,
            whole.stride_bytes * static_cast<std::size_t>(height_ - 1) +
                static_cast<std::size_t>(width_),
            width_,
            height_,
            whole.stride_bytes,
            RawFormat::kGrey,
            BayerOrder::kRggb};
  }
  // The first of them.
  [[nodiscard]] ImageView picture() const {
    ImageView window = std::as_const(scene_.picture).view();
    window.width = width_;
    window.height = height_;
    return window;
  }
  [[nodiscard]] ProcessorConfig config() const {
    ProcessorConfig config = config_of(at(0));
    config.patterns.push_back({scene_.pattern, {}});
    config.threads = 1;
    return config;
  }

 private:
  Scene scene_;
  int width_;
  int height_;
  int step_;
};

void expect_equal(const FrameResult& alone, const FrameResult& among, int frame) {
  SCOPED_TRACE("frame " + std::to_string(frame));
  ASSERT_EQ(among.matches.size(), alone.matches.size());
  for (std::size_t i = 0; i < alone.matches.size(); ++i) {
    EXPECT_EQ(among.matches[i].x_px, alone.matches[i].x_px);
    EXPECT_EQ(among.matches[i].y_px, alone.matches[i].y_px);
    EXPECT_EQ(among.matches[i].angle_deg, alone.matches[i].angle_deg);
    EXPECT_EQ(among.matches[i].score, alone.matches[i].score);
  }
  ASSERT_EQ(among.blobs_total, alone.blobs_total);
  ASSERT_EQ(among.blobs.size(), alone.blobs.size());
  for (std::size_t i = 0; i < alone.blobs.size(); ++i) {
    EXPECT_EQ(among.blobs[i].area_px, alone.blobs[i].area_px);
    EXPECT_EQ(among.blobs[i].x_px, alone.blobs[i].x_px);
  }
}

// Each frame through a processor of its own kind alone, then all of them `streams` at a time.
// Returns the matches that were compared.
std::size_t expect_same_in_flight(const ProcessorConfig& config, const Frames& frames,
                                  const std::string& memory, int streams) {
  std::vector<FrameResult> alone(static_cast<std::size_t>(frames.count()));
  std::size_t compared = 0;
  {
    auto one = make_cuda_processor(device(), memory, config);
    EXPECT_TRUE(one) << one.error().message;
    if (!one) return 0;
    EXPECT_EQ((*one)->depth(), 1U);
    for (int i = 0; i < frames.count(); ++i) {
      FrameResult& result = alone[static_cast<std::size_t>(i)];
      const auto done = (*one)->process(frames.at(i), result);
      EXPECT_TRUE(done) << done.error().message;
      compared += result.matches.size();
    }
  }
  auto many = make_cuda_processor(device(), memory, config, streams);
  EXPECT_TRUE(many) << many.error().message;
  if (!many) return 0;
  EXPECT_EQ((*many)->depth(), static_cast<std::size_t>(streams));
  FrameResult result;
  for (int submitted = 0, collected = 0; collected < frames.count(); ++collected) {
    while (submitted < frames.count() && submitted - collected < streams) {
      const auto begun = (*many)->submit(frames.at(submitted++));
      EXPECT_TRUE(begun) << begun.error().message;
    }
    const auto done = (*many)->collect(result);
    EXPECT_TRUE(done) << done.error().message;
    expect_equal(alone[static_cast<std::size_t>(collected)], result, collected);
  }
  return compared;
}

// Small enough for kernels that are emulated on the CPU.
TEST(GpuFrame, GivesTheSameWithTwoInFlightInASmallPicture) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(1);
  SceneOptions options = small_scene();
  options.width = 135;
  const Frames frames(make_scene(options, random), 131, 117, 4);
  ProcessorConfig config = frames.config();
  config.blobs = BlobParams();
  EXPECT_GE(expect_same_in_flight(config, frames, "auto", 2), 2U);
}

TEST(GpuFrame, GivesTheSameWithSeveralInFlight) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(21);
  SceneOptions options;
  options.width = 760;
  options.height = 400;
  options.instances = 6;
  const Frames frames(make_scene(options, random), 640, 400, 3);
  for (const char* memory : {"copy", "mapped", "managed"}) {
    for (const int streams : {2, 3, 8}) {
      SCOPED_TRACE(std::string(memory) + ", streams " + std::to_string(streams));
      ProcessorConfig config = frames.config();
      EXPECT_GT(expect_same_in_flight(config, frames, memory, streams), 100U);
    }
  }
}

TEST(GpuFrame, GivesTheSameWithSeveralInFlightBehindACalibrationAndWithBlobs) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(22);
  SceneOptions options;
  options.width = 560;
  options.height = 512;
  const Frames frames(make_scene(options, random), 512, 512, 4);
  for (const char* memory : {"copy", "mapped", "managed"}) {
    SCOPED_TRACE(memory);
    ProcessorConfig config = frames.config();
    config.calibration = patternd::test::tilted_plane(512, false);
    config.patterns[0].pattern = cut_from_rectified(frames.picture(), *config.calibration);
    config.blobs = BlobParams();
    EXPECT_GT(expect_same_in_flight(config, frames, memory, 4), 0U);
  }
}

// Memory for tests of FrameMemory, where the driver has none: there it must not be asked.
class NoPlainMemory : public FrameAllocator {
 public:
  Result<std::uint8_t*> allocate(std::size_t) override {
    return fail(ErrorCode::kExhausted, "plain memory was asked for");
  }
};

// The same frame in the GPU's reach and elsewhere: the one is read in place, the other copied
// first.
void expect_same_in_place(const ProcessorConfig& config, const RawImageView& frame,
                          const char* memory, MemoryMode mode) {
  FrameMemory frames(device(), mode, std::make_unique<NoPlainMemory>());
  const auto place = frames.allocate(frame.stride_bytes * static_cast<std::size_t>(frame.height));
  ASSERT_TRUE(place) << place.error().message;
  std::memcpy(*place, frame.data, frame.size_bytes);
  RawImageView in_place = frame;
  in_place.data = *place;
  auto processor = make_cuda_processor(device(), memory, config);
  ASSERT_TRUE(processor) << processor.error().message;
  FrameResult read;
  FrameResult copied;
  const auto done = (*processor)->process(in_place, read);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ((*processor)->description().find("copied by the host"), std::string::npos);
  ASSERT_TRUE((*processor)->process(frame, copied));
  const bool reads = mode != MemoryMode::kCopy;
  EXPECT_EQ((*processor)->description().find("1 frames copied by the host") != std::string::npos,
            reads);
  EXPECT_FALSE(read.matches.empty());
  expect_equal(copied, read, 0);
}

TEST(GpuFrame, IsReadInPlaceBehindACalibrationInASmallPicture) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(3);
  SceneOptions options;
  options.width = options.height = 128;
  options.pattern_width = options.pattern_height = 40;
  options.instances = 1;
  const Frames frames(make_scene(options, random), 128, 128, 128);
  ProcessorConfig config = frames.config();
  CameraModel model;
  model.image_width = model.image_height = 128;
  config.calibration = model;  // no lens, no plane: each pixel lands where it was
  expect_same_in_place(config, frames.at(0), "mapped", MemoryMode::kMapped);
  expect_same_in_place(config, frames.at(0), "managed", MemoryMode::kManaged);
}

TEST(GpuFrame, IsReadInPlaceInEveryMode) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(4);
  SceneOptions options;
  options.width = options.height = 512;
  const Frames frames(make_scene(options, random), 512, 512, 512);
  ProcessorConfig config = frames.config();
  config.calibration = patternd::test::tilted_plane(512, false);
  config.patterns[0].pattern = cut_from_rectified(frames.picture(), *config.calibration);
  expect_same_in_place(config, frames.at(0), "copy", MemoryMode::kCopy);
  expect_same_in_place(config, frames.at(0), "mapped", MemoryMode::kMapped);
  expect_same_in_place(config, frames.at(0), "managed", MemoryMode::kManaged);
}

TEST(GpuFrame, RefusesMoreInFlightThanItsDepth) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(1);
  const Frames frames(make_scene({}, random), 600, 400, 10);
  auto processor = make_cuda_processor(device(), "auto", frames.config(), 2);
  ASSERT_TRUE(processor) << processor.error().message;
  FrameResult result;
  EXPECT_FALSE((*processor)->collect(result));
  EXPECT_TRUE((*processor)->submit(frames.at(0)));
  EXPECT_TRUE((*processor)->submit(frames.at(1)));
  EXPECT_FALSE((*processor)->submit(frames.at(2)));
  EXPECT_TRUE((*processor)->collect(result));
  EXPECT_TRUE((*processor)->collect(result));
}

}  // namespace
}  // namespace patternd::cuda::test
