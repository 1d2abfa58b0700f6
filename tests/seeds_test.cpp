// The study of the seed documents, as far as it goes without a GPU: its arithmetic, its tables, its
// CPU versions, and that it shows no time for a result that is wrong.
#include "cuda/study/seeds.h"

#include <cmath>
#include <dlfcn.h>
#include <gmock/gmock.h>

#include "cuda/study/seeds_metrics.h"
#include "cuda/study/seeds_rectify_scene.h"
#include "cuda/study/seeds_search_scene.h"
#include "pipeline/row_major.h"
#include "tests/support/reference_rectify.h"

namespace patternd::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(SeedMetrics, WasteWhatALastWarpLeavesIdle) {
  EXPECT_DOUBLE_EQ(wasted_share(33, 32), 31.0 / 64);
  EXPECT_DOUBLE_EQ(wasted_share(1, 32), 31.0 / 32);
  EXPECT_DOUBLE_EQ(wasted_share(100, 32), 28.0 / 128);
  // Where the thesis's formula does not hold.
  EXPECT_EQ(wasted_share(32, 32), 0);
  EXPECT_EQ(wasted_share(1024, 32), 0);
}

TEST(SeedMetrics, FollowTheThesissEquations) {
  EXPECT_DOUBLE_EQ(speed_up(1000, 10), 100);
  EXPECT_DOUBLE_EQ(efficiency(1000, 10, 200), 0.5);
  EXPECT_DOUBLE_EQ(cost_ms(1000, 192), 192);
  // The thesis's K1: 1024 x 1024 floats read and written in 1.8 ms is 0.4 of a copy's 11.7 GB/s.
  const double speed = access_speed_gb_s(1024, 1024, 4, 2, 1800);
  EXPECT_NEAR(speed, 4.66, 0.01);
  EXPECT_NEAR(speed / 11.7, 0.4, 0.005);
}

TEST(SeedMetrics, KnowTheUnitsOfAMultiprocessor) {
  EXPECT_EQ(cores_per_multiprocessor(3, 2), 192);   // Tegra K1
  EXPECT_EQ(cores_per_multiprocessor(5, 3), 128);   // Nano
  EXPECT_EQ(cores_per_multiprocessor(7, 2), 64);    // Xavier
  EXPECT_EQ(cores_per_multiprocessor(8, 0), 64);    // A100
  EXPECT_EQ(cores_per_multiprocessor(8, 7), 128);   // Orin
  EXPECT_EQ(cores_per_multiprocessor(9, 0), 128);   // H200
  EXPECT_EQ(cores_per_multiprocessor(11, 0), 128);  // Thor
}

SeedTable small_table() {
  SeedTable table("made", "A made table", {{"median_us", "us", 1}, {"share", "share", 3}});
  table.add("first", {12.34, 0.5});
  table.add("second, without a share", {7.0});
  return table;
}

TEST(SeedTable, LinesItsColumnsUp) {
  EXPECT_EQ(small_table().text(),
            "A made table\n"
            "made                       us  share\n"
            "first                    12.3  0.500\n"
            "second, without a share   7.0      -\n");
}

TEST(SeedTable, IsOneObjectALineForPrograms) {
  EXPECT_EQ(small_table().json(),
            "{\"bench\":\"seeds\",\"table\":\"made\",\"what\":\"first\",\"median_us\":12.34,"
            "\"share\":0.5}\n"
            "{\"bench\":\"seeds\",\"table\":\"made\",\"what\":\"second, without a share\","
            "\"median_us\":7.0}\n");
}

// T19: a picture so small that the answer is plain by hand.
TEST(SeedReference, ScoresATinyPictureAsByHand) {
  Image picture = std::move(*Image::create(5, 4, PixelFormat::kGrayF32));
  picture.fill_bytes(0);
  // The pattern is -4 to 4, row by row; the picture holds it as 0.1 to 0.9, its middle at (2, 1).
  Image pattern = std::move(*Image::create(3, 3, PixelFormat::kGrayF32));
  float value = -4;
  float energy = 0;
  for (int y = 0; y < 3; ++y) {
    for (int x = 0; x < 3; ++x, value += 1) {
      pattern.row<float>(y)[x] = value;
      picture.row<float>(y)[x + 1] = 0.5F + 0.1F * value;
      energy += value * value;
    }
  }
  const StudyTurn upright{1, 0, 1, 1};
  EXPECT_FLOAT_EQ(energy, 60);
  EXPECT_NEAR(ncc_reference(picture.view(), pattern.view(), energy, upright, 2, 1), 1, 1e-6);
  // Half a turn negates this pattern.
  EXPECT_NEAR(ncc_reference(picture.view(), pattern.view(), energy, {-1, 0, 1, 1}, 2, 1), -1, 1e-6);
  // Samples outside, and a window without contrast.
  EXPECT_EQ(ncc_reference(picture.view(), pattern.view(), energy, upright, 0, 1), 0);
  picture.fill_bytes(0);
  EXPECT_EQ(ncc_reference(picture.view(), pattern.view(), energy, upright, 2, 1), 0);
}

