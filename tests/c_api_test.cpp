#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "pipeline/image_file.h"
#include "pipeline/patternd.h"
#include "tests/support/test_files.h"

namespace {

using ::testing::HasSubstr;

struct Pattern {
  patternd_pattern* handle = nullptr;
  ~Pattern() { patternd_pattern_free(handle); }
};
struct Matcher {
  patternd_matcher* handle = nullptr;
  ~Matcher() { patternd_matcher_free(handle); }
};
struct Rectifier {
  patternd_rectifier* handle = nullptr;
  ~Rectifier() { patternd_rectifier_free(handle); }
};

// A picture of smooth random texture with a stride of its own and canaries behind each row.
class Texture {
 public:
  static constexpr int kWidth = 240;
  static constexpr int kHeight = 180;
  static constexpr std::size_t kStride = 251;

  Texture() : pixels_(kStride * kHeight, 0xA5) {
    std::mt19937 random(11);
    std::vector<double> coarse(40 * 40);
    for (double& value : coarse) value = static_cast<double>(random() % 256);
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) {
        const double u = x / 7.0;
        const double v = y / 7.0;
        const auto i = static_cast<std::size_t>(v) * 40 + static_cast<std::size_t>(u);
        const double fx = u - std::floor(u);
        const double fy = v - std::floor(v);
        const double top = coarse[i] * (1 - fx) + coarse[i + 1] * fx;
        const double bottom = coarse[i + 40] * (1 - fx) + coarse[i + 41] * fx;
        pixels_[static_cast<std::size_t>(y) * kStride + static_cast<std::size_t>(x)] =
            static_cast<std::uint8_t>(top * (1 - fy) + bottom * fy);
      }
    }
  }
  [[nodiscard]] patternd_image image() const {
    return {pixels_.data(), kWidth, kHeight, kStride, PATTERND_GRAY8};
  }
  [[nodiscard]] patternd_image part(int x, int y, int width, int height) const {
    return {pixels_.data() + static_cast<std::size_t>(y) * kStride + x, width, height, kStride,
            PATTERND_GRAY8};
  }

 private:
  std::vector<std::uint8_t> pixels_;
};

TEST(CApi, TeachesAndFindsOnTheCallersMemory) {
  const Texture texture;
  const patternd_image scene = texture.image();
  const patternd_image part = texture.part(101, 62, 60, 50);
  Pattern pattern;
  ASSERT_EQ(patternd_pattern_teach("part", &part, nullptr, nullptr, &pattern.handle), PATTERND_OK)
      << patternd_last_error();
  int32_t width = 0;
  int32_t levels = -1;
  ASSERT_EQ(patternd_pattern_info(pattern.handle, &width, nullptr, &levels, nullptr), PATTERND_OK);
  EXPECT_EQ(width, 60);
  EXPECT_GE(levels, 0);
  Matcher matcher;
  ASSERT_EQ(patternd_matcher_create(Texture::kWidth, Texture::kHeight, PATTERND_GRAY8,
                                    &pattern.handle, nullptr, 1, 1, &matcher.handle),
            PATTERND_OK)
      << patternd_last_error();
  patternd_match matches[4];
  std::size_t count = 0;
  ASSERT_EQ(patternd_find(matcher.handle, &scene, matches, 4, &count), PATTERND_OK);
  ASSERT_EQ(count, 1U);
  EXPECT_NEAR(matches[0].x_px, 101 + 29.5, 0.02);
  EXPECT_NEAR(matches[0].y_px, 62 + 24.5, 0.02);
  EXPECT_GT(matches[0].score, 0.99);
  EXPECT_EQ(matches[0].pattern, 0);
}

TEST(CApi, CountsMatchesThatDoNotFitTheCallersArray) {
  const Texture texture;
  const patternd_image scene = texture.image();
  const patternd_image part = texture.part(20, 20, 60, 50);
  Pattern pattern;
  ASSERT_EQ(patternd_pattern_teach("part", &part, nullptr, nullptr, &pattern.handle), PATTERND_OK);
  Matcher matcher;
  ASSERT_EQ(patternd_matcher_create(Texture::kWidth, Texture::kHeight, PATTERND_GRAY8,
                                    &pattern.handle, nullptr, 1, 1, &matcher.handle),
            PATTERND_OK);
  std::size_t count = 0;
  ASSERT_EQ(patternd_find(matcher.handle, &scene, nullptr, 0, &count), PATTERND_OK);
  EXPECT_EQ(count, 1U);
}

