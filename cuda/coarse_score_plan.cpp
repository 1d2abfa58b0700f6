#include "cuda/coarse_score_plan.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace patternd::cuda {
namespace {

constexpr int kWordKinds = 3;  // of the samples, and two of their squares
constexpr int kBanks = 32;     // of shared memory, a word each
// Warps that a multiprocessor takes at a time, by the kernel's registers.
constexpr int kResidentWarps = 16;

int blocks_of(int size, int of_a_block) { return (size + of_a_block - 1) / of_a_block; }

int tiles_of(const CoarseTables& tables, int warps) {
  return blocks_of(tables.blocks * kCoarseBlock, warps * kScoreColumns) *
         blocks_of(tables.rows, kScoreRows);
}

int octets_in(const CoarseTables& tables) { return static_cast<int>(tables.groups.size()); }

// Warps of a block, and octets that it takes one after the other.
struct Division {
  int warps;
  int octets;
};

// What a multiprocessor takes for some blocks at a time, in times of an octet when it is full: each
// warp for its octets, and for the block's tile, of which it loads a part a turn. Fewer warps wait
// more for memory.
double time_of_wave(std::int64_t blocks, int warps_a_block, double octets, double tile) {
  const double warps = static_cast<double>(blocks * warps_a_block);
  const double full = std::min(1.0, warps / kResidentWarps);
  return warps * (octets + tile) / (0.4 + 0.6 * full);
}

// Tiles take less in wide blocks, and less an octet where a block takes several; but then fewer
// blocks spread less evenly. The first blocks load their tiles all at once, later ones while others
// multiply, the more so the fewer warps wait for each other. The numbers are those of an H200, 1 to
// 16 patterns of 128×128 in 1024×1024 (cuda/measurements/2026-11-30-h200-divisions.txt).
double time_of(const std::vector<ScoredSearch>& searches, const Division& division,
               int multiprocessors) {
  constexpr double kFirstTurn = 0.14;
  const double turn = 0.08 + 0.0025 * division.warps;
  std::int64_t blocks = 0;
  int turns = 0;
  double octets = 0;
  for (const ScoredSearch& search : searches) {
    const ScoreWindow window = score_window_of(*search.tables);
    const int quads = (window.tile_columns(division.warps) / 4 + 1) * window.tile_rows();
    turns = std::max(turns, blocks_of(quads, division.warps * (kWarpSize - 1)));
    const int tiles = tiles_of(*search.tables, division.warps);
    blocks += std::int64_t{blocks_of(octets_in(*search.tables), division.octets)} * tiles;
    octets += static_cast<double>(octets_in(*search.tables)) * tiles;
  }
  if (blocks == 0) return 0;
  const auto wave = [&](std::int64_t some, double a_turn) {
    return time_of_wave(some, division.warps, octets / static_cast<double>(blocks), a_turn * turns);
  };
  const std::int64_t resident = kResidentWarps / division.warps;
  const std::int64_t all = (blocks + multiprocessors - 1) / multiprocessors;
  const std::int64_t first = std::min(all, resident);
  const double waves = static_cast<double>((all - first) / resident);
  return wave(first, kFirstTurn) + waves * wave(resident, turn) +
         wave((all - first) % resident, turn);
}

Division best_division(const std::vector<ScoredSearch>& searches, int multiprocessors) {
  constexpr int kMostOctets = 6;
  Division best{kScoreMostWarps, 1};
  for (int warps = kScoreMostWarps; warps >= kScoreMostWarps / 2; warps /= 2) {
    for (int octets = 1; octets <= kMostOctets; ++octets) {
      if (time_of(searches, {warps, octets}, multiprocessors) <
          time_of(searches, best, multiprocessors))
        best = {warps, octets};
    }
  }
  return best;
}

// A search's octets, from number `first` on, in slices as even as can be.
void add_slices(const ScoredSearch& search, const ScoreWindow& window, int first, int octets,
                const Division& division, std::vector<CoarseSlice>& out) {
  const CoarseTables& tables = *search.tables;
  const int count = blocks_of(octets, division.octets);
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
    slice.quads = window.tile_columns(division.warps) / 4;
    slice.rows = window.tile_rows();
    out.push_back(slice);
  }
}

// Rows of a tile that has room for all windows; false where the device has none.
bool lay_out_tile(const std::vector<ScoredSearch>& searches, int warps, std::size_t limit,
                  ScorePlan& plan) {
  int columns = 0;
  int rows = 0;
  for (const ScoredSearch& search : searches) {
    const ScoreWindow window = score_window_of(*search.tables);
    columns = std::max(columns, window.tile_columns(warps));
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
  Division division = best_division(searches, multiprocessors);
  while (!lay_out_tile(searches, division.warps, most_shared_bytes, plan)) {
    division.warps /= 2;
    if (division.warps == 0) return std::nullopt;
  }
  plan.warps = division.warps;
  for (const ScoredSearch& search : searches) {
    auto made = octets_of(*search.tables, search.threshold, search.first_plane, plan.pitch);
    if (!made) return std::nullopt;
    add_slices(search, made->window, static_cast<int>(plan.octets.size()),
               static_cast<int>(made->octets.size()), division, plan.slices);
    std::move(made->octets.begin(), made->octets.end(), std::back_inserter(plan.octets));
    plan.tiles = std::max(plan.tiles, tiles_of(*search.tables, division.warps));
  }
  return plan;
}

}  // namespace patternd::cuda