TEST(SeedReference, KeepsWhatNoNeighbourBeats) {
  const std::vector<float> scores = {1, 2, 1, 0,  //
                                     1, 1, 1, 3,  //
                                     5, 1, 1, 1};
  EXPECT_EQ(suppress_reference(scores, 4, 3), (std::vector<float>{0, 2, 0, 0,  //
                                                                  0, 0, 0, 3,  //
                                                                  5, 0, 0, 0}));
  const auto best = best_candidates({0, 2, 0, 0, 0, 0, 0, 3, 5, 0, 0, 0}, 4, 3, 2);
  ASSERT_EQ(best.size(), 2U);
  EXPECT_EQ(best[0].score, 5);
  EXPECT_EQ(best[0].x, 0);
  EXPECT_EQ(best[0].y, 2);
  EXPECT_EQ(best[1].x, 3);
  EXPECT_EQ(best[1].y, 1);
}

TEST(SeedReference, TracesAnInstanceDownToItsPlace) {
  const SearchScene scene = make_search_scene(512);
  const SeedInstance& instance = scene.instances[2];
  const auto coarse = [](double at) { return static_cast<int>(std::lround((at + 0.5) / 8 - 0.5)); };
  std::vector<StudyCandidate> candidates = {
      {coarse(instance.x), coarse(instance.y), instance.angle, 1, 0, 0}};
  for (int level = kSeedLevels - 1; level >= 0; --level) {
    const auto at = static_cast<std::size_t>(level);
    trace_reference(scene.pictures[at].view(), scene.patterns[at].view(), scene.energies[at],
                    seed_turns(scene.patterns[at]), 0.3F, candidates);
  }
  EXPECT_EQ(candidates[0].alive, 1);
  EXPECT_GT(candidates[0].score, 0.9F);
  EXPECT_NEAR(candidates[0].x, instance.x, 1);
  EXPECT_NEAR(candidates[0].y, instance.y, 1);
}

TEST(SeedReference, RectifiesAsTheIndependentReference) {
  for (const bool turned : {false, true}) {
    const RectifyScene scene = make_rectify_scene(64, turned);
    const CameraModel model = patternd::test::tilted_plane(64, turned);
    int compared = 0;
    for (int y = 0; y < 64; ++y) {
      for (int x = 0; x < 64; ++x) {
        const float expected = scene.expected[row_major(y, x, 64)];
        if (expected == RectifyScene::kUndecided) continue;
        const auto wanted = patternd::test::reference_pixel(model, scene.picture.view(), x, y);
        ASSERT_EQ(wanted.has_value(), expected != RectifyScene::kOutside) << x << ' ' << y;
        if (wanted) {
          EXPECT_NEAR(*wanted, static_cast<double>(expected), 1e-6);
          ++compared;
        }
      }
    }
    EXPECT_GT(compared, 1000);
  }
}

// A driver whose kernels do nothing, and whose calls can be made to fail.
class SeedsOnAFakeDriver : public ::testing::Test {
 protected:
  void SetUp() override {
    if (study_images().empty()) GTEST_SKIP() << "this build has no device images";
    library_ = dlopen(PATTERND_FAKE_FAILING, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    reset(0);
    options_.size = 512;
    options_.repetitions = 1;
  }
  void TearDown() override {
    if (library_ != nullptr) dlclose(library_);
  }
  void reset(int fail_at) {
    reinterpret_cast<void (*)(int, Status, bool)>(dlsym(library_, "fake_reset"))(fail_at, 999,
                                                                                 true);
  }
  SeedOptions options_;

 private:
  void* library_ = nullptr;
};

TEST_F(SeedsOnAFakeDriver, ShowsNoTimeForAKernelThatDoesNothing) {
  const auto bench = SeedBench::open(options_, PATTERND_FAKE_FAILING);
  ASSERT_TRUE(bench) << bench.error().message;
  EXPECT_THAT(bench->description(), HasSubstr("2 multiprocessors of 128 units"));
  for (const SeedStudy& study : kSeedStudies) {
    const auto table = run_seed_study(study, *bench);
    ASSERT_FALSE(table) << table->text();
    EXPECT_EQ(table.error().code, ErrorCode::kInternal) << table.error().message;
    EXPECT_THAT(table.error().message, StartsWith(std::string(study.name) + ": "));
  }
}

TEST_F(SeedsOnAFakeDriver, ReportsADeviceThatIsLost) {
  for (const int call : {1, 5, 10}) {
    reset(call);
    EXPECT_FALSE(SeedBench::open(options_, PATTERND_FAKE_FAILING)) << call;
  }
  reset(0);
  const auto bench = SeedBench::open(options_, PATTERND_FAKE_FAILING);
  ASSERT_TRUE(bench);
  for (const int call : {1, 5, 9}) {
    reset(call);
    const auto table = run_seed_study({"transfers", study_transfers}, *bench);
    ASSERT_FALSE(table);
    EXPECT_EQ(table.error().code, ErrorCode::kDevice) << table.error().message;
  }
  reset(0);
}

TEST(Seeds, SayThatThereIsNoDriver) {
  const auto bench = SeedBench::open({}, "libpatternd-no-such-driver.so.1");
  ASSERT_FALSE(bench);
  EXPECT_THAT(bench.error().message, StartsWith("no NVIDIA driver: "));
}

}  // namespace
}  // namespace patternd::cuda
