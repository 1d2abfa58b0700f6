// The coarse search alone, by matrix units and in single precision: both give the CPU's finds, to
// the last bit of their scores.
#include <gtest/gtest.h>
#include <optional>

#include "cuda/coarse_stage.h"
#include "cuda/gpu_matcher_plan.h"
#include "cuda/pyramid_stage.h"
#include "pipeline/match_choice.h"
#include "pipeline/valid_area.h"
#include "tests/gpu/gpu.h"

namespace patternd::cuda::test {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}
void require(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().message);
}

struct Find {
  double x, y, angle_deg, scale, score;
  int inverted;
};
bool operator==(const Find& a, const Find& b) {
  return a.x == b.x && a.y == b.y && a.angle_deg == b.angle_deg && a.scale == b.scale &&
         a.score == b.score && a.inverted == b.inverted;
}
std::ostream& operator<<(std::ostream& out, const Find& find) {
  return out << find.x << ' ' << find.y << ' ' << find.angle_deg << ' ' << find.scale << ' '
             << find.score << ' ' << find.inverted;
}

// Of a configuration with one pattern, in a picture.
struct Search {
  MatcherConfig config;
  Image picture;
};

// What a GPU finds in the second of two frames, which starts from what the first left; and the
// level that it searched.
struct Found {
  std::vector<Find> finds;
  Image level;
  bool by_matrix_units = false;
};

template <class T>
std::vector<T> downloaded(const Stream& stream, Address from, std::size_t count) {
  std::vector<T> out(count);
  const Driver& api = stream.device()->driver();
  require(api.check(api.memcpy_d2h_async(out.data(), static_cast<DevicePointer>(from),
                                         count * sizeof(T), stream.get()),
                    "cuMemcpyDtoHAsync"));
  require(stream.wait());
  return out;
}

Found search_on(const std::shared_ptr<const Device>& gpu, const Search& search) {
  require(gpu->make_current());
  const auto plan = std::make_shared<const GpuMatcherPlan>(
      value_of(GpuMatcherPlan::create(gpu, search.config, nullptr)));
  const ImageView view = search.picture.view();
  const auto base =
      value_of(DevicePicture::create(gpu, view.width, view.height, search.config.format));
  const auto pyramid = value_of(
      PyramidStage::create(gpu, view.width, view.height, search.config.format, plan->levels));
  std::vector<DeviceView> levels{base.view()};
  for (int level = 1; level <= plan->levels; ++level) levels.push_back(pyramid.level(level));
  const auto clock = value_of(StageClock::create(gpu, 1));
  const auto coarse = value_of(CoarseStage::create(gpu, {plan, &plan->coarse}, levels, clock));
  const auto stream = value_of(Stream::create(gpu));
  require(upload(stream, view, base.view()));
  for (int frame = 0; frame < 2; ++frame) {
    require(pyramid.enqueue(stream, base.view(), 0));
    require(coarse.enqueue_search(stream));
    require(coarse.enqueue_suppression(stream));
  }
  const DeviceView& top = levels.back();
  Found out{{}, value_of(Image::create(top.width, top.height, top.format)), false};
  out.by_matrix_units = plan->coarse.by_matrix_units;
  require(download(stream, top, out.level.view()));
  const int count = downloaded<int>(stream, coarse.selected_counts(), 1)[0];
  for (const TracedCandidate& candidate :
       downloaded<TracedCandidate>(stream, coarse.selected(), static_cast<std::size_t>(count))) {
    out.finds.push_back({candidate.pose.x, candidate.pose.y, candidate.pose.angle_deg,
                         candidate.pose.scale, candidate.score, candidate.inverted});
  }
  EXPECT_EQ(downloaded<CoarseCounters>(stream, coarse.counters(), 1)[0].overflow, 0U);
  return out;
}

// The same by the CPU in the level.
std::vector<Find> search_by_cpu(const Search& search, const Image& level) {
  PatternPlan plan = value_of(plan_pattern(search.config.patterns[0], search.config));
  std::optional<Image> valid;
  if (search.config.valid.data != nullptr) {
    valid = value_of(Image::copy_of(search.config.valid));
    for (int i = 0; i < plan.top_level; ++i) valid = halved_mask(valid->view());
    plan.coarse.valid = std::as_const(*valid).view();
  }
  CoarseSearch coarse(plan.pyramid, plan.coarse);
  patternd::CoarseImage image(plan.coarse.width, plan.coarse.height, coarse.margin(),
                              plan.coarse.valid);
  image.build(level.view());
  CoarseSearch::Scratch scratch(coarse);
  for (std::size_t group = 0; group < coarse.groups(); ++group)
    coarse.search_group(group, image.rows(), scratch);
  std::vector<PlanePeak> peaks;
  peaks.reserve(most_coarse(plan.search.params));
  coarse.suppress(peaks);
  std::vector<Find> out;
  for (const PlanePeak& peak : peaks) {
    const CoarseFind find = coarse.find(peak);
    out.push_back({find.x, find.y, find.angle_deg, find.scale, find.score, find.inverted ? 1 : 0});
  }
  return out;
}

// The same GPU with an image that knows no matrix units; null where it has none to do without, or
// this build no such image.
std::shared_ptr<const Device> without_matrix_units() {
  static const std::shared_ptr<const Device> other = open("universal_sm_70").device;
  return device()->has_matrix_units() ? other : nullptr;
}

// How many were found.
std::size_t expect_the_cpus(const Search& search, bool by_matrix_units) {
  const Found found = search_on(device(), search);
  EXPECT_EQ(found.by_matrix_units, by_matrix_units && device()->has_matrix_units());
  const std::vector<Find> expected = search_by_cpu(search, found.level);
  EXPECT_EQ(found.finds, expected);
  if (const auto other = without_matrix_units()) {
    const Found otherwise = search_on(other, search);
    EXPECT_FALSE(otherwise.by_matrix_units);
    EXPECT_EQ(otherwise.finds, expected);
  }
  EXPECT_TRUE(device()->make_current());
  return expected.size();
}

