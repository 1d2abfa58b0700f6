// Rectification and pyramid on the GPU against the CPU's double-precision reference and Pyramid.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "calibration/matrix3.h"
#include "cuda/pyramid_stage.h"
#include "cuda/rectify_stage.h"
#include "pipeline/match_angles.h"
#include "pipeline/pyramid.h"
#include "pipeline/rectify.h"
#include "tests/gpu/gpu.h"
#include "tests/support/reference_rectify.h"

namespace patternd::cuda::test {
namespace {

double level_at(const ImageView& view, int x, int y) {
  switch (view.format) {
    case PixelFormat::kGray16:
      return view.row<std::uint16_t>(y)[x];
    case PixelFormat::kGrayF32:
      return static_cast<double>(view.row<float>(y)[x]);
    default:
      return view.row<std::uint8_t>(y)[x];
  }
}

// `loads`: lets the kernel read the source by plain loads too.
Image rectified_by_gpu(const CameraModel& model, const Image& input, bool loads = true) {
  auto stream = Stream::create(device());
  EXPECT_TRUE(stream);
  auto source = DevicePicture::create(device(), input.width(), input.height(), input.format());
  const auto plan = plan_rectification(model);
  auto target = DevicePicture::create(device(), plan->width, plan->height, input.format());
  auto out = Image::create(plan->width, plan->height, input.format());
  EXPECT_TRUE(source && target && out);
  EXPECT_TRUE(upload(*stream, input.view(), source->view()));
  EXPECT_TRUE(stream->fill(static_cast<DevicePointer>(target->view().address), 0xA5,
                           static_cast<std::size_t>(target->view().stride_bytes) *
                               static_cast<std::size_t>(plan->height)));
  const auto& view = source->view();
  auto texture = Texture::create(device(), view.address, view.width, view.height,
                                 static_cast<std::size_t>(view.stride_bytes), view.format, 1,
                                 FilterMode::kPoint);
  EXPECT_TRUE(texture) << texture.error().message;
  auto stage = RectifyStage::create(device(), *plan, input.format(), model.border, {});
  EXPECT_TRUE(stage) << stage.error().message;
  EXPECT_TRUE(stage->enqueue(*stream, *texture, target->view(), loads ? view : DeviceView{}));
  EXPECT_TRUE(download(*stream, target->view(), out->view()));
  const auto waited = stream->wait();
  EXPECT_TRUE(waited) << waited.error().message;
  return std::move(*out);
}

// Against the double-precision reference: `levels` grey levels anywhere.
void expect_rectified(const CameraModel& model, const Image& input, double levels) {
  const Image out = rectified_by_gpu(model, input);
  double worst = 0;
  for (int y = 0; y < out.height(); ++y) {
    for (int x = 0; x < out.width(); ++x) {
      const auto truth = patternd::test::reference_pixel(model, input.view(), x, y);
      const double expected = truth.value_or(model.border);
      const double error = std::abs(level_at(out.view(), x, y) - expected);
      if (error > levels && worst <= levels) ADD_FAILURE() << "first at " << x << ' ' << y;
      worst = std::max(worst, error);
    }
  }
  EXPECT_LE(worst, levels);
}

CameraModel sized(CameraModel model, int width, int height) {
  model.image_width = width;
  model.image_height = height;
  return model;
}

TEST(GpuRectify, AgreesWithTheReferenceOnEveryKindOfPicture) {
  PATTERND_NEEDS_GPU();
  const unsigned seed = 11;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (const Content content : {Content::kNoise, Content::kBlack, Content::kWhite,
                                Content::kStripes, Content::kOnePixel, Content::kTexture}) {
    for (const bool turned : {false, true}) {
      SCOPED_TRACE(name_of(content));
      const CameraModel model = patternd::test::tilted_plane(512, turned);
      // Half a level for the rounding, and what the plan's error in x and y is worth at most.
      const double slack = 2 * 1.2 * kMaxPlanErrorPx * 255;
      expect_rectified(model, make_picture(512, 512, PixelFormat::kGray8, content, random),
                       0.5 + slack);
      expect_rectified(model, make_picture(512, 512, PixelFormat::kGray16, content, random),
                       0.5 + 257 * slack);
      expect_rectified(model, make_picture(512, 512, PixelFormat::kGrayF32, content, random),
                       slack);
    }
  }
}

// A plane seen upright or turned about the picture's middle.
CameraModel turned_plane(int size, double angle_deg) {
  CameraModel model = patternd::test::tilted_plane(size, false);
  const double c = std::cos(angle_deg * kDegToRad);
  const double s = std::sin(angle_deg * kDegToRad);
  const double m = (size - 1) / 2.0;
  model.plane->homography = product(model.plane->homography,
                                    {c, s, m - c * m - s * m, -s, c, m + s * m - c * m, 0, 0, 1});
  return model;
}

TEST(GpuRectify, ReadsFloatsByPlainLoadsAsByTexture) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(12);
  SCOPED_TRACE("seed 12");
  const Image input = make_picture(512, 512, PixelFormat::kGrayF32, Content::kNoise, random);
  for (const double angle_deg : {0.0, 7.0, 30.0, 45.0, 90.0, 180.0}) {
    SCOPED_TRACE(angle_deg);
    const CameraModel model = turned_plane(512, angle_deg);
    const Image loaded = rectified_by_gpu(model, input);
    const Image looked_up = rectified_by_gpu(model, input, false);
    double worst = 0;
    for (int y = 0; y < 512; ++y)
      for (int x = 0; x < 512; ++x)
        worst = std::max(
            worst, std::abs(level_at(loaded.view(), x, y) - level_at(looked_up.view(), x, y)));
    // Positions differ by a float's rounding at up to 32 pixels from the base.
    EXPECT_LE(worst, 255 * 1e-5);
  }
}

TEST(GpuRectify, ReadsNothingBesideThePicture) {
  PATTERND_NEEDS_GPU();
  // Between the rows' ends and the next rows' beginnings, and around all, is what would show.
  constexpr int kSide = 300;
  constexpr int kMargin = 2;
  auto stream = Stream::create(device());
  auto around = DevicePicture::create(device(), kSide, kSide + 2 * kMargin, PixelFormat::kGrayF32);
  auto target = DevicePicture::create(device(), kSide, kSide, PixelFormat::kGrayF32);
  ASSERT_TRUE(stream && around && target);
  const std::size_t stride = static_cast<std::size_t>(around->view().stride_bytes);
  ASSERT_GT(stride, kSide * sizeof(float));
  // All bits set: not a number.
  ASSERT_TRUE(stream->fill(static_cast<DevicePointer>(around->view().address), 0xFF,
                           stride * (kSide + 2 * kMargin)));
  DeviceView view = around->view();
  view.address += kMargin * stride;
  view.height = kSide;
  auto input = Image::create(kSide, kSide, PixelFormat::kGrayF32);
  for (int y = 0; y < kSide; ++y) std::fill_n(input->row<float>(y), kSide, 7.0F);
  ASSERT_TRUE(upload(*stream, input->view(), view));
  for (const double angle_deg : {0.0, 180.0}) {
    // Upright or upside down, to the picture's last pixels.
    CameraModel model = sized({}, kSide, kSide);
    model.plane.emplace();
    model.plane->width = model.plane->height = kSide;
    const double c = angle_deg == 0 ? 1 : -1;
    const double shift = angle_deg == 0 ? 0 : kSide - 1;
    model.plane->homography = {c, 0, shift, 0, c, shift, 0, 0, 1};
    const auto plan = plan_rectification(model);
    ASSERT_TRUE(plan);
    auto texture = Texture::create(device(), view.address, kSide, kSide, stride, view.format, 1,
                                   FilterMode::kPoint);
    auto stage = RectifyStage::create(device(), *plan, view.format, 7, {});
    ASSERT_TRUE(texture && stage);
    ASSERT_TRUE(stage->enqueue(*stream, *texture, target->view(), view));
    auto out = Image::create(kSide, kSide, PixelFormat::kGrayF32);
    ASSERT_TRUE(download(*stream, target->view(), out->view()));
    ASSERT_TRUE(stream->wait());
    int wrong = 0;
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) wrong += level_at(out->view(), x, y) == 7.0 ? 0 : 1;
    EXPECT_EQ(wrong, 0);
  }
}

