// T14, T15, T17: the thesis's trace search on the GPU in two ways, and by the CPU where both see
// the same memory.
#include <algorithm>
#include <cmath>

#include "cuda/study/seeds.h"
#include "cuda/study/seeds_metrics.h"
#include "cuda/study/seeds_search_scene.h"

namespace patternd::cuda {
namespace {

constexpr std::size_t kCandidates = 64;
constexpr float kLeastScore = 0.3F;
using Candidates = std::vector<StudyCandidate>;

// What the coarse search by the CPU leaves: the start of every way to trace.
Candidates coarse_candidates(const SearchScene& scene) {
  const auto at = static_cast<std::size_t>(kSeedLevels);
  const Image& picture = scene.pictures[at];
  std::vector<float> all;
  for (const StudyTurn& turn : seed_turns(scene.patterns[at])) {
    std::vector<float> scores;
    for (int y = 0; y < picture.height(); ++y)
      for (int x = 0; x < picture.width(); ++x)
        scores.push_back(ncc_reference(picture.view(), scene.patterns[at].view(),
                                       scene.energies[at], turn, x, y));
    const auto kept = suppress_reference(scores, picture.width(), picture.height());
    all.insert(all.end(), kept.begin(), kept.end());
  }
  return best_candidates(all, picture.width(), picture.height(), kCandidates);
}

class TraceBench {
 public:
  TraceBench(const SeedBench& bench, const SearchScene& scene)
      : bench_(bench),
        scene_(scene),
        start_(coarse_candidates(scene)),
        pristine_(value_of(DeviceBuffer::copy_of(bench.device(), start_.data(), bytes()))),
        work_(value_of(DeviceBuffer::create(bench.device(), bytes()))),
        by_thread_(bench.kernel("patternd_study_trace_thread")),
        by_warp_(bench.kernel("patternd_study_trace_warp")) {}

  [[nodiscard]] std::size_t bytes() const { return start_.size() * sizeof(StudyCandidate); }

  [[nodiscard]] Result<void> restart() const {
    Copy2d copy;
    copy.src_device = pristine_.pointer();
    copy.dst_device = work_.pointer();
    copy.src_pitch = copy.dst_pitch = copy.width_bytes = bytes();
    copy.height = 1;
    const Driver& api = bench_.device()->driver();
    return api.check(api.memcpy_2d_async(&copy, bench_.stream().get()), "cuMemcpy2DAsync");
  }
  // All levels on the GPU; enqueues.
  [[nodiscard]] Result<void> trace(const SearchLevels& levels, bool reduced) const {
    StudyTraceParameters p{};
    p.candidates = work_.address();
    p.count = static_cast<int>(start_.size());
    p.least_score = kLeastScore;
    Shape shape;
    shape.block_x = reduced ? kWarpSize : kStudyNeighbours;
    shape.block_y = reduced ? kStudyNeighbours : kStudyTraceCandidates;
    shape.grid_x = static_cast<unsigned>(
        reduced ? p.count : (p.count + kStudyTraceCandidates - 1) / kStudyTraceCandidates);
    for (int level = kSeedLevels - 1; level >= 0; --level) {
      p.level = levels.level(level);
      p.turns = levels.turns(level);
      if (auto ok = bench_.stream().launch(reduced ? by_warp_ : by_thread_, shape, p); !ok)
        return ok;
    }
    return {};
  }
  // All levels on one core, pictures read where the GPU's kernels read them.
  [[nodiscard]] Candidates trace_on_cpu(const SearchLevels& levels) const {
    Candidates candidates = start_;
    for (int level = kSeedLevels - 1; level >= 0; --level) {
      const auto at = static_cast<std::size_t>(level);
      trace_reference(levels.host_picture(level), scene_.patterns[at].view(), scene_.energies[at],
                      levels.host_turns(level), kLeastScore, candidates);
    }
    return candidates;
  }
  // What the GPU has come to; waits.
  [[nodiscard]] Candidates read() const {
    Candidates out(start_.size());
    const Driver& api = bench_.device()->driver();
    require(
        api.check(api.memcpy_d2h_async(out.data(), work_.pointer(), bytes(), bench_.stream().get()),
                  "cuMemcpyDtoHAsync"));
    require(bench_.stream().wait());
    return out;
  }