Search search_for(const SceneOptions& options, const SearchParams& params, unsigned seed) {
  std::mt19937 random(seed);
  Scene scene = make_scene(options, random);
  Search search{{}, std::move(scene.picture)};
  search.config.width = options.width;
  search.config.height = options.height;
  search.config.format = options.format;
  search.config.patterns.push_back({scene.pattern, params});
  return search;
}

TEST(GpuCoarseSearch, FindsTheCpusInSmallPicturesOfOddSizes) {
  PATTERND_NEEDS_GPU();
  constexpr int kSizes[][2] = {{131, 117}, {103, 90}, {86, 155}};
  for (unsigned seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    SceneOptions options = small_scene();
    options.width = kSizes[seed - 1][0];
    options.height = kSizes[seed - 1][1];
    options.masked = seed == 2;
    SearchParams params;
    params.angle_deg = {{-40, 30}};
    EXPECT_GT(expect_the_cpus(search_for(options, params, seed), true), 0U);
  }
}

TEST(GpuCoarseSearch, FindsTheCpusOfEitherPolarityThatSeeAPartInSmallPictures) {
  PATTERND_NEEDS_GPU();
  SceneOptions options = small_scene();
  options.at_border = true;
  options.inverted = true;
  options.instances = 2;
  SearchParams params;
  params.min_visible = 0.5;
  params.min_score = 0.4;
  params.polarity = Polarity::kAny;
  params.angle_deg = {{100, 140}};
  params.scale = {0.9, 1.1};
  EXPECT_GT(expect_the_cpus(search_for(options, params, 4), true), 0U);
}

TEST(GpuCoarseSearch, FindsTheCpusInTheValidPartInSmallPictures) {
  PATTERND_NEEDS_GPU();
  Search search = search_for(small_scene(), {}, 5);
  search.config.patterns[0].params.angle_deg = {{0, 45}};
  search.config.patterns[0].params.min_visible = 0.8;
  search.config.patterns[0].params.min_score = 0.4;
  Image valid = value_of(Image::create(131, 117, PixelFormat::kGray8));
  for (int y = 0; y < 117; ++y)
    for (int x = 0; x < 131; ++x) valid.row<std::uint8_t>(y)[x] = x + y / 3 > 20 ? 255 : 0;
  search.config.valid = std::as_const(valid).view();
  EXPECT_GT(expect_the_cpus(search, true), 0U);
}

// Pictures of 16 bits are searched in single precision.
TEST(GpuCoarseSearch, FindsTheCpusInSmallPicturesOf16Bit) {
  PATTERND_NEEDS_GPU();
  SceneOptions options = small_scene();
  options.format = PixelFormat::kGray16;
  SearchParams params;
  params.angle_deg = {{-20, 20}};
  EXPECT_GT(expect_the_cpus(search_for(options, params, 6), false), 0U);
}

TEST(GpuCoarseSearch, FindsTheCpusInPlainAndSaturatedPictures) {
  PATTERND_NEEDS_GPU();
  std::mt19937 random(9);
  for (const Content content :
       {Content::kBlack, Content::kWhite, Content::kOnePixel, Content::kStripes, Content::kNoise}) {
    SCOPED_TRACE(name_of(content));
    Search search = search_for({}, {}, 7);
    search.picture = make_picture(641, 479, PixelFormat::kGray8, content, random);
    search.config.width = 641;
    search.config.height = 479;
    expect_the_cpus(search, true);
  }
}

// Of the size of section 5 of issue 3, with many windows at the threshold.
TEST(GpuCoarseSearch, FindsTheCpusInALargePicture) {
  PATTERND_NEEDS_GPU();
  SceneOptions options;
  options.width = options.height = 1024;
  options.pattern_width = options.pattern_height = 128;
  options.instances = 5;
  SearchParams params;
  params.min_score = 0.5;
  EXPECT_GT(expect_the_cpus(search_for(options, params, 8), true), 4U);
}

// Searched at full scale: of more tiles than the 65,535 blocks that a grid's second dimension has.
TEST(GpuCoarseSearch, FindsTheCpusInAPictureOfMoreTilesThanAGridIsHigh) {
  PATTERND_NEEDS_GPU();
  SceneOptions options;
  options.width = 8200;
  options.height = 4200;
  options.pattern_width = options.pattern_height = 16;
  options.instances = 3;
  SearchParams params;
  params.levels = 0;
  params.min_score = 0.9;
  std::mt19937 random(12);
  const double angle_deg = make_scene(options, random).truth[0].angle_deg;
  params.angle_deg = {{angle_deg, angle_deg}};
  EXPECT_GT(expect_the_cpus(search_for(options, params, 12), true), 0U);
}

// One whose windows find no room in shared memory at the one level that it may be searched at.
TEST(GpuCoarseSearch, GoesWithoutMatrixUnitsWhereAWindowIsTooLargeInSmallPictures) {
  PATTERND_NEEDS_GPU();
  SceneOptions options;
  options.width = 200;
  options.height = 180;
  options.pattern_width = options.pattern_height = 120;
  options.instances = 1;
  SearchParams params;
  params.levels = 1;
  std::mt19937 random(10);
  const double angle_deg = make_scene(options, random).truth[0].angle_deg;
  params.angle_deg = {{angle_deg - 5, angle_deg + 5}};
  EXPECT_GT(expect_the_cpus(search_for(options, params, 10), false), 0U);
}

}  // namespace
}  // namespace patternd::cuda::test