TEST(CApi, NamesEveryKindOfWrongArgument) {
  const Texture texture;
  Pattern pattern;
  EXPECT_EQ(patternd_pattern_teach("a", nullptr, nullptr, nullptr, &pattern.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("picture is NULL"));
  patternd_image bad = texture.image();
  bad.stride_bytes = 10;
  EXPECT_EQ(patternd_pattern_teach("a", &bad, nullptr, nullptr, &pattern.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("stride is 10 bytes"));
  bad = texture.image();
  bad.stride_bytes = std::numeric_limits<std::size_t>::max() / 2 + 1;
  EXPECT_EQ(patternd_pattern_teach("a", &bad, nullptr, nullptr, &pattern.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr(" rows can be at most "));
  bad = texture.image();
  bad.format = 99;
  EXPECT_EQ(patternd_pattern_teach("a", &bad, nullptr, nullptr, &pattern.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("format is 99"));
  EXPECT_EQ(patternd_pattern_load("/nonexistent/a.yaml", &pattern.handle), PATTERND_NOT_FOUND);
  EXPECT_THAT(patternd_last_error(), HasSubstr("/nonexistent/a.yaml"));
  EXPECT_EQ(pattern.handle, nullptr);
  patternd_rectifier* rectifier = nullptr;
  EXPECT_EQ(patternd_rectifier_load("/nonexistent/c.yaml", PATTERND_GRAY8, &rectifier),
            PATTERND_NOT_FOUND);
  EXPECT_EQ(rectifier, nullptr);

  const patternd_image part = texture.part(20, 20, 60, 50);
  ASSERT_EQ(patternd_pattern_teach("a", &part, nullptr, nullptr, &pattern.handle), PATTERND_OK);
  EXPECT_STREQ(patternd_last_error(), "");
  Matcher matcher;
  EXPECT_EQ(patternd_matcher_create(40, 100, PATTERND_GRAY8, &pattern.handle, nullptr, 1, 1,
                                    &matcher.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("60x50"));
  EXPECT_THAT(patternd_last_error(), HasSubstr("40x100"));
  patternd_search_params params;
  std::memset(&params, 0, sizeof params);
  EXPECT_EQ(patternd_matcher_create(240, 180, PATTERND_GRAY8, &pattern.handle, &params, 1, 1,
                                    &matcher.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("patternd_search_params_init"));
  ASSERT_EQ(patternd_matcher_create(240, 180, PATTERND_GRAY8, &pattern.handle, nullptr, 1, 1,
                                    &matcher.handle),
            PATTERND_OK);
  std::size_t count = 7;
  EXPECT_EQ(patternd_find(matcher.handle, &part, nullptr, 0, &count), PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("image is 60x50 gray8; 240x180 gray8"));
  EXPECT_EQ(count, 7U);
}

TEST(CApi, TakesNoNameThatIsNone) {
  const Texture texture;
  const patternd_image part = texture.part(20, 20, 60, 50);
  for (const std::string& name : {std::string(), std::string("a\nb"), std::string("\xff"),
                                  std::string(65, 'a'), std::string("a\x7f")}) {
    Pattern pattern;
    EXPECT_EQ(patternd_pattern_teach(name.c_str(), &part, nullptr, nullptr, &pattern.handle),
              PATTERND_INVALID_ARGUMENT);
    EXPECT_THAT(patternd_last_error(),
                HasSubstr("; it must have no control characters and be 1 to 64 bytes of UTF-8"));
    EXPECT_EQ(pattern.handle, nullptr);
  }
  Pattern pattern;
  EXPECT_EQ(patternd_pattern_teach("M\xc3\xbctter", &part, nullptr, nullptr, &pattern.handle),
            PATTERND_OK);
  EXPECT_EQ(patternd_pattern_load("", &pattern.handle), PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("path is empty"));
  EXPECT_EQ(patternd_pattern_save(pattern.handle, ""), PATTERND_INVALID_ARGUMENT);
  patternd_rectifier* rectifier = nullptr;
  EXPECT_EQ(patternd_rectifier_load("", PATTERND_GRAY8, &rectifier), PATTERND_INVALID_ARGUMENT);
}

TEST(CApi, RefusesEveryKindOfWrongSearch) {
  const Texture texture;
  const patternd_image part = texture.part(20, 20, 60, 50);
  Pattern pattern;
  ASSERT_EQ(patternd_pattern_teach("a", &part, nullptr, nullptr, &pattern.handle), PATTERND_OK);
  const auto refused = [&](void (*spoil)(patternd_search_params&), const char* message) {
    patternd_search_params params;
    patternd_search_params_init(&params);
    spoil(params);
    Matcher matcher;
    EXPECT_EQ(patternd_matcher_create(240, 180, PATTERND_GRAY8, &pattern.handle, &params, 1, 1,
                                      &matcher.handle),
              PATTERND_INVALID_ARGUMENT);
    EXPECT_THAT(patternd_last_error(), HasSubstr(message));
    EXPECT_EQ(matcher.handle, nullptr);
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  static const double kBackwards[] = {20, 10};
  refused([](auto& p) { p.levels = -2; }, "params[0].levels is -2");
  refused([](auto& p) { p.levels = 30; }, "levels is 30");
  refused([](auto& p) { p.min_score = kNan; }, "min_score is nan");
  refused([](auto& p) { p.max_matches = -1; }, "max_matches is -1");
  refused([](auto& p) { p.scale_low = 0; }, "scale is [0, 1]");
  refused([](auto& p) { p.angle_step_deg = -1; }, "angle_step is -1");
  refused([](auto& p) { p.symmetry = 0; }, "symmetry is 0");
  refused([](auto& p) { p.roi[2] = -5; }, "with a width and height above 0");
  refused([](auto& p) { p.roi[2] = kNan; }, "with a width and height above 0");
  refused([](auto& p) { p.roi[2] = 5; }, "with a width and height above 0");
  refused(
      [](auto& p) {
        p.angle_ranges_deg = kBackwards;
        p.angle_range_count = 1;
      },
      "angle is [20, 10]");
  Matcher matcher;
  EXPECT_EQ(patternd_matcher_create(240, 180, PATTERND_GRAY8, &pattern.handle, nullptr, 0, 1,
                                    &matcher.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("pattern_count is 0"));
  for (const auto& [width, height, threads] :
       {std::array<int, 3>{-240, 180, 1}, {240, 0, 1}, {240, 40'000, 1}, {240, 180, -1}}) {
    EXPECT_EQ(patternd_matcher_create(width, height, PATTERND_GRAY8, &pattern.handle, nullptr, 1,
                                      threads, &matcher.handle),
              PATTERND_INVALID_ARGUMENT);
  }
}

TEST(CApi, RefusesMemoryThatCannotHoldThePicture) {
  const Texture texture;
  Pattern pattern;
  // 16-bit pixels at an odd address, and rows an odd number of bytes apart.
  patternd_image picture = texture.part(20, 20, 30, 50);
  picture.format = PATTERND_GRAY16;
  picture.stride_bytes = 252;
  const auto* bytes = static_cast<const std::uint8_t*>(texture.image().data);
  picture.data = bytes + (reinterpret_cast<std::uintptr_t>(bytes) % 2 == 0 ? 1 : 0);
  EXPECT_EQ(patternd_pattern_teach("a", &picture, nullptr, nullptr, &pattern.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("gray16 pixels must start at a multiple of 2"));
  picture.data = static_cast<const std::uint8_t*>(picture.data) + 1;
  picture.stride_bytes = 251;
  EXPECT_EQ(patternd_pattern_teach("a", &picture, nullptr, nullptr, &pattern.handle),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("and a multiple of 2"));
  for (const auto& [width, height] : {std::pair{-30, 50}, {30, 0}, {40'000, 50}}) {
    patternd_image wrong = texture.image();
    wrong.width = width;
    wrong.height = height;
    EXPECT_EQ(patternd_pattern_teach("a", &wrong, nullptr, nullptr, &pattern.handle),
              PATTERND_INVALID_ARGUMENT);
    EXPECT_THAT(patternd_last_error(), HasSubstr("both must be 1 to 32767"));
  }
}

TEST(CApi, KeepsInputAndOutputApart) {
  const patternd::test::TemporaryFolder folder;
  ASSERT_TRUE(patternd::write_file(folder.file("camera.yaml"),
                                   "image_size: [8, 4]\nlens: {model: none}\n"));
  Rectifier rectifier;
  ASSERT_EQ(patternd_rectifier_load(folder.file("camera.yaml").c_str(), PATTERND_GRAY8,
                                    &rectifier.handle),
            PATTERND_OK)
      << patternd_last_error();
  std::vector<std::int32_t> memory(64);
  auto* bytes = reinterpret_cast<std::uint8_t*>(memory.data());
  const patternd_image input = {bytes, 8, 4, 8, PATTERND_GRAY8};
  patternd_mutable_image output = {bytes + 31, 8, 4, 8, PATTERND_GRAY8};
  EXPECT_EQ(patternd_rectify(rectifier.handle, &input, &output), PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("output shares memory with input"));
  output.data = bytes + 32;
  EXPECT_EQ(patternd_rectify(rectifier.handle, &input, &output), PATTERND_OK);
  patternd_label_params params;
  patternd_label_params_init(&params);
  patternd_labeller* labeller = nullptr;
  ASSERT_EQ(patternd_labeller_create(8, 4, PATTERND_GRAY8, &params, 1, &labeller), PATTERND_OK);
  std::int64_t count = 0;
  EXPECT_EQ(patternd_label(labeller, &input, memory.data() + 7, 32, nullptr, 0, &count),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("labels share memory with the image"));
  EXPECT_EQ(patternd_label(labeller, &input, memory.data() + 8, 32, nullptr, 0, &count),
            PATTERND_OK);
  patternd_labeller_free(labeller);
  params.struct_size = 3;
  EXPECT_EQ(patternd_labeller_create(8, 4, PATTERND_GRAY8, &params, 1, &labeller),
            PATTERND_INVALID_ARGUMENT);
  EXPECT_THAT(patternd_last_error(), HasSubstr("struct_size is 3; fill it with patternd_label"));
}

TEST(CApi, LabelsIntoTheCallersMemory) {
  // Two components that touch at a corner, and one pixel.
  const std::uint8_t pixels[3][6] = {{0, 9, 9, 0, 0, 0}, {0, 0, 0, 9, 0, 0}, {8, 0, 0, 0, 0, 7}};
  const patternd_image image = {pixels, 6, 3, 6, PATTERND_GRAY8};
  patternd_label_params params;
  patternd_label_params_init(&params);
  params.threshold = 6;
  patternd_labeller* labeller = nullptr;
  ASSERT_EQ(PATTERND_OK, patternd_labeller_create(6, 3, PATTERND_GRAY8, &params, 1, &labeller));
  std::int32_t labels[3][7];
  std::memset(labels, 0x5A, sizeof labels);
  patternd_blob blobs[2];
  std::int64_t count = 0;
  ASSERT_EQ(PATTERND_OK,
            patternd_label(labeller, &image, labels[0], sizeof labels[0], blobs, 2, &count));
  EXPECT_EQ(3, count);
  const std::int32_t c = 0x5A5A5A5A;
  const std::int32_t expected[3][7] = {
      {0, 1, 1, 0, 0, 0, c}, {0, 0, 0, 1, 0, 0, c}, {2, 0, 0, 0, 0, 3, c}};
  EXPECT_EQ(0, std::memcmp(expected, labels, sizeof labels));
  EXPECT_EQ(3, blobs[0].area_px);
  EXPECT_EQ(2, blobs[0].x_px);
  EXPECT_EQ(9, blobs[0].peak);
  EXPECT_EQ(8, blobs[1].mean);
  EXPECT_EQ(1, blobs[1].touches_border);
  // Statistics alone, labels alone, the count alone.
  ASSERT_EQ(PATTERND_OK, patternd_label(labeller, &image, nullptr, 0, blobs, 1, &count));
  ASSERT_EQ(PATTERND_OK,
            patternd_label(labeller, &image, labels[0], sizeof labels[0], nullptr, 0, &count));
  EXPECT_EQ(PATTERND_INVALID_ARGUMENT,
            patternd_label(labeller, &image, labels[0], 22, nullptr, 0, &count));
  EXPECT_THAT(patternd_last_error(), HasSubstr("stride is 22 bytes"));
  patternd_labeller_free(labeller);
  params.connectivity = 5;
  EXPECT_EQ(PATTERND_INVALID_ARGUMENT,
            patternd_labeller_create(6, 3, PATTERND_GRAY8, &params, 1, &labeller));
  EXPECT_THAT(patternd_last_error(), HasSubstr("connectivity is 5; it must be 4 or 8"));
}

TEST(CApi, RectifiesByACalibrationFileAndTransformsPoints) {
  const patternd::test::TemporaryFolder folder;
  ASSERT_TRUE(patternd::write_file(folder.file("camera.yaml"),
                                   "image_size: [240, 180]\n"
                                   "lens: {model: none}\n"
                                   "plane: {homography: [1, 0, 10, 0, 1, 20, 0, 0, 1], "
                                   "width: 100, height: 80, mm_per_px: 0.5, origin_px: [0, 0]}\n"));
  Rectifier rectifier;
  ASSERT_EQ(patternd_rectifier_load(folder.file("camera.yaml").c_str(), PATTERND_GRAY8,
                                    &rectifier.handle),
            PATTERND_OK)
      << patternd_last_error();
  int32_t width = 0;
  int32_t height = 0;
  ASSERT_EQ(patternd_rectifier_size(rectifier.handle, nullptr, nullptr, &width, &height),
            PATTERND_OK);
  EXPECT_EQ(width, 100);
  EXPECT_EQ(height, 80);
  const Texture texture;
  const patternd_image input = texture.image();
  std::vector<std::uint8_t> out(112 * 80, 0xC3);
  const patternd_mutable_image output = {out.data(), 100, 80, 112, PATTERND_GRAY8};
  ASSERT_EQ(patternd_rectify(rectifier.handle, &input, &output), PATTERND_OK);
  const patternd_image shifted = texture.part(10, 20, 100, 80);
  for (int y = 0; y < 80; ++y) {
    const auto* expected = static_cast<const std::uint8_t*>(shifted.data) + y * Texture::kStride;
    ASSERT_EQ(std::memcmp(out.data() + y * 112, expected, 100), 0) << "row " << y;
    for (int x = 100; x < 112; ++x) ASSERT_EQ(out[static_cast<std::size_t>(y * 112 + x)], 0xC3);
  }
  double xy[] = {3, 4, 50.5, 60.25};
  ASSERT_EQ(patternd_points_to_input(rectifier.handle, xy, 2), PATTERND_OK);
  EXPECT_NEAR(xy[0], 13, 1e-9);
  EXPECT_NEAR(xy[3], 80.25, 1e-9);
  ASSERT_EQ(patternd_points_to_output(rectifier.handle, xy, 2), PATTERND_OK);
  EXPECT_NEAR(xy[0], 3, 1e-6);
  EXPECT_NEAR(xy[3], 60.25, 1e-6);
}

TEST(CApi, ServesThreadsWithHandlesOfTheirOwn) {
  const Texture texture;
  const patternd_image part = texture.part(101, 62, 60, 50);
  std::vector<std::thread> threads;
  std::vector<double> found(4, 0);
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] {
      const patternd_image scene = texture.image();
      Pattern pattern;
      Matcher matcher;
      patternd_match match;
      std::size_t count = 0;
      if (patternd_pattern_teach("a", &part, nullptr, nullptr, &pattern.handle) == PATTERND_OK &&
          patternd_matcher_create(Texture::kWidth, Texture::kHeight, PATTERND_GRAY8,
                                  &pattern.handle, nullptr, 1, 1, &matcher.handle) == PATTERND_OK &&
          patternd_find(matcher.handle, &scene, &match, 1, &count) == PATTERND_OK && count == 1) {
        found[i] = match.x_px;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const double x : found) EXPECT_EQ(x, found[0]);
  EXPECT_NEAR(found[0], 130.5, 0.02);
}

}  // namespace
