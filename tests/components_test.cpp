#include "pipeline/components.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <memory>
#include <random>

#include "tests/support/reference_components.h"
#include "tools/bench/label_pictures.h"

namespace patternd {
namespace {

using Mode = BlobParams::Mode;
using test::expect_same;
using test::label_plainly;
using test::ReferenceLabels;

constexpr std::int32_t kCanary = 0x5A5A5A5A;

BlobParams threshold_params(double threshold, int connectivity) {
  BlobParams params;
  params.threshold = threshold;
  params.connectivity = connectivity;
  return params;
}

// Labels `image` and compares with the reference, once for labels and statistics, once for
// statistics alone; the padding behind the rows of labels must stay as it was.
void expect_labelled(const ImageView& image, const BlobParams& params,
                     const ReferenceLabels& expected, LabelOptions options) {
  auto labels = Image::create(image.width, image.height, PixelFormat::kLabel32);
  ASSERT_TRUE(labels);
  for (int y = 0; y < image.height; ++y)
    std::fill_n(labels->row<std::int32_t>(y), labels->view().stride_bytes / 4, kCanary);
  options.labels = true;
  auto labeller =
      ComponentLabeller::create(image.width, image.height, image.format, params, options);
  ASSERT_TRUE(labeller) << labeller.error().message;
  ASSERT_TRUE(labeller->process(image, labels->view()));
  expect_same(expected, *labeller, labels->view());
  for (int y = 0; y < image.height; ++y)
    for (std::size_t x = static_cast<std::size_t>(image.width); x < labels->view().stride_bytes / 4;
         ++x)
      ASSERT_EQ(kCanary, labels->row<std::int32_t>(y)[x]);

  options.labels = false;
  auto counter =
      ComponentLabeller::create(image.width, image.height, image.format, params, options);
  ASSERT_TRUE(counter);
  for (int round = 0; round < 2; ++round) {  // nothing is left over from the picture before
    ASSERT_TRUE(counter->process(image));
    expect_same(expected, *counter, labels->view());
  }
}

void expect_all_methods(const ImageView& image, const BlobParams& params) {
  const ReferenceLabels expected = label_plainly(image, params);
  for (const LabelMethod method : {LabelMethod::kRuns, LabelMethod::kPropagation}) {
    SCOPED_TRACE(name_of(method));
    LabelOptions options;
    options.method = method;
    expect_labelled(image, params, expected, options);
    if (testing::Test::HasFatalFailure()) return;
  }
}

Image random_picture(int width, int height, PixelFormat format, std::mt19937& random, int levels) {
  auto image = Image::create(width, height, format);
  EXPECT_TRUE(image);
  const int channels = format == PixelFormat::kRgb8 ? 3 : 1;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width * channels; ++x) {
      const auto value = random() % static_cast<std::uint32_t>(levels);
      if (format == PixelFormat::kGray16)
        image->row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(value);
      else
        image->row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(value);
    }
  }
  return std::move(*image);
}

