// The scene that the search studies share, on the host and on the device, and the CPU's versions of
// what they measure: the same sums in double precision.
#pragma once

#include <memory>
#include <vector>

#include "cuda/memory.h"
#include "cuda/study/study_parameters.h"
#include "pipeline/image.h"
#include "pipeline/pattern.h"

namespace patternd::cuda {

class SeedBench;

inline constexpr int kSeedPatternSide = 128;
inline constexpr int kSeedLevels = 3;   // above level 0; the search starts at the last
inline constexpr int kSeedAngles = 36;  // every ten degrees

struct SeedInstance {
  double x = 0;
  double y = 0;
  int angle = 0;  // index
};

// A picture with five instances of a pattern, turned by angles that the search tries, with noise.
struct SearchScene {
  Image grey;                              // kGray8, for the service
  std::shared_ptr<const Pattern> pattern;  // taught, for the service
  std::vector<Image> pictures;             // by level, kGrayF32, 0..1, each a 2×2 mean
  std::vector<Image> patterns;             // by level, zero-mean
  std::vector<float> energies;             // by level, ΣP²
  std::vector<SeedInstance> instances;
};
// `size` of the picture; at least 512. Throws StudyFailure.
[[nodiscard]] SearchScene make_search_scene(int size);

// The search's angles as a level's kernels take them.
[[nodiscard]] std::vector<StudyTurn> seed_turns(const Image& pattern);

// The NCC of one angle at a position, 0 where samples would lie outside. `picture` may lie in
// memory that the GPU shares.
[[nodiscard]] float ncc_reference(const ImageView& picture, const ImageView& pattern, float energy,
                                  const StudyTurn& turn, int x, int y);

// The positions of one plane that no neighbour beats, as the suppression kernel leaves them.
[[nodiscard]] std::vector<float> suppress_reference(const std::vector<float>& scores, int width,
                                                    int height);

// The best `limit` of suppressed planes, [angle][y][x], by falling score.
[[nodiscard]] std::vector<StudyCandidate> best_candidates(const std::vector<float>& suppressed,
                                                          int width, int height, std::size_t limit);

// Algorithm 2 on the CPU: a level finer.
void trace_reference(const ImageView& picture, const ImageView& pattern, float energy,
                     const std::vector<StudyTurn>& turns, float least_score,
                     std::vector<StudyCandidate>& candidates);

// The scene's levels in memory of one kind, with what the kernels read.
class SearchLevels {
 public:
  SearchLevels(const SeedBench& bench, const SearchScene& scene, MemoryMode mode);
  [[nodiscard]] const StudyLevel& level(int index) const { return at(index).parameters; }
  [[nodiscard]] Address turns(int index) const { return at(index).turns.address(); }
  [[nodiscard]] const std::vector<StudyTurn>& host_turns(int index) const {
    return at(index).host_turns;
  }
  // The picture as the host sees it in that memory.
  [[nodiscard]] ImageView host_picture(int index) const { return at(index).host; }

 private:
  struct Level {
    SharedBuffer memory;
    Texture texture;
    DeviceBuffer pattern;
    DeviceBuffer turns;
    std::vector<StudyTurn> host_turns;
    ImageView host;
    StudyLevel parameters{};
  };
  [[nodiscard]] const Level& at(int index) const {
    return levels_[static_cast<std::size_t>(index)];
  }
  [[nodiscard]] static Level make_level(const SeedBench& bench, const SearchScene& scene,
                                        std::size_t index, MemoryMode mode);
  std::vector<Level> levels_;
};

}  // namespace patternd::cuda
