// How the coarse search by matrix units is launched, and what it works from; needs no GPU.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "cuda/coarse_octets.h"

namespace patternd::cuda {

// A search of the plan, with the numbers of its first plane and of its image.
struct ScoredSearch {
  const CoarseTables* tables = nullptr;
  ScoreThreshold threshold;
  int first_plane = 0;
  int image = 0;
};

struct ScorePlan {
  std::vector<OctetTables> octets;
  std::vector<CoarseSlice> slices;
  int warps = 0;  // of a block
  int tiles = 0;  // of positions, at most of a search
  int pitch = 0;  // words a row of a block's tile
  int tile_words = 0;
  std::size_t shared_bytes = 0;  // a block
};

// Nothing where a window is too large for `most_shared_bytes`, or a weight does not fit: then the
// search goes without matrix units.
[[nodiscard]] std::optional<ScorePlan> score_plan_of(const std::vector<ScoredSearch>& searches,
                                                     int multiprocessors,
                                                     std::size_t most_shared_bytes);

}  // namespace patternd::cuda
