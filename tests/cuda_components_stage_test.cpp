// Connected components on a GPU, where there is one: labels and blobs are the CPU's to the bit.
#include <array>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

#include "cuda/components_stage.h"
#include "cuda/propagation_study.h"
#include "tools/bench/label_pictures.h"

namespace patternd::cuda {
namespace {

class CudaComponents : public testing::Test {
 protected:
  void SetUp() override {
    auto driver = Driver::open();
    if (!driver) GTEST_SKIP() << driver.error().message;
    const char* const image = std::getenv("PATTERND_TEST_IMAGE");
    auto device = Device::open(*driver, 0, image != nullptr ? image : "auto");
    ASSERT_TRUE(device) << device.error().message;
    device_ = *device;
    ASSERT_TRUE(device_->make_current());
    auto stream = Stream::create(device_);
    ASSERT_TRUE(stream) << stream.error().message;
    stream_ = std::make_unique<Stream>(std::move(*stream));
  }

  Result<DevicePicture> on_device(const ImageView& image) {
    auto picture = DevicePicture::create(device_, image.width, image.height, image.format);
    if (!picture) return picture;
    if (auto ok = upload(*stream_, image, picture->view()); !ok)
      return tl::make_unexpected(ok.error());
    return picture;
  }

  void expect_as_on_cpu(const ImageView& image, const BlobParams& params) {
    LabelOptions options;
    options.labels = true;
    auto cpu = ComponentLabeller::create(image.width, image.height, image.format, params, options);
    auto want = Image::create(image.width, image.height, PixelFormat::kLabel32);
    auto got = Image::create(image.width, image.height, PixelFormat::kLabel32);
    ASSERT_TRUE(cpu && want && got && cpu->process(image, want->view()));
    auto picture = on_device(image);
    ASSERT_TRUE(picture) << picture.error().message;
    ComponentsOptions stage_options;
    stage_options.labels = true;
    auto stage = ComponentsStage::create(device_, image.width, image.height, image.format, params,
                                         stage_options);
    ASSERT_TRUE(stage) << stage.error().message;
    std::vector<Blob> blobs;
    std::vector<Blob> expected;
    std::uint64_t total = 0;
    for (int round = 0; round < 2; ++round) {  // nothing is left over from the picture before
      ASSERT_TRUE(stage->enqueue(*stream_, picture->view()));
      ASSERT_TRUE(stage->enqueue_download(*stream_));
      ASSERT_TRUE(download(*stream_, stage->labels(), got->view()));
      const auto done = stream_->wait();
      ASSERT_TRUE(done) << done.error().message;
      const auto collected = stage->collect(*stream_, blobs, total);
      ASSERT_TRUE(collected) << collected.error().message;
      ASSERT_EQ(static_cast<std::uint64_t>(cpu->count()), total);
      for (int y = 0; y < image.height; ++y)
        for (int x = 0; x < image.width; ++x)
          ASSERT_EQ(want->row<std::int32_t>(y)[x], got->row<std::int32_t>(y)[x]) << x << "," << y;
      cpu->largest(expected);
      ASSERT_EQ(expected.size(), blobs.size());
      for (std::size_t i = 0; i < blobs.size(); ++i) expect_same(expected[i], blobs[i]);
    }
  }

  static void expect_same(const Blob& want, const Blob& got) {
    ASSERT_EQ(want.area_px, got.area_px);
    ASSERT_EQ(want.x_px, got.x_px);
    ASSERT_EQ(want.y_px, got.y_px);
    ASSERT_EQ(want.left, got.left);
    ASSERT_EQ(want.top, got.top);
    ASSERT_EQ(want.width, got.width);
    ASSERT_EQ(want.height, got.height);
    ASSERT_EQ(want.mean, got.mean);
    ASSERT_EQ(want.peak, got.peak);
    ASSERT_EQ(want.peak_x, got.peak_x);
    ASSERT_EQ(want.peak_y, got.peak_y);
    ASSERT_EQ(want.major_px, got.major_px);
    ASSERT_EQ(want.minor_px, got.minor_px);
    ASSERT_EQ(want.angle_deg, got.angle_deg);
    ASSERT_EQ(want.touches_border, got.touches_border);
  }

