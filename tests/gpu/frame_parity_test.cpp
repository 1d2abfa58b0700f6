// Whole frames: GPU and CPU find the same.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "cuda/cuda_processor.h"
#include "cuda/memory.h"
#include "pipeline/match_angles.h"
#include "tests/gpu/gpu.h"
#include "tests/support/reference_rectify.h"

namespace patternd::cuda::test {
namespace {

constexpr double kPosePx = 0.02;
constexpr double kAngleDeg = 0.02;
constexpr double kScore = 1e-4;

ProcessorConfig config_for(const Image& image, const std::shared_ptr<const Pattern>& pattern,
                           const SearchParams& params) {
  ProcessorConfig config = config_of(raw_of(image));
  config.patterns.push_back({pattern, params});
  config.threads = 2;
  return config;
}

// A pose that refinement did not settle is known to a pixel (pipeline/refine.h, unsettled).
bool is_settled(const Match& match) { return match.x_std_px < 0.5; }

// Every match of `a` that is not within kScore of the threshold has its like in `b`. Returns how
// many were compared.
int expect_found(const std::vector<Match>& a, const std::vector<Match>& b, double min_score,
                 double period_deg) {
  int compared = 0;
  for (const Match& match : a) {
    // What refinement did not converge on (texture that happens to look alike) has no exact place,
    // so its score is less exact too.
    const bool exact = is_settled(match);
    if (match.score < min_score + (exact ? kScore : 0.01)) continue;
    const Match* like = nullptr;
    for (const Match& other : b) {
      if (other.pattern == match.pattern &&
          std::hypot(other.x_px - match.x_px, other.y_px - match.y_px) < 2)
        like = &other;
    }
    if (like == nullptr) {
      ADD_FAILURE() << "no like of " << match.x_px << ' ' << match.y_px << ' ' << match.angle_deg
                    << " score " << match.score;
      continue;
    }
    if (!exact || !is_settled(*like)) {
      EXPECT_NEAR(match.score, like->score, 0.01);
      continue;
    }
    EXPECT_NEAR(match.x_px, like->x_px, kPosePx);
    EXPECT_NEAR(match.y_px, like->y_px, kPosePx);
    EXPECT_NEAR(wrap_deg(match.angle_deg - like->angle_deg, period_deg), 0, kAngleDeg);
    EXPECT_NEAR(match.score, like->score, kScore);
    EXPECT_NEAR(match.scale, like->scale, 3e-4);
    EXPECT_EQ(match.inverted, like->inverted);
    EXPECT_NEAR(match.visible, like->visible, 0.01);
    ++compared;
  }
  return compared;
}

int expect_same(const ProcessorConfig& config, const Image& image, const std::string& memory) {
  auto cpu = make_cpu_processor(config);
  EXPECT_TRUE(cpu) << cpu.error().message;
  auto gpu = make_cuda_processor(device(), memory, config);
  EXPECT_TRUE(gpu) << gpu.error().message;
  if (!cpu || !gpu) return 0;
  FrameResult expected;
  FrameResult found;
  EXPECT_TRUE((*cpu)->process(raw_of(image), expected));
  // Twice: the second frame starts from what the first left.
  for (int i = 0; i < 2; ++i) {
    const auto done = (*gpu)->process(raw_of(image), found);
    EXPECT_TRUE(done) << done.error().message;
    if (!done) return 0;
  }
  const SearchParams& params = config.patterns[0].params;
  const double period = 360.0 / params.symmetry;
  const int compared = expect_found(expected.matches, found.matches, params.min_score, period);
  expect_found(found.matches, expected.matches, params.min_score, period);
  return compared;
}

// 300 random scenes, some a test, so that several processes can share them (GTEST_TOTAL_SHARDS).
constexpr unsigned kScenes = 300;
constexpr unsigned kScenesATest = 20;
class GpuRandomScenes : public ::testing::TestWithParam<unsigned> {};

TEST_P(GpuRandomScenes, ShowWhatTheCpuFinds) {
  PATTERND_NEEDS_GPU();
  int compared = 0;
  for (unsigned i = GetParam(); i < GetParam() + kScenesATest; ++i) {
    const unsigned seed = 300 + i;
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    SceneOptions options;
    options.width = 200 + static_cast<int>(random() % 300);
    options.height = 200 + static_cast<int>(random() % 200);
    options.pattern_width = 32 + static_cast<int>(random() % 64);
    options.pattern_height = 32 + static_cast<int>(random() % 64);
    options.format = i % 4 == 3 ? PixelFormat::kGray16 : PixelFormat::kGray8;
    options.masked = i % 5 == 1;
    const Scene scene = make_scene(options, random);
    compared += expect_same(config_for(scene.picture, scene.pattern, {}), scene.picture, "auto");
  }
  EXPECT_GT(compared, static_cast<int>(kScenesATest));
  RecordProperty("compared", compared);
  std::printf("compared %d matches\n", compared);
}
INSTANTIATE_TEST_SUITE_P(From, GpuRandomScenes, ::testing::Range(0U, kScenes, kScenesATest));

TEST(GpuFrame, FindsWhatTheCpuFindsInASmallPicture) {
  PATTERND_NEEDS_GPU();
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SceneOptions options = small_scene();
    options.masked = seed == 2;
    options.format = seed == 3 ? PixelFormat::kGray16 : PixelFormat::kGray8;
    const Scene scene = make_scene(options, random);
    EXPECT_GT(expect_same(config_for(scene.picture, scene.pattern, {}), scene.picture, "auto"), 0);
  }
}

TEST(GpuFrame, FindsWhatTheCpuFindsAtTheBorder) {
  PATTERND_NEEDS_GPU();
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SceneOptions options;
    options.width = 300;
    options.height = 240;
    options.at_border = true;
    const Scene scene = make_scene(options, random);
    SearchParams params;
    params.min_visible = 0.5;
    expect_same(config_for(scene.picture, scene.pattern, params), scene.picture, "auto");
  }
}

