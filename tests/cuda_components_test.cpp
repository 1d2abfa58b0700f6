// The GPU's kernels of connected components, run on the CPU with their threads in a drawn order
// (support/emulated), compared with the CPU's own labels and sums.
#include <algorithm>
#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

// The kernels, as they are.
#include "cuda/components_sums.h"
#include "cuda/kernels/components.cu"
#include "cuda/kernels/components_foreground.cu"
#include "cuda/kernels/components_similar.cu"
#include "cuda/kernels/components_tiles.cu"
#include "cuda/kernels/propagation.cu"
#include "pipeline/components.h"
#include "pipeline/components_selection.h"
#include "pipeline/components_threshold.h"
#include "pipeline/row_major.h"
#include "tests/support/reference_components.h"
#include "tools/bench/label_pictures.h"

namespace patternd::cuda {
namespace {

constexpr std::uint32_t kGarbage = 0xDEADBEEF;

int blocks_for(int items, int of_a_block) { return (items + of_a_block - 1) / of_a_block; }

Address address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

// All launches of one picture, memory full of garbage before, but for what a picture leaves zero.
class EmulatedStage {
 public:
  EmulatedStage(const ImageView& image, int low, int high, int connectivity, int capacity)
      : words_((image.width + 31) / 32),
        count_(words_ * image.height),
        parts_(blocks_for(count_, kNumberThreads)),
        bits_(static_cast<std::size_t>(count_), kGarbage),
        local_(bits_.size() * kNodesPerWord, 0xDEAD),
        parent_(bits_.size() * kNodesPerWord, kGarbage),
        roots_(bits_.size(), kGarbage),
        tiles_(static_cast<std::size_t>(capacity)),
        part_roots_(static_cast<std::size_t>(parts_), 0),
        components_(static_cast<std::size_t>(capacity)) {
    std::memset(components_.data(), 0x5A, components_.size() * sizeof(DeviceComponent));
    labels_ = std::move(*Image::create(image.width, image.height, PixelFormat::kLabel32));
    labels_.fill_bytes(0x5A);
    ComponentsParameters& p = parameters_;
    p.picture = address_of(image.data);
    p.bits = address_of(bits_.data());
    p.local = address_of(local_.data());
    p.parent = address_of(parent_.data());
    p.roots = address_of(roots_.data());
    p.tiles = address_of(tiles_.data());
    p.listed = address_of(&listed_);
    p.part_roots = address_of(part_roots_.data());
    p.counts = address_of(&counts_);
    p.components = address_of(components_.data());
    p.labels = address_of(labels_.view().data);
    p.picture_stride_bytes = static_cast<int>(image.stride_bytes);
    p.labels_stride_bytes = static_cast<int>(labels_.view().stride_bytes);
    p.width = image.width;
    p.height = image.height;
    p.words = words_;
    p.capacity = capacity;
    p.low = low;
    p.high = high;
    p.eight = connectivity == 8 ? 1 : 0;
    p.deep = image.format == PixelFormat::kGray16 ? 1 : 0;
    p.merge_blocks = 2;
  }

  // By similarity; reads the picture alone.
  void run_similarity(const BlobParams& params, PixelFormat format, std::uint32_t seed) {
    std::vector<u32> parent(bits_.size() * 32, kGarbage);
    parameters_.parent = address_of(parent.data());
    parameters_.high = static_cast<int>(params.similarity);
    parameters_.colour = format == PixelFormat::kRgb8 ? 1 : 0;
    const ComponentsParameters& p = parameters_;
    using emulated::launch;
    const int blocks = blocks_for(count_, kNumberThreads / kWarpSize);
    launch(blocks, 1, kNumberThreads, seed, [&] { patternd_similar_rows(p); });
    launch(blocks, 1, kNumberThreads, seed + 1, [&] { patternd_similar_join(p); });
    launch(parts_, 1, kNumberThreads, seed + 2, [&] { patternd_similar_number(p); });
    launch(parts_, 1, kFinishThreads, seed + 3, [&] { patternd_similar_finish(p); });
  }