 private:
  const SeedBench& bench_;
  const SearchScene& scene_;
  Candidates start_;
  DeviceBuffer pristine_;
  DeviceBuffer work_;
  Kernel by_thread_;
  Kernel by_warp_;
};

// The largest difference of the scores; refuses more than a thousandth. Two neighbours that score
// alike may change places, and a candidate at the least score may stay or go.
double check_traced(const Candidates& wanted, const Candidates& got, const std::string& what) {
  constexpr double kMost = 1e-3;
  double most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const StudyCandidate& a = wanted[i];
    const StudyCandidate& b = got[i];
    const bool at_limit = std::abs(static_cast<double>(a.score - kLeastScore)) < kMost;
    const double off = std::abs(static_cast<double>(a.score - b.score));
    if (at_limit) continue;
    if (a.alive != b.alive || !(off <= kMost)) {
      refuse(what + ": candidate " + std::to_string(i) + " ends at (" + std::to_string(b.x) + ", " +
             std::to_string(b.y) + ") with " + std::to_string(b.score) + ", the CPU's at (" +
             std::to_string(a.x) + ", " + std::to_string(a.y) + ") with " +
             std::to_string(a.score));
    }
    most = std::max(most, off);
  }
  return most;
}

int instances_found(const SearchScene& scene, const Candidates& candidates) {
  int found = 0;
  for (const SeedInstance& instance : scene.instances) {
    found += std::any_of(candidates.begin(), candidates.end(), [&](const StudyCandidate& c) {
      return c.alive != 0 && c.angle == instance.angle && std::abs(c.x - instance.x) < 2 &&
             std::abs(c.y - instance.y) < 2;
    });
  }
  return found;
}

}  // namespace

SeedTable study_trace(const SeedBench& bench) {
  SeedTable table("trace",
                  "Trace (T14, T15, T17), " + std::to_string(kCandidates) + " candidates down " +
                      std::to_string(kSeedLevels) +
                      " levels; kernels by events; \"to the host\" by the host's clock until it "
                      "has the candidates",
                  {{"median_us", "us", 1},
                   {"error", "error", 6},
                   {"found", "found of 5", 0},
                   {"speed_up", "S", 1},
                   {"efficiency", "S/p", 4},
                   {"cost_ms", "cost ms", 1}});
  const SearchScene scene = make_search_scene(bench.options().size);
  const TraceBench trace(bench, scene);
  std::vector<std::pair<std::string, MemoryMode>> memories = {{"device memory", MemoryMode::kCopy}};
  if (bench.device()->properties().can_map_host_memory)
    memories.emplace_back("zero-copy", MemoryMode::kMapped);
  Candidates wanted;
  double sequential = 0;
  const int p = bench.processors();
  for (const auto& [memory, mode] : memories) {
    const SearchLevels levels(bench, scene, mode);
    const Candidates by_cpu = trace.trace_on_cpu(levels);
    if (wanted.empty()) wanted = by_cpu;
    const double cpu_us = bench.host_us([&] { static_cast<void>(trace.trace_on_cpu(levels)); });
    if (sequential == 0) sequential = cpu_us;
    const std::string host = mode == MemoryMode::kCopy ? "the host's page-locked memory" : memory;
    table.add("CPU, one core, from " + host,
              {cpu_us, check_traced(wanted, by_cpu, "CPU from " + host),
               instances_found(scene, by_cpu), sequential / cpu_us, std::nullopt, cpu_us * 1e-3});
    for (const bool reduced : {false, true}) {
      const std::string what =
          std::string(reduced ? "a warp a neighbour, " : "a thread a neighbour, ") + memory;
      const auto enqueue = [&] { return trace.trace(levels, reduced); };
      require(trace.restart());
      require(enqueue());
      const Candidates got = trace.read();
      const double error = check_traced(wanted, got, what);
      const int found = instances_found(scene, got);
      const double us = bench.event_us([&] { return trace.restart(); }, enqueue);
      table.add(what, {us, error, found, speed_up(sequential, us), efficiency(sequential, us, p),
                       cost_ms(us, p)});
      const double to_host = bench.host_us([&] { require(trace.restart()); },
                                           [&] {
                                             require(enqueue());
                                             static_cast<void>(trace.read());
                                           });
      table.add(what + ", to the host", {to_host, error, found, speed_up(sequential, to_host)});
    }
  }
  return table;
}

}  // namespace patternd::cuda
