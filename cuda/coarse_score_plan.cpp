#include "cuda/coarse_score_plan.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace patternd::cuda {
namespace {

constexpr int kTileWidth = kScoreWarps * kScoreColumns;
constexpr int kWordKinds = 3;  // of the samples, and two of their squares
constexpr int kBanks = 32;     // of shared memory, a word each

int blocks_of(int size, int of_a_block) { return (size + of_a_block - 1) / of_a_block; }

int tiles_of(const CoarseTables& tables) {
  return blocks_of(tables.blocks * kCoarseBlock, kTileWidth) * blocks_of(tables.rows, kScoreRows);
}

int octets_in(const CoarseTables& tables) { return static_cast<int>(tables.groups.size()); }

// Octets that a block takes one after the other. More of them load fewer tiles; fewer spread more
// evenly over the multiprocessors.
int octets_a_slice(const std::vector<ScoredSearch>& searches, int multiprocessors) {
  constexpr int kMost = 4;
  constexpr double kLoading = 0.4;  // of an octet's time
  int best = 1;
  double least = 0;
  for (int octets = 1; octets <= kMost; ++octets) {
    int blocks = 0;
    for (const ScoredSearch& search : searches)
      blocks += blocks_of(octets_in(*search.tables), octets) * tiles_of(*search.tables);
    const double time = blocks_of(blocks, multiprocessors) * (octets + kLoading);
    if (octets == 1 || time < least) {
      least = time;
      best = octets;
    }
  }
  return best;
}

// A search's octets, from number `first` on, in slices as even as can be.
void add_slices(const ScoredSearch& search, const ScoreWindow& window, int first, int octets,
                int a_slice, std::vector<CoarseSlice>& out) {
  const CoarseTables& tables = *search.tables;
  const int count = blocks_of(octets, a_slice);
  for (int i = 0; i < count; ++i) {
    CoarseSlice slice{};
    slice.first_octet = first + octets * i / count;
    slice.octet_count = first + octets * (i + 1) / count - slice.first_octet;
    slice.image = search.image;
    slice.first_x = tables.first_x;
    slice.first_y = tables.first_y;
    slice.blocks = tables.blocks;
    slice.position_rows = tables.rows;
    slice.left = window.left;
    slice.top = window.top;
    slice.quads = window.tile_columns() / 4;
    slice.rows = window.tile_rows();
    out.push_back(slice);
  }
}

// Rows of a tile that has room for all windows; false where the device has none.
bool lay_out_tile(const std::vector<ScoredSearch>& searches, std::size_t limit, ScorePlan& plan) {
  int columns = 0;
  int rows = 0;
  for (const ScoredSearch& search : searches) {
    const ScoreWindow window = score_window_of(*search.tables);
    columns = std::max(columns, window.tile_columns());
    rows = std::max(rows, window.tile_rows());
  }
  // With the same banks in all rows, strips that lie beside each other hardly meet in one.
  for (const int pitch : {blocks_of(columns, kBanks) * kBanks, columns}) {
    plan.pitch = pitch;
    plan.tile_words = pitch * rows;
    plan.shared_bytes = static_cast<std::size_t>(plan.tile_words) * kWordKinds * sizeof(unsigned);
    if (plan.shared_bytes <= limit) return true;
  }
  return false;
}

}  // namespace

std::optional<ScorePlan> score_plan_of(const std::vector<ScoredSearch>& searches,
                                       int multiprocessors, std::size_t most_shared_bytes) {
  ScorePlan plan;
  if (!lay_out_tile(searches, most_shared_bytes, plan)) return std::nullopt;
  const int a_slice = octets_a_slice(searches, multiprocessors);
  for (const ScoredSearch& search : searches) {
    auto made = octets_of(*search.tables, search.threshold, search.first_plane, plan.pitch);
    if (!made) return std::nullopt;
    add_slices(search, made->window, static_cast<int>(plan.octets.size()),
               static_cast<int>(made->octets.size()), a_slice, plan.slices);
    std::move(made->octets.begin(), made->octets.end(), std::back_inserter(plan.octets));
    plan.tiles = std::max(plan.tiles, tiles_of(*search.tables));
  }
  return plan;
}

}  // namespace patternd::cuda