  // The threshold is Otsu's, or the local mean's.
  void run_mode(const BlobParams& params, std::uint32_t seed) {
    const ComponentsParameters& p = parameters_;
    using emulated::launch;
    const auto pixels = static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height);
    std::vector<u32> histogram(p.deep != 0 ? 65536 : 256, 0);
    std::vector<u32> columns(pixels, kGarbage);
    std::vector<u64> prefix(pixels + static_cast<std::size_t>(p.height), kGarbage);
    int range[2] = {-1, -1};
    const ForegroundParameters f = {p.picture,
                                    address_of(histogram.data()),
                                    address_of(range),
                                    address_of(columns.data()),
                                    address_of(prefix.data()),
                                    p.bits,
                                    params.adaptive_offset,
                                    p.picture_stride_bytes,
                                    p.width,
                                    p.height,
                                    p.words,
                                    params.adaptive_radius,
                                    params.below ? 1 : 0,
                                    p.deep,
                                    p.deep != 0 ? 65535 : 255};
    if (params.mode == BlobParams::Mode::kOtsu) {
      launch(3, 1, kForegroundThreads, seed, [&] { patternd_components_histogram(f); });
      launch(1, 1, kForegroundThreads, seed, [&] { patternd_components_otsu(f); });
      for (const u32 count : histogram) ASSERT_EQ(0U, count);
      parameters_.range = f.range;
    } else {
      launch(blocks_for(p.width, kForegroundThreads), blocks_for(p.height, kColumnRows),
             kForegroundThreads, seed, [&] { patternd_components_columns(f); });
      launch(p.height, 1, kForegroundThreads, seed, [&] { patternd_components_adaptive(f); });
      parameters_.bits_given = 1;
    }
    run(seed);
  }

  void run(std::uint32_t seed) {
    const ComponentsParameters& p = parameters_;
    using emulated::launch;
    const int across = blocks_for(p.words, kTileWords);
    const int down = blocks_for(p.height, kTileRows);
    launch(across, down, kTileThreads, seed, [&] { patternd_components_tiles(p); });
    const int seam_warps = (down - 1) * p.words + (across - 1) * blocks_for(p.height, kWarpSize);
    launch(blocks_for(seam_warps, kSeamThreads / kWarpSize), 1, kSeamThreads, seed + 1,
           [&] { patternd_components_seams(p); });
    launch(parts_, 1, kNumberThreads, seed + 2, [&] { patternd_components_number(p); });
    launch(p.merge_blocks + blocks_for(count_, kFinishThreads), 1, kFinishThreads, seed + 3,
           [&] { patternd_components_finish(p); });
  }

  // Ready for the next picture.
  [[nodiscard]] bool is_clean() const {
    return listed_ == 0 &&
           std::all_of(part_roots_.begin(), part_roots_.end(), [](u32 n) { return n == 0; });
  }
  [[nodiscard]] const ComponentCounts& counts() const { return counts_; }
  [[nodiscard]] const DeviceComponent& component(std::size_t label) const {
    return components_[label - 1];
  }
  [[nodiscard]] const Image& labels() const { return labels_; }

