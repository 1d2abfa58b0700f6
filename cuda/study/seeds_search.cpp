// T10, T13, T15: the thesis's ways to search.
#include <algorithm>
#include <cmath>

#include "cuda/study/seeds.h"
#include "cuda/study/seeds_metrics.h"
#include "cuda/study/seeds_search_scene.h"

namespace patternd::cuda {
namespace {

constexpr unsigned kWarpsPerBlock = 8;
constexpr unsigned kBlocksPerMultiprocessor = 8;

// Scores on the device, of a level's planes.
class ScorePlanes {
 public:
  ScorePlanes(const SeedBench& bench, const SearchLevels& levels, int level, int angles)
      : bench_(bench) {
    p_.level = levels.level(level);
    p_.turns = levels.turns(level);
    p_.angles = angles;
    count_ = static_cast<std::size_t>(p_.level.width) * static_cast<std::size_t>(p_.level.height) *
             static_cast<std::size_t>(angles);
    scores_ = value_of(DeviceBuffer::create(bench.device(), count_ * sizeof(float)));
    suppressed_ = value_of(DeviceBuffer::create(bench.device(), count_ * sizeof(float)));
    p_.scores = scores_.address();
    p_.suppressed = suppressed_.address();
  }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const StudyLevel& level() const { return p_.level; }

  // A thread a position of a plane.
  [[nodiscard]] Result<void> by_thread(const Kernel& kernel) const {
    Shape shape;
    shape.block_x = 32;
    shape.block_y = 8;
    shape.grid_x = static_cast<unsigned>((p_.level.width + 31) / 32);
    shape.grid_y = static_cast<unsigned>((p_.level.height + 7) / 8);
    shape.grid_z = static_cast<unsigned>(p_.angles);
    return bench_.stream().launch(kernel, shape, p_);
  }
  // A warp a position, in a grid-stride loop.
  [[nodiscard]] Result<void> by_warp(const Kernel& kernel) const {
    Shape shape;
    shape.block_x = kWarpSize;
    shape.block_y = kWarpsPerBlock;
    shape.grid_x = kBlocksPerMultiprocessor *
                   static_cast<unsigned>(bench_.device()->properties().multiprocessors);
    return bench_.stream().launch(kernel, shape, p_);
  }
  [[nodiscard]] Result<void> clear() const {
    return bench_.stream().fill(scores_.pointer(), 0xff, count_ * sizeof(float));
  }
  [[nodiscard]] std::vector<float> scores() const { return read(scores_); }
  [[nodiscard]] std::vector<float> suppressed() const { return read(suppressed_); }