// The CPU takes seconds for each.
class GpuScaledScene : public ::testing::TestWithParam<unsigned> {};

TEST_P(GpuScaledScene, ShowsWhatTheCpuFinds) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(GetParam());
  SceneOptions options;
  options.low_scale = 0.8;
  options.high_scale = 1.3;
  const Scene scene = make_scene(options, random);
  SearchParams params;
  params.scale = {0.75, 1.35};
  expect_same(config_for(scene.picture, scene.pattern, params), scene.picture, "auto");
}
INSTANTIATE_TEST_SUITE_P(Seed, GpuScaledScene, ::testing::Range(1U, 7U));

TEST(GpuFrame, FindsWhatTheCpuFindsOfEitherPolarityAndInLimitedAngles) {
  PATTERND_NEEDS_GPU();
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    SceneOptions options;
    options.inverted = true;
    const Scene scene = make_scene(options, random);
    SearchParams params;
    params.polarity = Polarity::kAny;
    expect_same(config_for(scene.picture, scene.pattern, params), scene.picture, "auto");
    params.angle_deg = {{-60, 60}, {150, 230}};
    expect_same(config_for(scene.picture, scene.pattern, params), scene.picture, "auto");
  }
}

TEST(GpuFrame, FindsNothingInFlatAndSaturatedPictures) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(9);
  const Scene scene = make_scene({}, random);
  for (const Content content :
       {Content::kBlack, Content::kWhite, Content::kOnePixel, Content::kStripes, Content::kNoise}) {
    SCOPED_TRACE(name_of(content));
    const Image flat = make_picture(641, 479, PixelFormat::kGray8, content, random);
    expect_same(config_for(flat, scene.pattern, {}), flat, "auto");
  }
}

class GpuFrameInMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(GpuFrameInMemory, FindsWhatTheCpuFindsBehindACalibration) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(12);
  SceneOptions options;
  options.width = options.height = 512;
  const Scene scene = make_scene(options, random);
  SearchParams params;
  params.min_score = 0.5;
  params.scale = {0.8, 1.2};
  const CameraModel model = patternd::test::tilted_plane(512, false);
  const auto pattern = cut_from_rectified(std::as_const(scene.picture).view(), model);
  ProcessorConfig config = config_for(scene.picture, pattern, params);
  config.calibration = model;
  EXPECT_GT(expect_same(config, scene.picture, GetParam()), 0);
}
INSTANTIATE_TEST_SUITE_P(Mode, GpuFrameInMemory, ::testing::Values("copy", "mapped", "managed"));

// Read in place where it is page-locked, copied where it is not.
TEST(GpuFrame, FindsTheSameWhereverTheFrameLies) {
  PATTERND_NEEDS_GPU();
  for (const PixelFormat format : {PixelFormat::kGray8, PixelFormat::kGray16}) {
    SCOPED_TRACE(patternd::name_of(format));
    std::mt19937 random(31);
    SceneOptions options;
    options.width = 641;
    options.height = 479;
    options.format = format;
    const Scene scene = make_scene(options, random);
    const RawImageView frame = raw_of(scene.picture);
    PageLockedFrameAllocator memory(device());
    const auto place = memory.allocate(frame.size_bytes);
    ASSERT_TRUE(place) << place.error().message;
    std::copy_n(frame.data, frame.size_bytes, *place);
    RawImageView page_locked = frame;
    page_locked.data = *place;
    auto gpu = make_cuda_processor(device(), "auto", config_for(scene.picture, scene.pattern, {}));
    ASSERT_TRUE(gpu) << gpu.error().message;
    FrameResult copied;
    FrameResult in_place;
    ASSERT_TRUE((*gpu)->process(frame, copied));
    ASSERT_TRUE((*gpu)->process(page_locked, in_place));
    EXPECT_FALSE(copied.matches.empty());
    ASSERT_EQ(copied.matches.size(), in_place.matches.size());
    for (std::size_t i = 0; i < copied.matches.size(); ++i) {
      EXPECT_EQ(copied.matches[i].x_px, in_place.matches[i].x_px);
      EXPECT_EQ(copied.matches[i].y_px, in_place.matches[i].y_px);
      EXPECT_EQ(copied.matches[i].score, in_place.matches[i].score);
    }
  }
}

TEST(GpuFrame, PassesItsSelfTest) {
  PATTERND_NEEDS_GPU();
  for (const char* memory : {"copy", "mapped", "managed"}) {
    const auto passed = self_test(device(), memory);
    EXPECT_TRUE(passed) << memory << ": " << passed.error().message;
  }
}

}  // namespace
}  // namespace patternd::cuda::test