TEST(Components, AreThoseOfTheReferenceForAllSizesUpTo70) {
  constexpr std::uint32_t kSeed = 1;
  std::mt19937 random(kSeed);
  for (int height = 1; height <= 70; ++height) {
    for (int width = 1; width <= 70; ++width) {
      const int connectivity = random() % 2 == 0 ? 8 : 4;
      const auto threshold = static_cast<double>(random() % 256);
      SCOPED_TRACE("seed " + std::to_string(kSeed) + ", size " + std::to_string(width) + "x" +
                   std::to_string(height) + ", threshold " + std::to_string(threshold) +
                   ", connectivity " + std::to_string(connectivity));
      const Image image = random_picture(width, height, PixelFormat::kGray8, random, 256);
      const BlobParams params = threshold_params(threshold, connectivity);
      const auto expected = label_plainly(image.view(), params);
      expect_labelled(image.view(), params, expected, {});
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Components, AreThoseOfTheReferenceByEveryMethodAndMode) {
  constexpr std::uint32_t kSeed = 2;
  std::mt19937 random(kSeed);
  const PixelFormat formats[] = {PixelFormat::kGray8, PixelFormat::kGray16, PixelFormat::kRgb8};
  for (int round = 0; round < 600; ++round) {
    BlobParams params;
    params.mode = std::array{Mode::kThreshold, Mode::kAdaptive, Mode::kSimilarity}[random() % 3];
    params.connectivity = random() % 2 == 0 ? 8 : 4;
    params.below = random() % 2 == 0;
    const auto format = formats[random() % (params.mode == Mode::kSimilarity ? 3 : 2)];
    const int levels = format == PixelFormat::kGray16 ? (random() % 2 == 0 ? 65536 : 5) : 256;
    params.threshold = static_cast<double>(random() % static_cast<std::uint32_t>(levels)) + 0.5;
    params.similarity = static_cast<double>(random() % static_cast<std::uint32_t>(levels)) * 0.6;
    params.adaptive_radius = static_cast<int>(random() % 12);
    params.adaptive_offset = static_cast<double>(random() % 41) - 20;
    const int width = 1 + static_cast<int>(random() % 140);
    const int height = 1 + static_cast<int>(random() % 40);
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    expect_all_methods(random_picture(width, height, format, random, levels).view(), params);
    if (HasFatalFailure()) return;
  }
}

// Pictures that reach every loop: sparse and crowded words, all formats and modes.
void expect_right_in_this_instruction_set(std::uint32_t seed) {
  std::mt19937 random(seed);
  const PixelFormat formats[] = {PixelFormat::kGray8, PixelFormat::kGray16, PixelFormat::kRgb8};
  for (int round = 0; round < 90; ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    BlobParams params;
    const auto format = formats[round % 3];
    const bool similarity = format == PixelFormat::kRgb8 || round % 2 == 0;
    const double most = format == PixelFormat::kGray16 ? 65535 : 255;
    params.mode = similarity ? Mode::kSimilarity : Mode::kThreshold;
    params.connectivity = random() % 2 == 0 ? 8 : 4;
    params.threshold = static_cast<double>(random() % 100) * most / 100;
    params.similarity = static_cast<double>(random() % 60) * most / 100;
    const Image image =
        random_picture(1 + static_cast<int>(random() % 300), 1 + static_cast<int>(random() % 12),
                       format, random, static_cast<int>(most) + 1);
    expect_labelled(image.view(), params, label_plainly(image.view(), params), {});
    if (testing::Test::HasFatalFailure()) return;
  }
  for (const char* name : {"comb", "serpentine", "checkerboard", "blocks4", "dots", "full"}) {
    SCOPED_TRACE(name);
    const Image image = bench::make_label_picture(name, 201, 23, seed);
    const BlobParams params = threshold_params(127, 8);
    expect_labelled(image.view(), params, label_plainly(image.view(), params), {});
  }
}

TEST(Components, AreThoseOfTheReferenceInEveryInstructionSet) {
  constexpr std::int64_t kPlain = HWY_EMU128 | HWY_SCALAR;
  std::int64_t masked = 0;
  for (;;) {
    const std::int64_t targets = hwy::SupportedTargets();
    const std::int64_t best = targets & -targets;  // the lowest bit
    SCOPED_TRACE("Highway's target " + std::to_string(best));
    expect_right_in_this_instruction_set(10);
    if (HasFailure() || (best & kPlain) != 0) break;
    masked |= best;
    hwy::DisableTargets(masked);
  }
  hwy::DisableTargets(0);
}

TEST(Components, AreThoseOfTheReferenceInHardPictures) {
  for (const auto& name : bench::label_picture_names()) {
    for (const auto& [width, height] :
         {std::pair{64, 64}, {65, 63}, {129, 31}, {1, 70}, {70, 1}, {128, 7}}) {
      for (const int connectivity : {4, 8}) {
        SCOPED_TRACE(name + " " + std::to_string(width) + "x" + std::to_string(height) +
                     ", connectivity " + std::to_string(connectivity));
        const Image image = bench::make_label_picture(name, width, height, 3);
        expect_all_methods(image.view(), threshold_params(127, connectivity));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Components, AreTheSameOnAnyNumberOfThreads) {
  constexpr std::uint32_t kSeed = 4;
  std::mt19937 random(kSeed);
  for (const int threads : {2, 3, 8}) {
    ThreadPool pool(threads);
    LabelOptions options;
    options.pool = &pool;
    for (const auto& name : bench::label_picture_names()) {
      for (const int connectivity : {4, 8}) {
        SCOPED_TRACE(name + " on " + std::to_string(threads) + " threads");
        const Image image = bench::make_label_picture(name, 150, 333, kSeed);
        const BlobParams params = threshold_params(127, connectivity);
        expect_labelled(image.view(), params, label_plainly(image.view(), params), options);
        if (HasFatalFailure()) return;
      }
    }
    for (const Mode mode : {Mode::kSimilarity, Mode::kAdaptive}) {
      SCOPED_TRACE("seed " + std::to_string(kSeed));
      BlobParams params;
      params.mode = mode;
      params.similarity = 30;
      params.adaptive_radius = 7;
      const Image image = random_picture(97, 300, PixelFormat::kGray8, random, 200);
      expect_labelled(image.view(), params, label_plainly(image.view(), params), options);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Components, CountBeyond65535Labels) {
  const Image image = bench::make_label_picture("dots", 1024, 1024, 0);
  auto labels = Image::create(1024, 1024, PixelFormat::kLabel32);
  ASSERT_TRUE(labels);
  LabelOptions options;
  options.labels = true;
  auto labeller =
      ComponentLabeller::create(1024, 1024, PixelFormat::kGray8, threshold_params(127, 8), options);
  ASSERT_TRUE(labeller);
  ASSERT_TRUE(labeller->process(image.view(), labels->view()));
  EXPECT_EQ(512 * 512, labeller->count());
  EXPECT_EQ(512 * 512, labels->row<std::int32_t>(1022)[1022]);
  const Blob last = labeller->blob(512 * 512);
  EXPECT_EQ(1, last.area_px);
  EXPECT_EQ(1022, last.x_px);
  EXPECT_EQ(1022, last.y_px);
}

TEST(Components, OfACheckerboardAreOneOr32768) {
  const Image image = bench::make_label_picture("checkerboard", 256, 256, 0);
  for (const auto& [connectivity, count] : {std::pair{8, 1}, {4, 32768}}) {
    auto labeller = ComponentLabeller::create(256, 256, PixelFormat::kGray8,
                                              threshold_params(127, connectivity), {});
    ASSERT_TRUE(labeller);
    ASSERT_TRUE(labeller->process(image.view()));
    EXPECT_EQ(count, labeller->count());
  }
}

TEST(Components, OfARowAsWideAsAllowedHaveExactMoments) {
  auto image = Image::create(kMaxImageSide, 3, PixelFormat::kGray8);
  ASSERT_TRUE(image);
  image->fill_bytes(255);
  auto labeller =
      ComponentLabeller::create(kMaxImageSide, 3, PixelFormat::kGray8, threshold_params(0, 8), {});
  ASSERT_TRUE(labeller);
  ASSERT_TRUE(labeller->process(image->view()));
  ASSERT_EQ(1, labeller->count());
  const Blob blob = labeller->blob(1);
  EXPECT_EQ(3LL * kMaxImageSide, blob.area_px);
  EXPECT_EQ(16383, blob.x_px);
  EXPECT_EQ(1, blob.y_px);
  // A filled rectangle has variance side²/12.
  EXPECT_NEAR(4 * kMaxImageSide / std::sqrt(12.0), blob.major_px, 1e-6);
  EXPECT_NEAR(4 * 3 / std::sqrt(12.0), blob.minor_px, 1e-9);
  EXPECT_EQ(0, blob.angle_deg);
}

TEST(Components, SaturatedPeakIsTheFirstInScanOrder) {
  const Image image = bench::make_label_picture("full", 100, 90, 0);
  auto labeller =
      ComponentLabeller::create(100, 90, PixelFormat::kGray8, threshold_params(254, 8), {});
  ASSERT_TRUE(labeller);
  ASSERT_TRUE(labeller->process(image.view()));
  const Blob blob = labeller->blob(1);
  EXPECT_EQ(255, blob.peak);
  EXPECT_EQ(255, blob.mean);
  EXPECT_EQ(0, blob.peak_x);
  EXPECT_EQ(0, blob.peak_y);
}

TEST(Components, RespectThresholdsAtAndBeyondTheEndsOfTheScale) {
  std::mt19937 random(5);
  for (const auto format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    const double most = format == PixelFormat::kGray8 ? 255 : 65535;
    const Image image = random_picture(67, 9, format, random, static_cast<int>(most) + 1);
    for (const double threshold :
         {-1e9, -1.0, -0.5, 0.0, 0.5, most - 1, most - 0.5, most, most + 0.5, most + 1, 1e9}) {
      for (const bool below : {false, true}) {
        SCOPED_TRACE("threshold " + std::to_string(threshold));
        BlobParams params = threshold_params(threshold, 8);
        params.below = below;
        expect_all_methods(image.view(), params);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Components, WithOtsuSplitTwoLevelsAndLeaveAFlatPictureAlone) {
  auto image = Image::create(40, 30, PixelFormat::kGray8);
  ASSERT_TRUE(image);
  image->fill_bytes(90);
  BlobParams params;
  params.mode = Mode::kOtsu;
  for (const bool below : {false, true}) {
    params.below = below;
    auto labeller = ComponentLabeller::create(40, 30, PixelFormat::kGray8, params, {});
    ASSERT_TRUE(labeller);
    ASSERT_TRUE(labeller->process(image->view()));
    EXPECT_EQ(0, labeller->count());
  }
  for (int y = 5; y < 9; ++y) std::fill_n(image->row<std::uint8_t>(y) + 11, 6, 140);
  for (const auto& [below, area] : {std::pair{false, 24}, {true, 40 * 30 - 24}}) {
    params.below = below;
    auto labeller = ComponentLabeller::create(40, 30, PixelFormat::kGray8, params, {});
    ASSERT_TRUE(labeller);
    ASSERT_TRUE(labeller->process(image->view()));
    ASSERT_EQ(1, labeller->count());
    EXPECT_EQ(area, labeller->blob(1).area_px);
    EXPECT_EQ(90.5, labeller->threshold());
  }
}

TEST(Components, OutsideTheFiltersAreLeftOutOfLabelsAndCount) {
  std::mt19937 random(6);
  const Image image = random_picture(120, 80, PixelFormat::kGray8, random, 256);
  BlobParams params = threshold_params(150, 4);
  const ReferenceLabels all = label_plainly(image.view(), params);
  params.min_area = 3;
  params.max_area = 40;
  params.min_width = 2;
  params.max_height = 9;
  params.min_elongation = 1.2;
  params.max_elongation =
      4.5;  // no blob's own: a line of 4 pixels has 4, give or take the last bit
  params.min_peak = 200;
  std::vector<std::int32_t> renumbered{0};
  std::vector<Blob> kept;
  for (const Blob& b : all.blobs) {
    const double elongation = b.major_px / b.minor_px;
    const bool keep = b.area_px >= 3 && b.area_px <= 40 && b.width >= 2 && b.height <= 9 &&
                      elongation >= 1.2 && elongation <= 4.5 && b.peak >= 200;
    if (keep) kept.push_back(b);
    renumbered.push_back(keep ? static_cast<std::int32_t>(kept.size()) : 0);
  }
  ASSERT_GT(kept.size(), 20U);
  ASSERT_LT(kept.size(), all.blobs.size() / 2);
  ReferenceLabels expected{120, 80, {}, kept};
  for (const auto label : all.labels)
    expected.labels.push_back(renumbered[static_cast<std::size_t>(label)]);
  for (const LabelMethod method : {LabelMethod::kRuns, LabelMethod::kPropagation}) {
    LabelOptions options;
    options.method = method;
    expect_labelled(image.view(), params, expected, options);
  }
}

TEST(Components, OutsideTheRoiAreAsIfTheyWereNotThere) {
  std::mt19937 random(7);
  const Image image = random_picture(90, 70, PixelFormat::kGray8, random, 256);
  BlobParams params = threshold_params(120, 8);
  const auto inside = label_plainly(image.view().crop(13, 21, 50, 37), params);
  params.roi = Roi{12.5, 20.25, 50, 37};  // pixel centres 13 to 62 and 21 to 57
  LabelOptions options;
  options.labels = true;
  auto labeller = ComponentLabeller::create(90, 70, PixelFormat::kGray8, params, options);
  ASSERT_TRUE(labeller);
  auto labels = Image::create(90, 70, PixelFormat::kLabel32);
  ASSERT_TRUE(labels);
  ASSERT_TRUE(labeller->process(image.view(), labels->view()));
  ASSERT_EQ(static_cast<std::int64_t>(inside.blobs.size()), labeller->count());
  for (int y = 0; y < 70; ++y) {
    for (int x = 0; x < 90; ++x) {
      const bool in = x >= 13 && x < 63 && y >= 21 && y < 58;
      const auto at = static_cast<std::size_t>((y - 21) * 50 + x - 13);
      ASSERT_EQ(in ? inside.labels[at] : 0, labels->row<std::int32_t>(y)[x]);
    }
  }
  const Blob blob = labeller->blob(1);
  EXPECT_DOUBLE_EQ(inside.blobs[0].x_px + 13, blob.x_px);
  EXPECT_DOUBLE_EQ(inside.blobs[0].y_px + 21, blob.y_px);
  EXPECT_EQ(inside.blobs[0].left + 13, blob.left);
  EXPECT_EQ(inside.blobs[0].peak_y + 21, blob.peak_y);
  EXPECT_TRUE(blob.touches_border);
}

TEST(Components, LargestComeFirstAndAreCutToTheNumberAsked) {
  std::mt19937 random(8);
  const Image image = random_picture(200, 100, PixelFormat::kGray8, random, 256);
  BlobParams params = threshold_params(160, 4);
  params.max_blobs = 25;
  auto labeller = ComponentLabeller::create(200, 100, PixelFormat::kGray8, params, {});
  ASSERT_TRUE(labeller);
  ASSERT_TRUE(labeller->process(image.view()));
  std::vector<Blob> all;
  for (std::int64_t label = 1; label <= labeller->count(); ++label)
    all.push_back(labeller->blob(label));
  std::sort(all.begin(), all.end(), [](const Blob& a, const Blob& b) {
    return a.area_px != b.area_px ? a.area_px > b.area_px : a.id < b.id;
  });
  ASSERT_GT(all.size(), 25U);
  std::vector<Blob> largest;
  labeller->largest(largest);
  ASSERT_EQ(25U, largest.size());
  for (std::size_t i = 0; i < largest.size(); ++i) {
    EXPECT_EQ(static_cast<std::int64_t>(i) + 1, largest[i].id);
    EXPECT_EQ(all[i].area_px, largest[i].area_px);
    EXPECT_EQ(all[i].x_px, largest[i].x_px);
    EXPECT_EQ(all[i].y_px, largest[i].y_px);
  }
}

// A view whose last row ends where the memory ends: nothing behind it may be touched (the address
// sanitizer watches).
TEST(Components, ReadNothingBehindThePicture) {
  std::mt19937 random(9);
  for (int width = 1; width <= 130; width += 3) {
    for (int height = 1; height <= 9; ++height) {
      const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
      const std::unique_ptr<std::uint8_t[]> pixels(new std::uint8_t[size]);
      for (std::size_t i = 0; i < size; ++i) pixels[i] = static_cast<std::uint8_t>(random());
      const ImageView view{pixels.get(), width, height, static_cast<std::size_t>(width),
                           PixelFormat::kGray8};
      for (const Mode mode : {Mode::kThreshold, Mode::kOtsu, Mode::kAdaptive, Mode::kSimilarity}) {
        BlobParams params = threshold_params(127, 8);
        params.mode = mode;
        auto labeller = ComponentLabeller::create(width, height, PixelFormat::kGray8, params, {});
        ASSERT_TRUE(labeller);
        ASSERT_TRUE(labeller->process(view));
        std::int64_t area = 0;
        for (std::int64_t label = 1; label <= labeller->count(); ++label)
          area += labeller->blob(label).area_px;
        EXPECT_LE(area, width * height);
      }
    }
  }
}

TEST(Components, RefuseWhatCannotWorkAndSayWhatWould) {
  const auto message = [](const BlobParams& params, PixelFormat format) {
    auto labeller = ComponentLabeller::create(64, 48, format, params, {});
    return labeller ? std::string("accepted") : labeller.error().message;
  };
  BlobParams params;
  params.connectivity = 6;
  EXPECT_EQ("components: connectivity is 6; it must be 4 or 8",
            message(params, PixelFormat::kGray8));
  params = {};
  params.threshold = std::nan("");
  EXPECT_EQ("components: threshold is nan; it must be a finite number",
            message(params, PixelFormat::kGray8));
  params = {};
  EXPECT_EQ("components: the picture is rgb8; thresholds take gray8 and gray16",
            message(params, PixelFormat::kRgb8));
  params.mode = Mode::kSimilarity;
  EXPECT_EQ("accepted", message(params, PixelFormat::kRgb8));
  EXPECT_EQ("components: the picture is gray_f32; similarity takes gray8, gray16 and rgb8",
            message(params, PixelFormat::kGrayF32));
  params = {};
  params.roi = Roi{64, 0, 10, 10};
  EXPECT_EQ("components: roi has no pixel of the picture of 64x48; it must overlap it",
            message(params, PixelFormat::kGray8));

  auto labeller = ComponentLabeller::create(64, 48, PixelFormat::kGray8, {}, {});
  ASSERT_TRUE(labeller);
  const Image other = bench::make_label_picture("blank", 64, 47, 0);
  const auto result = labeller->process(other.view());
  ASSERT_FALSE(result);
  EXPECT_EQ("components: picture is 64x47 gray8; expected 64x48 gray8", result.error().message);
}

}  // namespace
}  // namespace patternd
