// Blobs of whole frames: the GPU's are the CPU's to the bit, in every mode and with every
// reference.
#include <array>
#include <gtest/gtest.h>

#include "cuda/blob_stage.h"
#include "cuda/cuda_processor.h"
#include "tests/gpu/gpu.h"
#include "tools/bench/label_pictures.h"

namespace patternd::cuda::test {
namespace {

using Mode = BlobParams::Mode;
using Reference = BlobParams::Reference;

ProcessorConfig config_for(const Image& image, const BlobParams& params) {
  ProcessorConfig config = config_of(raw_of(image));
  config.blobs = params;
  config.threads = 1;
  return config;
}

void expect_same_blobs(const FrameResult& want, const FrameResult& got) {
  EXPECT_EQ(want.blobs_total, got.blobs_total);
  ASSERT_EQ(want.blobs.size(), got.blobs.size());
  for (std::size_t i = 0; i < want.blobs.size(); ++i) {
    const Blob& a = want.blobs[i];
    const Blob& b = got.blobs[i];
    SCOPED_TRACE("blob " + std::to_string(i));
    ASSERT_EQ(a.id, b.id);
    ASSERT_EQ(a.area_px, b.area_px);
    ASSERT_EQ(a.x_px, b.x_px);
    ASSERT_EQ(a.y_px, b.y_px);
    ASSERT_EQ(a.left, b.left);
    ASSERT_EQ(a.top, b.top);
    ASSERT_EQ(a.width, b.width);
    ASSERT_EQ(a.height, b.height);
    ASSERT_EQ(a.mean, b.mean);
    ASSERT_EQ(a.peak, b.peak);
    ASSERT_EQ(a.peak_x, b.peak_x);
    ASSERT_EQ(a.peak_y, b.peak_y);
    ASSERT_EQ(a.major_px, b.major_px);
    ASSERT_EQ(a.minor_px, b.minor_px);
    ASSERT_EQ(a.angle_deg, b.angle_deg);
    ASSERT_EQ(a.touches_border, b.touches_border);
  }
}

// The frames through both, on the GPU as many at a time as `streams`. Returns the blobs compared.
std::size_t expect_same(const ProcessorConfig& config, const std::vector<Image>& frames,
                        int streams, const std::string& memory = "auto") {
  auto cpu = make_cpu_processor(config);
  auto gpu = make_cuda_processor(device(), memory, config, streams);
  EXPECT_TRUE(cpu && gpu) << (gpu ? "" : gpu.error().message);
  if (!cpu || !gpu) return 0;
  std::size_t submitted = 0;
  std::size_t blobs = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    SCOPED_TRACE("frame " + std::to_string(i));
    for (; submitted < frames.size() && submitted < i + (*gpu)->depth(); ++submitted) {
      const auto begun = (*gpu)->submit(raw_of(frames[submitted]));
      EXPECT_TRUE(begun) << begun.error().message;
    }
    FrameResult want;
    FrameResult got;
    EXPECT_TRUE((*cpu)->process(raw_of(frames[i]), want));
    const auto done = (*gpu)->collect(got);
    EXPECT_TRUE(done) << done.error().message;
    expect_same_blobs(want, got);
    EXPECT_GT(got.times[Stage::kBlobs], 0);
    if (testing::Test::HasFailure()) return blobs;
    blobs += got.blobs.size();
  }
  return blobs;
}

Image noise(int width, int height, PixelFormat format, std::mt19937& random) {
  return make_picture(width, height, format, Content::kNoise, random);
}

// Random parameters of a mode, with filters and an roi now and then.
BlobParams params_of(Mode mode, const Image& image, std::mt19937& random) {
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<std::uint32_t>(limit));
  };
  const int most = image.format() == PixelFormat::kGray16 ? 65535 : 255;
  BlobParams params;
  params.mode = mode;
  params.threshold = below(most);
  params.similarity = most / 16 + below(most / 4);
  params.adaptive_radius = 1 + below(20);
  params.adaptive_offset = below(9) - 4;
  params.below = below(2) == 0;
  params.connectivity = below(2) == 0 ? 8 : 4;
  params.max_blobs = below(3) == 0 ? 5 : 1000;
  if (below(2) == 0) params.min_area = 1 + below(8);
  if (below(3) == 0) params.max_elongation = 1.5 + below(4);
  if (below(3) == 0)
    params.roi =
        Roi{image.width() / 4.0, image.height() / 5.0, image.width() / 2.0, image.height() / 2.0};
  return params;
}

