// The coarsest level, searched whole: exact masked NCC at every position, for every angle and
// scale (T10–T12).
//
// For each angle and scale a plane holds the turned pattern as zero-mean 16-bit integers T, so that
// the numerator of the NCC is Σ T·S, an exact 32-bit sum. Its denominator needs the window's energy
// Σ(S − S̄)² under the turned mask. That of a smaller mask is never larger, so one energy over the
// pixels that a group of neighbouring angles has in common bounds the scores of all of them, at the
// picture's border too (coarse_layout.cpp, least_of); only the few windows that pass are scored
// exactly, from integer sums.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/coarse_image.h"
#include "pipeline/coarse_layout.h"
#include "pipeline/pattern_pyramid.h"
#include "pipeline/suppress.h"

namespace patternd {

// A coarse find, in level-0 pixels of the pattern's centre.
struct CoarseFind {
  double x = 0;
  double y = 0;
  double angle_deg = 0;
  double scale = 1;
  double score = 0;
  bool inverted = false;
};

// A search's tables as plain numbers, for another processor to work from; templates upright to the
// picture's grid, positions as in CoarseSearch.
struct CoarseTables {
  struct Border {
    std::int32_t pixels[kBlock];  // visible; 0: not searched
    std::int64_t sum[kBlock];     // ΣT over them
    double inverse_norm[kBlock];  // 1 / sqrt(n ΣT² − (ΣT)²)
    float least[kBlock];          // see find_passing
  };
  struct Plane {
    double angle_deg = 0;
    double scale = 1;
    double phase_x = 0;
    double phase_y = 0;
    int pixels = 0;
    double inverse_norm = 0;
    float least = 0;  // see find_passing: of positions that see all of it
    int left = 0;     // the template's first column and row, relative to the position
    int top = 0;
    int width = 0;
    int height = 0;
    std::vector<std::int16_t> taps;  // height rows of width
    std::vector<MaskRun> runs;
    std::vector<std::int32_t> block_class;  // kAllVisible, kSkip, or an index into border
    std::vector<Border> border;
    std::vector<std::size_t> neighbours;
    std::size_t group = 0;
  };
  struct Group {
    std::vector<MaskRun> common;
    int common_pixels = 0;
    std::vector<std::int32_t> block_class;  // with the blocks that don't see all common pixels
    std::vector<BlockCounts> border;
  };
  static constexpr std::int32_t kAllVisible = patternd::kAllVisible;
  static constexpr std::int32_t kSkip = patternd::kSkip;
  int first_x = 0;
  int first_y = 0;
  int blocks = 0;  // of kBlock positions, along x
  int rows = 0;    // of positions
  std::vector<Plane> planes;
  std::vector<Group> groups;
};

class CoarseSearch {
 public:
  // Memory of one thread's work.
  class Scratch {
   public:
    explicit Scratch(const CoarseSearch& search);

   private:
    friend class CoarseSearch;
    std::vector<std::int32_t> numerators_;
    std::vector<float> means_;  // of the group's common pixels, and their roots
    std::vector<float> roots_;
    std::vector<std::uint8_t> passes_;
    std::vector<RowMaxima> maxima_;
  };

  CoarseSearch(const std::vector<PatternLevel>& pyramid, const CoarseConfig& config);

  // Work is split into groups of neighbouring angles; any number may run at the same time, each
  // with its own scratch.
  [[nodiscard]] std::size_t groups() const;
  void search_group(std::size_t group, const CoarseRows& image, Scratch& scratch);
  // After all groups: the peaks that no neighbour beats, best first, at most the capacity of
  // `peaks`.
  void suppress(std::vector<PlanePeak>& peaks);
  [[nodiscard]] CoarseFind find(const PlanePeak& peak) const;

  // The margin that CoarseImage needs for this search.
  [[nodiscard]] int margin() const;
  [[nodiscard]] std::size_t planes() const;
  [[nodiscard]] std::size_t memory_bytes() const;
  // Multiply-adds of a search: positions · Σ pixels of the planes.
  [[nodiscard]] double operations() const;
  [[nodiscard]] CoarseTables tables() const;
  // Most pixels of any plane.
  [[nodiscard]] int largest_plane() const;

 private:
  void measure_band(const CoarseGroup& group, const CoarseRows& image, int band,
                    Scratch& scratch) const;
  void search_band(const CoarsePlane& plane, const CoarseRows& image, int band, Scratch& scratch,
                   RowMaxima& maxima) const;
  void score_row(const CoarsePlane& plane, const CoarseRows& image, int row,
                 const std::int32_t* numerators, Scratch& scratch, RowMaxima& maxima) const;
  void score_block(const CoarsePlane& plane, const CoarseRows& image, int x, int y, int border,
                   const std::int32_t* numerators, RowMaxima& maxima) const;

  CoarseConfig config_;
  CoarseLayout layout_;
  std::vector<PeakList> lists_;  // a plane each
};

}  // namespace patternd