TEST(GpuRectify, TakesOddSizes) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(5);
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 5}, {33, 31}, {641, 479}}) {
    SCOPED_TRACE(width);
    const CameraModel model = sized({}, width, height);
    expect_rectified(
        model, make_picture(width, height, PixelFormat::kGray8, Content::kNoise, random), 0.501);
    expect_rectified(
        model, make_picture(width, height, PixelFormat::kGray16, Content::kNoise, random), 0.6);
  }
}

int different_pixels(const ImageView& a, const ImageView& b) {
  int different = 0;
  for (int y = 0; y < a.height; ++y)
    for (int x = 0; x < a.width; ++x) different += level_at(a, x, y) != level_at(b, x, y) ? 1 : 0;
  return different;
}

void expect_levels(const Stream& stream, const PyramidStage& stage, const Pyramid& expected) {
  for (int level = 1; level <= stage.levels(); ++level) {
    SCOPED_TRACE(level);
    const DeviceView& view = stage.level(level);
    auto out = Image::create(view.width, view.height, view.format);
    ASSERT_TRUE(download(stream, view, out->view()));
    ASSERT_TRUE(stream.wait());
    EXPECT_EQ(different_pixels(out->view(), expected.level(level)), 0);
  }
}

TEST(GpuPyramid, GivesTheCpusPyramidToTheBit) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(6);
  for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    for (const auto& [width, height] :
         {std::pair{1, 1}, {7, 5}, {64, 64}, {129, 66}, {641, 479}, {1024, 1000}}) {
      SCOPED_TRACE(width);
      const int levels = std::min(8, deepest_level(width, height));
      const Image input = make_picture(width, height, format, Content::kNoise, random);
      auto expected = Pyramid::create(width, height, format, levels);
      ASSERT_TRUE(expected);
      expected->build(input.view(), nullptr);
      auto stream = Stream::create(device());
      auto base = DevicePicture::create(device(), width, height, format);
      auto stage = PyramidStage::create(device(), width, height, format, levels);
      ASSERT_TRUE(stream && base && stage);
      ASSERT_TRUE(upload(*stream, input.view(), base->view()));
      ASSERT_TRUE(stage->enqueue(*stream, base->view(), 0));
      expect_levels(*stream, *stage, *expected);
    }
  }
}

}  // namespace
}  // namespace patternd::cuda::test