  std::shared_ptr<const Device> device_;
  std::unique_ptr<Stream> stream_;
};

Image random_picture(int width, int height, PixelFormat format, std::mt19937& random) {
  Image image = std::move(*Image::create(width, height, format));
  const int values = format == PixelFormat::kRgb8 ? 3 * width : width;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < values; ++x)
      if (format == PixelFormat::kGray16)
        image.row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(random());
      else
        image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(random());
  return image;
}

BlobParams threshold_params(double threshold, int connectivity) {
  BlobParams params;
  params.threshold = threshold;
  params.connectivity = connectivity;
  params.max_blobs = 1 << 20;
  return params;
}

TEST_F(CudaComponents, AreTheCpusForManySizes) {
  constexpr std::uint32_t kSeed = 21;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 400; ++round) {
    const auto format = round % 3 == 0 ? PixelFormat::kGray16 : PixelFormat::kGray8;
    const int width = 1 + static_cast<int>(random() % (round % 2 == 0 ? 70 : 300));
    const int height = 1 + static_cast<int>(random() % 70);
    const double most = format == PixelFormat::kGray16 ? 65535 : 255;
    BlobParams params = threshold_params(static_cast<double>(random() % 1000) * most / 1000.0,
                                         random() % 2 == 0 ? 8 : 4);
    params.below = random() % 2 == 0;
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    expect_as_on_cpu(random_picture(width, height, format, random).view(), params);
    if (HasFailure()) return;
  }
}

TEST_F(CudaComponents, AreTheCpusForAllSizesUpTo70) {
  constexpr std::uint32_t kSeed = 24;
  std::mt19937 random(kSeed);
  const auto& names = bench::label_picture_names();
  for (int height = 1; height <= 70; ++height) {
    for (int width = 1; width <= 70; ++width) {
      SCOPED_TRACE("seed " + std::to_string(kSeed) + ", " + std::to_string(width) + "x" +
                   std::to_string(height));
      const bool made = (width + height) % 2 == 0;
      const Image image =
          made ? bench::make_label_picture(names[random() % names.size()], width, height, kSeed)
               : random_picture(width, height, PixelFormat::kGray8, random);
      for (const int connectivity : {4, 8})
        expect_as_on_cpu(image.view(), threshold_params(127, connectivity));
      if (HasFailure()) return;
    }
  }
}

// Random parameters of every mode that the GPU has, with and without an roi.
BlobParams random_params(const ImageView& image, std::mt19937& random) {
  using Mode = BlobParams::Mode;
  constexpr std::array<Mode, 4> kModes = {Mode::kSimilarity, Mode::kThreshold, Mode::kOtsu,
                                          Mode::kAdaptive};
  const auto below = [&](int limit) {
    return static_cast<int>(random() % static_cast<std::uint32_t>(limit));
  };
  BlobParams params = threshold_params(below(image.format == PixelFormat::kGray16 ? 65536 : 256),
                                       below(2) == 0 ? 8 : 4);
  params.mode = image.format == PixelFormat::kRgb8 ? Mode::kSimilarity
                                                   : kModes[static_cast<std::size_t>(below(4))];
  params.similarity = below(image.format == PixelFormat::kGray16 ? 30000 : 150);
  params.below = below(2) == 0;
  params.adaptive_radius = below(below(4) == 0 ? 400 : 20);
  params.adaptive_offset = below(100) / 7.0 - 6;
  if (below(2) == 0) {
    const int x = below(image.width);
    const int y = below(image.height);
    params.roi = Roi{static_cast<double>(x), static_cast<double>(y), 1.0 + below(image.width - x),
                     1.0 + below(image.height - y)};
  }
  return params;
}

TEST_F(CudaComponents, AreTheCpusInEveryModeAndRoi) {
  constexpr std::uint32_t kSeed = 25;
  std::mt19937 random(kSeed);
  constexpr std::array<PixelFormat, 4> kFormats = {PixelFormat::kGray8, PixelFormat::kGray16,
                                                   PixelFormat::kGray8, PixelFormat::kRgb8};
  for (std::size_t round = 0; round < 400; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const PixelFormat format = kFormats[round % 4];
    Image image = random_picture(1 + static_cast<int>(random() % 500),
                                 1 + static_cast<int>(random() % 200), format, random);
    if (round % 9 == 0) image.fill_bytes(static_cast<std::uint8_t>(random()));
    expect_as_on_cpu(image.view(), random_params(image.view(), random));
    if (HasFailure()) return;
  }
}

// Few and small enough for compute-sanitizer's slower tools, with several tiles in both directions.
TEST_F(CudaComponents, AreTheCpusInAFewSmallPictures) {
  constexpr std::uint32_t kSeed = 26;
  std::mt19937 random(kSeed);
  for (const auto& name : {"noise30", "noise50", "dots", "spiral", "comb", "full"}) {
    SCOPED_TRACE(name);
    const Image image = bench::make_label_picture(name, 150, 70, kSeed);
    expect_as_on_cpu(image.view(), threshold_params(127, 8));
    BlobParams params = random_params(image.view(), random);
    params.mode = name[0] == 'n' ? BlobParams::Mode::kAdaptive : BlobParams::Mode::kOtsu;
    expect_as_on_cpu(image.view(), params);
    params.mode = BlobParams::Mode::kSimilarity;
    expect_as_on_cpu(image.view(), params);
  }
}

