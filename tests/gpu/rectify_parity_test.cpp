// Rectification and pyramid on the GPU against the CPU's double-precision reference and Pyramid.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "cuda/pyramid_stage.h"
#include "cuda/rectify_stage.h"
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

Image rectified_by_gpu(const CameraModel& model, const Image& input) {
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
  EXPECT_TRUE(stage->enqueue(*stream, *texture, target->view()));
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
