// What the coarse search by matrix units (kernels/coarse_score.cu) multiplies with: a search's
// planes eight at a time, as strips of their windows. Needs no GPU.
#pragma once

#include <optional>
#include <vector>

#include "cuda/driver_api.h"  // before the parameters, whose kWarpSize it has as an attribute too
#include "cuda/kernels/parameters.h"
#include "pipeline/coarse_search.h"

namespace patternd::cuda {

struct OctetTables {
  CoarseOctet octet{};  // without addresses
  std::vector<CoarseStrips> strips;
  std::vector<CoarseFactors> factors;
  std::vector<CoarseMasks> masks;
  std::vector<CoarseTerms> terms;
  std::vector<int> tiles;
  std::vector<CoarseTileKinds> tile_kinds;
  std::vector<CoarseTerms> parts;
};

// The pixels around a position that all planes of a search have in their windows.
struct ScoreWindow {
  int left = 0;  // relative to the position; words of the picture begin there, for the first one
  int top = 0;
  int columns = 0;  // a multiple of four
  int rows = 0;
  // What blocks of so many warps take in around their tile of positions.
  [[nodiscard]] int tile_columns(int warps) const {
    return warps * kScoreColumns - kStripWidth + columns;
  }
  [[nodiscard]] int tile_rows() const { return kScoreRows - 1 + rows + rows % kStepRows; }
};

// What a position's score has to be over.
struct ScoreThreshold {
  double score = 0;
  bool any_polarity = false;
};
// 1 / the least score by floats at which a position is scored exactly.
[[nodiscard]] double estimate_gain(double threshold);

struct SearchOctets {
  std::vector<OctetTables> octets;
  ScoreWindow window;
};

// The octets of a search whose tiles have `pitch` words a row, neighbouring planes together;
// `first_plane` is the number of its first plane. Nothing where a weight does not fit two bytes of
// the kernel's kind.
[[nodiscard]] std::optional<SearchOctets> octets_of(const CoarseTables& tables,
                                                    const ScoreThreshold& threshold,
                                                    int first_plane, int pitch);
// The window alone.
[[nodiscard]] ScoreWindow score_window_of(const CoarseTables& tables);

}  // namespace patternd::cuda