 private:
  int words_;
  int count_;
  int parts_;
  std::vector<u32> bits_;
  std::vector<u16> local_;
  std::vector<u32> parent_, roots_;
  std::vector<TileComponent> tiles_;
  u32 listed_ = 0;
  std::vector<u32> part_roots_;
  std::vector<DeviceComponent> components_;
  ComponentCounts counts_{};
  Image labels_;
  ComponentsParameters parameters_{};
};

void expect_same_blob(const Blob& want, const Blob& got) {
  EXPECT_EQ(want.area_px, got.area_px);
  EXPECT_EQ(want.x_px, got.x_px);
  EXPECT_EQ(want.y_px, got.y_px);
  EXPECT_EQ(want.left, got.left);
  EXPECT_EQ(want.top, got.top);
  EXPECT_EQ(want.width, got.width);
  EXPECT_EQ(want.height, got.height);
  EXPECT_EQ(want.mean, got.mean);
  EXPECT_EQ(want.peak, got.peak);
  EXPECT_EQ(want.peak_x, got.peak_x);
  EXPECT_EQ(want.peak_y, got.peak_y);
  EXPECT_EQ(want.angle_deg, got.angle_deg);
  EXPECT_EQ(want.major_px, got.major_px);
  EXPECT_EQ(want.minor_px, got.minor_px);
  EXPECT_EQ(want.touches_border, got.touches_border);
}

struct Expected {
  Image labels;
  std::vector<Blob> blobs;
};

Expected label_on_cpu(const ImageView& image, const BlobParams& params) {
  LabelOptions options;
  options.labels = true;
  auto labeller =
      ComponentLabeller::create(image.width, image.height, image.format, params, options);
  auto labels = Image::create(image.width, image.height, PixelFormat::kLabel32);
  EXPECT_TRUE(labeller && labels && labeller->process(image, labels->view()));
  Expected expected{std::move(*labels), {}};
  for (std::int64_t label = 1; label <= labeller->count(); ++label)
    expected.blobs.push_back(labeller->blob(label));
  return expected;
}

void expect_labels(const Image& want, const Image& got) {
  for (int y = 0; y < want.height(); ++y)
    for (int x = 0; x < want.width(); ++x)
      ASSERT_EQ(want.row<std::int32_t>(y)[x], got.row<std::int32_t>(y)[x]) << x << ", " << y;
}

void expect_as_on_cpu(const ImageView& image, const BlobParams& params, std::uint32_t seed) {
  const Expected expected = label_on_cpu(image, params);
  const int most = image.format == PixelFormat::kGray16 ? 65535 : 255;
  const auto range = components::foreground_range(params.threshold, params.below, most);
  EmulatedStage stage(image, range.low, range.high, params.connectivity,
                      image.width * image.height + 1);
  if (params.mode == BlobParams::Mode::kThreshold)
    stage.run(seed);
  else if (params.mode == BlobParams::Mode::kSimilarity)
    stage.run_similarity(params, image.format, seed);
  else
    stage.run_mode(params, seed);
  ASSERT_EQ(expected.blobs.size(), stage.counts().components);
  EXPECT_TRUE(stage.is_clean());
  expect_labels(expected.labels, stage.labels());
  for (std::size_t label = 1; label <= expected.blobs.size(); ++label) {
    const components::Geometry geometry = geometry_of(stage.component(label));
    const components::Intensity intensity = intensity_of(stage.component(label));
    const components::Moments moments = moments_of(stage.component(label));
    const components::Sums sums = {
        &geometry - label, &intensity - label, &moments - label, {0, 0, image.width, image.height}};
    SCOPED_TRACE("label " + std::to_string(label));
    expect_same_blob(expected.blobs[label - 1],
                     components::blob_of(sums, static_cast<std::int64_t>(label)));
    if (testing::Test::HasFailure()) return;
  }
}

BlobParams threshold_params(double threshold, int connectivity) {
  BlobParams params;
  params.threshold = threshold;
  params.connectivity = connectivity;
  return params;
}

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

TEST(CudaComponentsEmulated, AreTheCpusInRandomPictures) {
  constexpr std::uint32_t kSeed = 11;
  std::mt19937 random(kSeed);
  for (std::uint32_t round = 0; round < 150; ++round) {
    const auto format = round % 3 == 0 ? PixelFormat::kGray16 : PixelFormat::kGray8;
    const int width = 1 + static_cast<int>(random() % 200);
    const int height = 1 + static_cast<int>(random() % 100);
    const int most = format == PixelFormat::kGray16 ? 65535 : 255;
    const int threshold = static_cast<int>(random() % static_cast<std::uint32_t>(most));
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const Image image = random_picture(width, height, format, random);
    expect_as_on_cpu(image.view(), threshold_params(threshold, round % 2 == 0 ? 8 : 4), round);
    if (HasFailure()) return;
  }
}

TEST(CudaComponentsEmulated, AreTheCpusInHardPictures) {
  for (const auto& name : bench::label_picture_names()) {
    for (const auto& [width, height] : {std::pair{192, 96}, {97, 65}, {1, 70}, {300, 1}}) {
      for (const int connectivity : {4, 8}) {
        SCOPED_TRACE(name + " " + std::to_string(width) + "x" + std::to_string(height) +
                     ", connectivity " + std::to_string(connectivity));
        const Image image = bench::make_label_picture(name, width, height, 3);
        expect_as_on_cpu(image.view(), threshold_params(127, connectivity), 5);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(CudaComponentsEmulated, AreTheCpusByOtsusAndByAnAdaptiveThreshold) {
  constexpr std::uint32_t kSeed = 13;
  std::mt19937 random(kSeed);
  for (std::uint32_t round = 0; round < 60; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const auto format = round % 3 == 0 ? PixelFormat::kGray16 : PixelFormat::kGray8;
    Image image = random_picture(1 + static_cast<int>(random() % 150),
                                 1 + static_cast<int>(random() % 80), format, random);
    if (round % 7 == 0) image.fill_bytes(static_cast<std::uint8_t>(random()));
    BlobParams params;
    params.mode = round % 2 == 0 ? BlobParams::Mode::kOtsu : BlobParams::Mode::kAdaptive;
    params.below = random() % 2 == 0;
    params.adaptive_radius = static_cast<int>(random() % (round % 5 == 0 ? 300 : 10));
    params.adaptive_offset = static_cast<double>(random() % 100) / 7 - 6;
    params.connectivity = random() % 2 == 0 ? 8 : 4;
    expect_as_on_cpu(image.view(), params, round);
    if (HasFailure()) return;
  }
}

TEST(CudaComponentsEmulated, AreTheCpusBySimilarity) {
  constexpr std::uint32_t kSeed = 14;
  constexpr std::array<PixelFormat, 3> kFormats = {PixelFormat::kGray8, PixelFormat::kGray16,
                                                   PixelFormat::kRgb8};
  std::mt19937 random(kSeed);
  for (std::uint32_t round = 0; round < 48; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const PixelFormat format = kFormats[round % 3];
    const Image image = random_picture(1 + static_cast<int>(random() % 100),
                                       1 + static_cast<int>(random() % 40), format, random);
    BlobParams params;
    params.mode = BlobParams::Mode::kSimilarity;
    params.similarity = static_cast<double>(random() % 200);
    if (format == PixelFormat::kGray16) params.similarity *= 150;
    params.connectivity = round % 2 == 0 ? 8 : 4;
    expect_as_on_cpu(image.view(), params, round);
    if (HasFailure()) return;
  }
}

TEST(CudaComponentsEmulated, TellWhenTheyPassTheCapAndWriteNothingBehindIt) {
  const Image image = bench::make_label_picture("dots", 128, 64, 0);
  EmulatedStage stage(image.view(), 128, 255, 8, 100);
  stage.run(1);
  EXPECT_EQ(64U * 32U, stage.counts().tile_components);
  EXPECT_EQ(64U * 32U, stage.counts().components);
}

TEST(CudaComponents, OfAFaultyGpuAreToldFromThoseOfAPicture) {
  std::mt19937 random(15);
  const Image image = random_picture(150, 70, PixelFormat::kGray8, random);
  EmulatedStage stage(image.view(), 128, 255, 8, image.width() * image.height());
  stage.run(1);
  ASSERT_GT(stage.counts().components, 1U);
  for (std::size_t label = 1; label <= stage.counts().components; ++label)
    ASSERT_TRUE(is_possible(stage.component(label), 150, 70)) << label;
  const DeviceComponent& good = stage.component(1);
  EXPECT_FALSE(is_possible(DeviceComponent{}, 150, 70));
  EXPECT_FALSE(is_possible(good, static_cast<int>(good.right), 70));
  EXPECT_FALSE(is_possible(good, 150, static_cast<int>(good.bottom)));
  const auto without = [&good](auto DeviceComponent::*member) {
    DeviceComponent bad = good;
    bad.*member = 0;
    return is_possible(bad, 150, 70);
  };
  EXPECT_FALSE(without(&DeviceComponent::area));
  EXPECT_FALSE(without(&DeviceComponent::sum_x));
  EXPECT_FALSE(without(&DeviceComponent::sum_yy));
  EXPECT_FALSE(without(&DeviceComponent::left_from_end));
  EXPECT_FALSE(without(&DeviceComponent::right));
  DeviceComponent garbage;
  std::memset(&garbage, 0x5A, sizeof garbage);
  EXPECT_FALSE(is_possible(garbage, 150, 70));
}

// The report's B, C and D.
enum class Program { kPropagation, kEquivalence, kTexture };

Image label_by_program(const ImageView& image, Program program, int low, int high, int similarity,
                       bool eight) {
  std::vector<u32> labels(
      static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height), kGarbage);
  u32 changed = 0;
  const emulated::Texture texture{
      image.data, static_cast<int>(image.stride_bytes), image.width, image.height, 1, 1};
  const PropagationParameters p = {address_of(image.data),
                                   address_of(&texture),
                                   address_of(labels.data()),
                                   address_of(&changed),
                                   static_cast<int>(image.stride_bytes),
                                   image.width,
                                   image.height,
                                   low,
                                   high,
                                   similarity,
                                   eight ? 1 : 0,
                                   0};
  const int blocks = blocks_for(image.width * image.height, 256);
  const auto launch = [&](const auto& kernel) {
    emulated::launch(blocks, 1, 256, 7, [&] { kernel(p); });
  };
  launch(patternd_propagation_number);
  do {
    changed = 0;
    if (program == Program::kPropagation) launch(patternd_propagation_spread);
    if (program == Program::kEquivalence) launch(patternd_equivalence_scan);
    if (program == Program::kTexture) launch(patternd_texture_scan);
    if (program != Program::kPropagation) launch(patternd_equivalence_analyse);
  } while (changed != 0);
  Image result = std::move(*Image::create(image.width, image.height, PixelFormat::kLabel32));
  std::vector<std::int32_t> numbers(labels.size() + 1, 0);
  std::int32_t count = 0;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const u32 label = labels[row_major(y, x, image.width)];
      if (label != 0 && numbers[label] == 0) numbers[label] = ++count;
      result.row<std::int32_t>(y)[x] = numbers[label];
    }
  return result;
}

TEST(CudaPropagationEmulated, ProgramsBToDLabelAsTheCpu) {
  constexpr std::uint32_t kSeed = 12;
  std::mt19937 random(kSeed);
  for (std::uint32_t round = 0; round < 24; ++round) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", round " + std::to_string(round));
    const Image image =
        random_picture(1 + static_cast<int>(random() % 60), 1 + static_cast<int>(random() % 40),
                       PixelFormat::kGray8, random);
    BlobParams params;
    params.connectivity = round % 2 == 0 ? 8 : 4;
    const bool similarity = round % 4 >= 2;
    params.mode = similarity ? BlobParams::Mode::kSimilarity : BlobParams::Mode::kThreshold;
    params.threshold = params.similarity = static_cast<double>(random() % 200);
    const auto limit = static_cast<int>(params.threshold);
    const Expected expected = label_on_cpu(image.view(), params);
    for (const Program program :
         {Program::kPropagation, Program::kEquivalence, Program::kTexture}) {
      const Image labels = label_by_program(image.view(), program, limit + 1, 255,
                                            similarity ? limit : -1, params.connectivity == 8);
      expect_labels(expected.labels, labels);
      if (HasFailure()) return;
    }
  }
}

}  // namespace
}  // namespace patternd::cuda
