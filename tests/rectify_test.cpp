// Rectification against the double-precision reference, and the vector loops against plain C++.
#include "pipeline/rectify.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <random>
#include <vector>

#include "pipeline/rectify_job.h"
#include "pipeline/rectify_map.h"
#include "tests/support/reference_rectify.h"

namespace patternd {
namespace {

using ::testing::HasSubstr;

enum class Content { kNoise, kZero, kFull, kStripes, kOnePixel };
constexpr Content kContents[] = {Content::kNoise, Content::kZero, Content::kFull, Content::kStripes,
                                 Content::kOnePixel};

double level(Content content, int x, int y, std::mt19937& random) {
  switch (content) {
    case Content::kNoise:
      return std::uniform_real_distribution<double>(0, 1)(random);
    case Content::kZero:
      return 0;
    case Content::kFull:
      return 1;
    case Content::kStripes:
      return (x + y) % 2;
    case Content::kOnePixel:
      return x == 3 && y == 2 ? 1 : 0;
  }
  return 0;
}

Image make_picture(int width, int height, PixelFormat format, Content content, unsigned seed) {
  std::mt19937 random(seed);
  Image image = Image::create(width, height, format).value();
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double v = level(content, x, y, random);
      if (format == PixelFormat::kGray8) {
        image.row<std::uint8_t>(y)[x] = static_cast<std::uint8_t>(std::lround(v * 255));
      } else if (format == PixelFormat::kGray16) {
        image.row<std::uint16_t>(y)[x] = static_cast<std::uint16_t>(std::lround(v * 65535));
      } else {
        image.row<float>(y)[x] = static_cast<float>(v);
      }
    }
  }
  return image;
}

double value_at(const ImageView& image, int x, int y) {
  if (image.format == PixelFormat::kGray8) return image.row<std::uint8_t>(y)[x];
  if (image.format == PixelFormat::kGray16) return image.row<std::uint16_t>(y)[x];
  return static_cast<double>(image.row<float>(y)[x]);
}

// The same pixels in memory of exactly their size, so that a sanitizer sees any read beyond.
struct ExactPicture {
  explicit ExactPicture(const ImageView& picture)
      : row_bytes(static_cast<std::size_t>(picture.width) * bytes_per_pixel(picture.format)),
        bytes(row_bytes * static_cast<std::size_t>(picture.height)),
        view{bytes.data(), picture.width, picture.height, row_bytes, picture.format} {
    for (int y = 0; y < picture.height; ++y) {
      std::memcpy(bytes.data() + static_cast<std::size_t>(y) * row_bytes, picture.row_bytes(y),
                  row_bytes);
    }
  }
  std::size_t row_bytes;
  std::vector<std::uint8_t> bytes;
  ImageView view;
};

struct NamedModel {
  std::string name;
  CameraModel model;
};

CameraModel plain_model(int width, int height) {
  CameraModel model;
  model.image_width = width;
  model.image_height = height;
  return model;
}

// A plane seen turned by an angle and scaled about the middle, then through a brown_conrady lens.
CameraModel turned(double angle_deg, double scale, int in_width, int in_height, int out_width,
                   int out_height) {
  CameraModel model = plain_model(in_width, in_height);
  model.lens.model = LensModel::kBrownConrady;
  const double f = std::max(in_width, in_height);
  model.lens.camera_matrix = {f, 0, in_width * 0.51, 0, f, in_height * 0.48, 0, 0, 1};
  model.lens.distortion = {-0.12, 0.05, 0.002, -0.001, 0, 0, 0, 0};
  const double c = std::cos(angle_deg * std::acos(-1.0) / 180) * scale;
  const double s = std::sin(angle_deg * std::acos(-1.0) / 180) * scale;
  const double ox = (out_width - 1) / 2.0;
  const double oy = (out_height - 1) / 2.0;
  Plane plane;
  plane.homography = {c,
                      -s,
                      in_width / 2.0 - c * ox + s * oy,
                      s,
                      c,
                      in_height / 2.0 - s * ox - c * oy,
                      0,
                      1e-4 / scale,
                      1};
  plane.width = out_width;
  plane.height = out_height;
  model.plane = plane;
  return model;
}