TEST_F(CudaComponents, AreTheCpusInLargeHardPictures) {
  for (const auto& name : bench::label_picture_names()) {
    if (name == "checkerboard") continue;  // below: its million labels with connectivity 4
    for (const int connectivity : {4, 8}) {
      SCOPED_TRACE(name + ", connectivity " + std::to_string(connectivity));
      const Image image = bench::make_label_picture(name, 2048, 2048, 3);
      expect_as_on_cpu(image.view(), threshold_params(127, connectivity));
      if (HasFailure()) return;
    }
  }
  const Image image = bench::make_label_picture("checkerboard", 1024, 1024, 3);
  expect_as_on_cpu(image.view(), threshold_params(127, 4));
}

TEST_F(CudaComponents, PassTheFiltersOfTheCpu) {
  std::mt19937 random(22);
  const Image image = random_picture(500, 400, PixelFormat::kGray8, random);
  BlobParams params = threshold_params(150, 8);
  params.min_area = 4;
  params.max_elongation = 3;
  params.max_blobs = 100;
  auto cpu = ComponentLabeller::create(500, 400, PixelFormat::kGray8, params, {});
  ASSERT_TRUE(cpu && cpu->process(image.view()));
  auto picture = on_device(image.view());
  auto stage = ComponentsStage::create(device_, 500, 400, PixelFormat::kGray8, params, {});
  ASSERT_TRUE(picture && stage);
  ASSERT_TRUE(stage->enqueue(*stream_, picture->view()) && stage->enqueue_download(*stream_) &&
              stream_->wait());
  std::vector<Blob> blobs;
  std::vector<Blob> expected;
  std::uint64_t total = 0;
  ASSERT_TRUE(stage->collect(*stream_, blobs, total));
  cpu->largest(expected);
  EXPECT_EQ(static_cast<std::uint64_t>(cpu->count()), total);
  ASSERT_EQ(expected.size(), blobs.size());
  for (std::size_t i = 0; i < blobs.size(); ++i) expect_same(expected[i], blobs[i]);
}

TEST_F(CudaComponents, BeyondTheCapAreAnErrorThatNamesIt) {
  const Image image = bench::make_label_picture("dots", 256, 256, 0);
  auto picture = on_device(image.view());
  ComponentsOptions options;
  options.capacity = 1000;
  auto stage = ComponentsStage::create(device_, 256, 256, PixelFormat::kGray8,
                                       threshold_params(127, 8), options);
  ASSERT_TRUE(picture && stage);
  ASSERT_TRUE(stage->enqueue(*stream_, picture->view()) && stage->enqueue_download(*stream_) &&
              stream_->wait());
  std::vector<Blob> blobs;
  std::uint64_t total = 0;
  const auto collected = stage->collect(*stream_, blobs, total);
  ASSERT_FALSE(collected);
  EXPECT_EQ(ErrorCode::kExhausted, collected.error().code);
  EXPECT_NE(std::string::npos, collected.error().message.find("has 16384"))
      << collected.error().message;
  EXPECT_NE(std::string::npos, collected.error().message.find("memory for 1000"));
}

TEST_F(CudaComponents, OfTheReportsProgramsAreTheCpus) {
  std::mt19937 random(23);
  for (int round = 0; round < 40; ++round) {
    const Image image =
        random_picture(1 + static_cast<int>(random() % 200), 1 + static_cast<int>(random() % 100),
                       PixelFormat::kGray8, random);
    BlobParams params =
        threshold_params(static_cast<double>(random() % 256), round % 2 == 0 ? 8 : 4);
    params.similarity = static_cast<double>(random() % 80);
    if (round % 4 >= 2) params.mode = BlobParams::Mode::kSimilarity;
    LabelOptions options;
    options.labels = true;
    auto cpu = ComponentLabeller::create(image.width(), image.height(), PixelFormat::kGray8, params,
                                         options);
    auto want = Image::create(image.width(), image.height(), PixelFormat::kLabel32);
    auto got = Image::create(image.width(), image.height(), PixelFormat::kLabel32);
    ASSERT_TRUE(cpu && want && got && cpu->process(image.view(), want->view()));
    auto picture = on_device(image.view());
    ASSERT_TRUE(picture);
    for (const auto program : {PropagationProgram::kPropagation, PropagationProgram::kEquivalence,
                               PropagationProgram::kTexture}) {
      auto study =
          PropagationStudy::create(device_, program, image.width(), image.height(), params);
      ASSERT_TRUE(study) << study.error().message;
      const auto rounds = study->run(*stream_, picture->view());
      ASSERT_TRUE(rounds) << rounds.error().message;
      ASSERT_TRUE(study->download(*stream_, got->view()));
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x)
          ASSERT_EQ(want->row<std::int32_t>(y)[x], got->row<std::int32_t>(y)[x]);
    }
  }
}

}  // namespace
}  // namespace patternd::cuda
