// What a coarse search works out when it is made: its planes, and at which positions each of them
// is compared with how much of the pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pipeline/coarse_search_kernel.h"
#include "pipeline/coarse_template.h"
#include "pipeline/image.h"
#include "pipeline/match.h"
#include "pipeline/pattern_pyramid.h"
#include "pipeline/row_major.h"
#include "pipeline/suppress.h"

namespace patternd {

struct CoarseConfig {
  int level = 0;
  int width = 0;  // of the picture at that level
  int height = 0;
  int max_sample = 128;  // magnitude of the picture's samples as CoarseImage holds them
  std::vector<double> angles_deg;
  bool circular = false;  // the first and last angle are neighbours
  std::vector<double> scales;
  bool quincunx = false;     // search half-way between pixels too: two planes an angle
  double least_visible = 1;  // share of a plane's pixels that must lie inside
  double threshold = 0.5;    // scores at or under it are no candidates
  bool any_polarity = false;
  ImageView valid;         // at that level, 0 outside; empty: all valid
  std::optional<Roi> roi;  // level-0 pixels, of the reference point
  double ref_dx = 0;       // from the pattern's centre to its reference point, level-0 pixels
  double ref_dy = 0;
  std::size_t peaks_per_plane = 128;
};

// Planes of neighbouring angles that share a bound.
inline constexpr std::size_t kPlanesPerGroup = 8;

// Positions: first_x + [0, blocks·kBlock), first_y + [0, bands·kBand).
struct CoarseGrid {
  int first_x = 0;
  int first_y = 0;
  int blocks = 0;
  int bands = 0;

  [[nodiscard]] int rows() const { return bands * kBand; }
  [[nodiscard]] std::size_t block_count() const {
    return static_cast<std::size_t>(blocks) * static_cast<std::size_t>(rows());
  }
  // Where a block of a row of positions stands among all.
  [[nodiscard]] std::size_t block_at(int row, int block) const {
    return row_major(row, block, blocks);
  }
};

// The turned pattern of one angle and scale, and its positions.
struct CoarsePlane {
  double angle_deg = 0;
  double scale = 1;
  double phase_x = 0;
  double phase_y = 0;
  int pixels = 0;
  double inverse_norm = 0;  // 1 / sqrt(n ΣT²)
  float least = 0;          // as in BorderBlock, of positions that see all of it
  BlockTerms terms;         // likewise
  std::vector<MaskRun> runs;
  BandWeights band;
  std::vector<std::int32_t> block_class;  // of each block of each row: see BlockClass
  std::vector<BorderBlock> border;
  std::vector<int> band_begin;  // first block of each band that is not skipped, and the last + 1
  std::vector<int> band_end;

  // The extents of what it reads around a position.
  int left = 0;
  int right = 0;
  int top = 0;
  int bottom = 0;
};

// Planes that share a bound: the pixels that they have in common.
struct CoarseGroup {
  std::size_t first = 0;
  std::size_t count = 0;
  std::vector<MaskRun> common;
  int common_pixels = 0;
  // As in CoarsePlane, with the blocks at whose positions not all common pixels are visible.
  std::vector<std::int32_t> block_class;
  std::vector<BlockCounts> border;
};

struct CoarseLayout {
  CoarseGrid grid;
  std::vector<CoarsePlane> planes;
  std::vector<CoarseGroup> groups;
  std::vector<PlaneNeighbours> neighbours;
};

[[nodiscard]] CoarseLayout lay_out(const std::vector<PatternLevel>& pyramid,
                                   const CoarseConfig& config);

}  // namespace patternd