 private:
  [[nodiscard]] std::vector<float> read(const DeviceBuffer& from) const {
    std::vector<float> values(count_);
    const Driver& api = bench_.device()->driver();
    require(api.check(api.memcpy_d2h_async(values.data(), from.pointer(), count_ * sizeof(float),
                                           bench_.stream().get()),
                      "cuMemcpyDtoHAsync"));
    require(bench_.stream().wait());
    return values;
  }
  const SeedBench& bench_;
  StudySearchParameters p_{};
  std::size_t count_ = 0;
  DeviceBuffer scores_;
  DeviceBuffer suppressed_;
};

// The largest difference over every `step`th position; refuses more than a thousandth.
double check_scores(const SearchScene& scene, const SearchLevels& levels, int index, int angles,
                    std::size_t step, const std::vector<float>& scores, const std::string& what) {
  constexpr double kMost = 1e-3;
  const auto at = static_cast<std::size_t>(index);
  const Image& picture = scene.pictures[at];
  const std::size_t width = static_cast<std::size_t>(picture.width());
  const std::size_t plane = width * static_cast<std::size_t>(picture.height());
  double most = 0;
  for (std::size_t i = 0; i < plane * static_cast<std::size_t>(angles); i += step) {
    const int x = static_cast<int>(i % plane % width);
    const int y = static_cast<int>(i % plane / width);
    const float wanted =
        ncc_reference(picture.view(), scene.patterns[at].view(), scene.energies[at],
                      levels.host_turns(index)[i / plane], x, y);
    const double off = std::abs(static_cast<double>(scores[i] - wanted));
    if (!(off <= kMost)) {
      refuse(what + ": angle " + std::to_string(i / plane) + " at (" + std::to_string(x) + ", " +
             std::to_string(y) + ") scores " + std::to_string(scores[i]) + ", the CPU's is " +
             std::to_string(wanted));
    }
    most = std::max(most, off);
  }
  return most;
}

void study_level(const SeedBench& bench, const SearchScene& scene, const SearchLevels& levels,
                 int index, int angles, std::size_t check_step, SeedTable& table) {
  const ScorePlanes planes(bench, levels, index, angles);
  const std::string where = index == 0 ? "full scale, " : "level " + std::to_string(index) + ", ";
  std::optional<double> sequential;
  if (check_step == 1) {
    const auto at = static_cast<std::size_t>(index);
    volatile float kept = 0;
    sequential = bench.host_us([&] {
      for (int y = 0; y < planes.level().height; ++y)
        for (int x = 0; x < planes.level().width; ++x)
          kept = ncc_reference(scene.pictures[at].view(), scene.patterns[at].view(),
                               scene.energies[at], levels.host_turns(index)[1], x, y);
    }) * angles;
    table.add(where + "CPU, one core, from one angle", {sequential, std::nullopt, 1.0, 1.0});
  }
  const Kernel thread = bench.kernel("patternd_study_ncc_thread");
  const Kernel warp = bench.kernel("patternd_study_ncc_warp");
  const double samples = static_cast<double>(planes.count()) * planes.level().pattern_width *
                         planes.level().pattern_height;
  for (const bool reduced : {false, true}) {
    const auto enqueue = [&] { return reduced ? planes.by_warp(warp) : planes.by_thread(thread); };
    const std::string what = where + (reduced ? "a warp a position" : "a thread a position");
    require(planes.clear());
    require(enqueue());
    const double error =
        check_scores(scene, levels, index, angles, check_step, planes.scores(), what);
    const double us = bench.event_us(enqueue);
    std::optional<double> gain;
    std::optional<double> share;
    if (sequential) {
      gain = speed_up(*sequential, us);
      share = efficiency(*sequential, us, bench.processors());
    }
    table.add(what, {us, error, gain, share, cost_ms(us, bench.processors()), samples / us * 1e-3});
  }
}

void study_suppression(const SeedBench& bench, const SearchLevels& levels, SeedTable& table) {
  const ScorePlanes planes(bench, levels, kSeedLevels, kSeedAngles);
  require(planes.by_warp(bench.kernel("patternd_study_ncc_warp")));
  const std::vector<float> scores = planes.scores();
  const Kernel kernel = bench.kernel("patternd_study_suppress");
  const auto enqueue = [&] { return planes.by_thread(kernel); };
  require(enqueue());
  const std::vector<float> suppressed = planes.suppressed();
  const int width = planes.level().width;
  const int height = planes.level().height;
  const auto plane = static_cast<std::ptrdiff_t>(width) * height;
  const auto cpu = [&] {
    std::vector<float> all;
    for (int a = 0; a < kSeedAngles; ++a) {
      const auto first = scores.begin() + a * plane;
      const auto part = suppress_reference({first, first + plane}, width, height);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  if (cpu() != suppressed) refuse("suppression: not what the CPU leaves");
  const double sequential = bench.host_us([&] { static_cast<void>(cpu()); });
  const double us = bench.event_us(enqueue);
  table.add("suppression, CPU, one core", {sequential, std::nullopt, 1.0, 1.0});
  table.add("suppression, a thread a position",
            {us, 0.0, speed_up(sequential, us), efficiency(sequential, us, bench.processors()),
             cost_ms(us, bench.processors())});
}

}  // namespace

SeedTable study_search(const SeedBench& bench) {
  const std::string side = std::to_string(bench.options().size);
  SeedTable table("search",
                  "Search (T10, T13, T15), " + side + "x" + side + ", pattern 128x128; level " +
                      std::to_string(kSeedLevels) + ": " + std::to_string(kSeedAngles) +
                      " angles; full scale: one angle",
                  {{"median_us", "us", 1},
                   {"error", "error", 6},
                   {"speed_up", "S", 1},
                   {"efficiency", "S/p", 4},
                   {"cost_ms", "cost ms", 1},
                   {"gsamples_s", "Gsamples/s", 1}});
  constexpr std::size_t kFullScaleCheck = 4099;  // every so many positions, a prime
  const SearchScene scene = make_search_scene(bench.options().size);
  const SearchLevels levels(bench, scene, MemoryMode::kCopy);
  study_level(bench, scene, levels, kSeedLevels, kSeedAngles, 1, table);
  study_level(bench, scene, levels, 0, 1, kFullScaleCheck, table);
  study_suppression(bench, levels, table);
  return table;
}

}  // namespace patternd::cuda