std::vector<NamedModel> models() {
  std::vector<NamedModel> list = {{"identity 1x1", plain_model(1, 1)},
                                  {"identity 7x5", plain_model(7, 5)},
                                  {"identity 1x40", plain_model(1, 40)},
                                  {"identity 40x1", plain_model(40, 1)},
                                  {"identity 15x9", plain_model(15, 9)},
                                  {"identity 33x17", plain_model(33, 17)},
                                  {"tilted", test::tilted_plane(320, false)},
                                  {"tilted and turned", test::tilted_plane(320, true)},
                                  {"tilted, odd size", test::tilted_plane(163, false)}};
  for (const double angle : {0.0, 3.0, 12.0, 45.0, 90.0, 135.0, 180.0, -90.0, -20.0}) {
    for (const double scale : {0.3, 0.9, 1.4, 3.0}) {
      list.push_back({"turned by " + std::to_string(angle) + ", scale " + std::to_string(scale),
                      turned(angle, scale, 161, 121, 133, 101)});
    }
  }
  CameraModel fisheye = turned(10, 0.8, 200, 160, 180, 140);
  fisheye.lens.model = LensModel::kFisheye;
  fisheye.lens.camera_matrix = {90, 0, 100, 0, 90, 80, 0, 0, 1};
  fisheye.lens.distortion = {0.02, -0.01, 0.003, -0.0006, 0, 0, 0, 0};
  list.push_back({"fisheye", fisheye});
  CameraModel unit = plain_model(180, 140);
  unit.lens.model = LensModel::kUnitPolynomial;
  unit.lens.distortion = {0.04, 0.01, 0.001, -0.002, 0.002, 0, 0, 0};
  Plane plane;
  plane.homography = {0.9, 0.05, 0.02, -0.03, 0.7, 0.01, 0.02, 0.2, 1};
  plane.width = 121;
  plane.height = 97;
  unit.plane = plane;
  list.push_back({"unit_polynomial", unit});
  return list;
}

struct Deviation {
  double most = 0;
  double mean = 0;
  int inside = 0;
};

// Compares with the reference, inside and outside; sources within a billionth of the outline may
// fall on either side.
Deviation compare_with_reference(const CameraModel& model, const ImageView& input,
                                 const ImageView& output, const ImageView& valid) {
  Deviation deviation;
  for (int y = 0; y < output.height; ++y) {
    for (int x = 0; x < output.width; ++x) {
      const auto source = test::reference_source(model, x, y);
      const double margin = source ? std::min({source->x, source->y, input.width - 1 - source->x,
                                               input.height - 1 - source->y})
                                   : -1;
      const bool is_valid = valid.row<std::uint8_t>(y)[x] == 255;
      if (std::abs(margin) > 1e-8) {
        EXPECT_EQ(is_valid, margin > 0) << x << ", " << y;
      }
      if (!is_valid) {
        EXPECT_EQ(value_at(output, x, y), model.border) << x << ", " << y;
        continue;
      }
      const Point2 clamped{std::clamp(source->x, 0.0, input.width - 1.0),
                           std::clamp(source->y, 0.0, input.height - 1.0)};
      double expected = test::bilinear(input, clamped.x, clamped.y);
      if (input.format != PixelFormat::kGrayF32) expected = std::floor(expected + 0.5);
      const double off = std::abs(value_at(output, x, y) - expected);
      deviation.most = std::max(deviation.most, off);
      deviation.mean += off;
      ++deviation.inside;
    }
  }
  if (deviation.inside > 0) deviation.mean /= deviation.inside;
  return deviation;
}

void expect_near_reference(const NamedModel& named, PixelFormat format, Content content) {
  CameraModel model = named.model;
  model.border = 9;
  const Image input = make_picture(model.image_width, model.image_height, format, content, 5);
  const Rectifier rectifier = Rectifier::create(model, format).value();
  Image output = Image::create(model.output_width(), model.output_height(), format).value();
  rectifier.process(input.view(), output.view(), nullptr);
  const Deviation deviation =
      compare_with_reference(model, input.view(), output.view(), rectifier.valid_mask());
  const double most = format == PixelFormat::kGrayF32  ? 2.5e-5
                      : format == PixelFormat::kGray16 ? 2
                                                       : 1;
  const double mean = format == PixelFormat::kGrayF32 ? 2e-6 : 0.1;
  EXPECT_LE(deviation.most, most);
  EXPECT_LE(deviation.mean, mean);
}

TEST(Rectifier, AgreesWithTheDoublePrecisionReferenceIn8Bit) {
  for (const NamedModel& named : models()) {
    for (const Content content : kContents) {
      SCOPED_TRACE(named.name + ", content " + std::to_string(static_cast<int>(content)));
      expect_near_reference(named, PixelFormat::kGray8, content);
    }
  }
}

TEST(Rectifier, AgreesWithTheDoublePrecisionReferenceIn16BitAndFloat) {
  for (const NamedModel& named : models()) {
    for (const PixelFormat format : {PixelFormat::kGray16, PixelFormat::kGrayF32}) {
      SCOPED_TRACE(named.name + ", " + name_of(format));
      expect_near_reference(named, format, Content::kNoise);
      expect_near_reference(named, format, Content::kStripes);
    }
  }
}

TEST(Rectifier, CopiesThePictureWhereNothingIsToBeTakenOut) {
  for (const PixelFormat format :
       {PixelFormat::kGray8, PixelFormat::kGray16, PixelFormat::kGrayF32}) {
    CameraModel model = plain_model(61, 43);
    model.lens.model = LensModel::kBrownConrady;  // without coefficients: x·fx/fx rounds
    model.lens.camera_matrix = {777.7, 0, 31.3, 0, 655.1, 20.7, 0, 0, 1};
    const Image input = make_picture(61, 43, format, Content::kNoise, 3);
    const Rectifier rectifier = Rectifier::create(model, format).value();
    EXPECT_TRUE(rectifier.all_valid());
    Image output = Image::create(61, 43, format).value();
    rectifier.process(input.view(), output.view(), nullptr);
    for (int y = 0; y < 43; ++y) {
      for (int x = 0; x < 61; ++x) {
        ASSERT_NEAR(value_at(output.view(), x, y), value_at(input.view(), x, y),
                    format == PixelFormat::kGrayF32 ? 2e-5 : 0)
            << x << ", " << y;
      }
    }
  }
}