// Small enough for kernels that are emulated on the CPU.
TEST(GpuFrame, LabelsAsTheCpuInASmallPicture) {
  PATTERND_NEEDS_GPU();
  constexpr unsigned kSeed = 41;
  std::mt19937 random(kSeed);
  std::size_t blobs = 0;
  int round = 0;
  for (const Mode mode : {Mode::kThreshold, Mode::kOtsu, Mode::kAdaptive, Mode::kSimilarity}) {
    for (const Reference reference : {Reference::kOff, Reference::kDark, Reference::kAlternate}) {
      SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
      const auto format = round++ % 3 == 0 ? PixelFormat::kGray16 : PixelFormat::kGray8;
      std::vector<Image> frames;
      for (int i = 0; i < 3; ++i) frames.push_back(noise(135, 23, format, random));
      BlobParams params = params_of(mode, frames[0], random);
      params.reference = reference;
      ProcessorConfig config = config_for(frames[0], params);
      if (reference == Reference::kDark)
        config.dark_frame = std::make_shared<const Image>(noise(135, 23, format, random));
      blobs += expect_same(config, frames, 1 + round % 3);
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(blobs, 300U);
}

// A plane that is the picture moved by whole pixels: every value is the CPU's.
TEST(GpuFrame, LabelsTheRectifiedAsTheCpuInASmallPicture) {
  PATTERND_NEEDS_GPU();
  constexpr unsigned kSeed = 42;
  std::mt19937 random(kSeed);
  CameraModel model;
  model.image_width = 160;
  model.image_height = 60;
  model.lens.model = LensModel::kNone;
  Plane plane;
  plane.homography = {1, 0, 9, 0, 1, 7, 0, 0, 1};
  plane.width = 140;
  plane.height = 50;
  model.plane = plane;
  for (const Reference reference : {Reference::kOff, Reference::kDark, Reference::kAlternate}) {
    std::vector<Image> frames;
    for (int i = 0; i < 2; ++i) frames.push_back(noise(160, 60, PixelFormat::kGray8, random));
    BlobParams params;
    params.threshold = 120;
    params.reference = reference;
    ProcessorConfig config = config_for(frames[0], params);
    config.calibration = model;
    config.dark_frame = std::make_shared<const Image>(noise(160, 60, PixelFormat::kGray8, random));
    EXPECT_GT(expect_same(config, frames, 2), 20U);
  }
}

// What small pictures have none of: many tiles and parts, and more blobs than come at once.
TEST(GpuFrame, LabelsAsTheCpuInLargeHardPictures) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(43);
  for (const auto& name : bench::label_picture_names()) {
    for (const Reference reference : {Reference::kOff, Reference::kAlternate}) {
      SCOPED_TRACE(name);
      std::vector<Image> frames;
      for (unsigned i = 0; i < 4; ++i)
        frames.push_back(bench::make_label_picture(name, 800 + 32, 600, i));
      BlobParams params;
      params.threshold = 127;
      params.reference = reference;
      expect_same(config_for(frames[0], params), frames, 3);
      if (HasFailure()) return;
    }
  }
}

TEST(GpuFrame, LabelsInEveryKindOfMemoryAsTheCpu) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(44);
  for (const char* memory : {"copy", "mapped", "managed"}) {
    SCOPED_TRACE(memory);
    std::vector<Image> frames;
    for (int i = 0; i < 5; ++i) frames.push_back(noise(641, 479, PixelFormat::kGray8, random));
    BlobParams params;
    params.threshold = 200;
    params.reference = Reference::kAlternate;
    EXPECT_GT(expect_same(config_for(frames[0], params), frames, 2, memory), 1000U);
  }
}

// The CPU labels what the GPU has no room for, and status says so.
TEST(GpuFrame, LabelsMoreBlobsThanTheGpuHasRoomFor) {
  PATTERND_NEEDS_GPU();
  std::vector<Image> frames;
  frames.push_back(bench::make_label_picture("dots", 1280, 1024, 0));
  frames.push_back(bench::make_label_picture("spots", 1280, 1024, 0));
  static_assert(640 * 512 > GpuBlobStage::kCapacity, "a dot every other pixel");
  BlobParams params;
  params.threshold = 127;
  const ProcessorConfig config = config_for(frames[0], params);
  EXPECT_GT(expect_same(config, frames, 2), 0U);
  auto gpu = make_cuda_processor(device(), "auto", config);
  ASSERT_TRUE(gpu) << gpu.error().message;
  FrameResult result;
  ASSERT_TRUE((*gpu)->process(raw_of(frames[1]), result));
  EXPECT_EQ(std::string::npos, (*gpu)->description().find("labelled by the CPU"));
  ASSERT_TRUE((*gpu)->process(raw_of(frames[0]), result));
  EXPECT_EQ(640U * 512U, result.blobs_total);
  EXPECT_NE(std::string::npos, (*gpu)->description().find(
                                   "blobs of 1 frames labelled by the CPU: more components than "
                                   "the GPU has room for (262144)"))
      << (*gpu)->description();
}

}  // namespace
}  // namespace patternd::cuda::test