void expect_same_bits_as_plain_code() {
  for (const NamedModel& named : models()) {
    for (const PixelFormat format :
         {PixelFormat::kGray8, PixelFormat::kGray16, PixelFormat::kGrayF32}) {
      SCOPED_TRACE(named.name + ", " + name_of(format));
      const RectifyMap map = make_rectify_map(named.model, format).value();
      const ExactPicture input(
          make_picture(map.input_width, map.input_height, format, Content::kNoise, 8).view());
      Image fast = Image::create(map.output_width, map.output_height, format).value();
      Image plain = Image::create(map.output_width, map.output_height, format).value();
      for (std::size_t job = 0; job < map.jobs.size(); ++job) {
        rectify_job(map, job, input.view, fast.view());
        rectify_job_scalar(map, job, input.view, plain.view());
      }
      const std::size_t row_bytes =
          static_cast<std::size_t>(map.output_width) * bytes_per_pixel(format);
      for (int y = 0; y < map.output_height; ++y) {
        ASSERT_EQ(std::memcmp(fast.view().row_bytes(y), plain.view().row_bytes(y), row_bytes), 0)
            << "row " << y;
      }
    }
  }
}

TEST(Rectifier, ComputesTheSameBitsByVectorsAndByPlainCode) { expect_same_bits_as_plain_code(); }

#if HWY_MAJOR >= 1
TEST(Rectifier, ComputesTheSameBitsByEveryInstructionSetOfThisProcessor) {
  const auto all = hwy::SupportedTargets();
  for (auto rest = all; rest != 0; rest &= rest - 1) {
    const auto target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    expect_same_bits_as_plain_code();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}
#endif

TEST(Rectifier, GivesTheSamePictureOnAnyNumberOfThreads) {
  const CameraModel model = test::tilted_plane(256, true);
  const Image input = make_picture(256, 256, PixelFormat::kGray8, Content::kNoise, 4);
  const Rectifier rectifier = Rectifier::create(model, PixelFormat::kGray8).value();
  Image alone = Image::create(256, 256, PixelFormat::kGray8).value();
  rectifier.process(input.view(), alone.view(), nullptr);
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    Image output = Image::create(256, 256, PixelFormat::kGray8).value();
    output.fill_bytes(77);
    rectifier.process(input.view(), output.view(), &pool);
    for (int y = 0; y < 256; ++y) {
      ASSERT_EQ(std::memcmp(output.row<std::uint8_t>(y), alone.row<std::uint8_t>(y), 256), 0);
    }
  }
}

TEST(Rectifier, ReadsAndWritesNothingBesideThePictures) {
  for (const PixelFormat format :
       {PixelFormat::kGray8, PixelFormat::kGray16, PixelFormat::kGrayF32}) {
    const CameraModel model = turned(20, 0.9, 97, 61, 83, 59);
    const std::size_t size = bytes_per_pixel(format);
    const Image picture = make_picture(97, 61, format, Content::kNoise, 6);
    const ExactPicture input(picture.view());  // and the output amid canaries
    Image frame = Image::create(83 + 16, 59 + 2, format).value();
    frame.fill_bytes(0xA5);
    Rectifier::create(model, format)
        .value()
        .process(input.view, frame.view().crop(8, 1, 83, 59), nullptr);
    for (int y = 0; y < 61; ++y) {
      for (std::size_t b = 0; b < 99 * size; ++b) {
        const bool inside = y >= 1 && y < 60 && b >= 8 * size && b < 91 * size;
        if (inside) continue;
        ASSERT_EQ(frame.view().row_bytes(y)[b], 0xA5);
      }
    }
  }
}

TEST(Rectifier, RefusesABorderThatTheFormatCannotHold) {
  CameraModel model = plain_model(20, 20);
  model.border = 300;
  const auto rectifier = Rectifier::create(model, PixelFormat::kGray8);
  ASSERT_FALSE(rectifier);
  EXPECT_THAT(rectifier.error().message, HasSubstr("0 to 255 with gray8 pictures"));
  EXPECT_TRUE(Rectifier::create(model, PixelFormat::kGray16));
  EXPECT_FALSE(Rectifier::create(model, PixelFormat::kRgb8));
}

TEST(RectifyMap, UsesShuffledWindowsForNearlyAllOfATiltedPlane) {
  const RectifyMap map =
      make_rectify_map(test::tilted_plane(1024, false), PixelFormat::kGray8).value();
  const std::size_t runs = map.window_runs.size() + map.cubic_runs.size();
  EXPECT_GT(static_cast<double>(map.window_runs.size()), 0.98 * static_cast<double>(runs));
  EXPECT_LT(map.size_bytes(), std::size_t{1024} * 1024 * 3);
}

}  // namespace
}  // namespace patternd
