// The coarsest level, searched whole: exact masked NCC at every position, for every angle and
// scale (T10–T12).
//
// For each angle and scale a plane holds the turned pattern as zero-mean 16-bit integers T, so that
// the numerator of the NCC is Σ T·S, an exact 32-bit sum. Its denominator needs the window's energy
// Σ(S − S̄)² under the turned mask. That of a smaller mask is never larger, so one energy over the
// pixels that a group of neighbouring angles has in common bounds the scores of all of them; only
// the few windows that pass are scored exactly, from integer sums.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "pipeline/coarse_search_kernel.h"
#include "pipeline/image.h"
#include "pipeline/match_angles.h"
#include "pipeline/pattern_pyramid.h"
#include "pipeline/suppress.h"

namespace patternd {

// A pyramid level laid out for the kernel, shared by all patterns that start there.
class CoarseImage {
 public:
  CoarseImage() = default;
  // `margin`: pixels around the picture that a search may read.
  CoarseImage(int width, int height, int margin);
  void build(const ImageView& level);
  [[nodiscard]] CoarseRows rows() const;
  [[nodiscard]] int margin() const { return margin_; }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  int width_ = 0;
  int height_ = 0;
  int margin_ = 0;
  std::ptrdiff_t stride_ = 0;
  std::vector<std::int32_t> pairs_;
  std::vector<std::uint32_t> sums_;
  std::vector<std::uint32_t> squares_;
};

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
  };
  struct Plane {
    double angle_deg = 0;
    double scale = 1;
    double phase_x = 0;
    double phase_y = 0;
    int pixels = 0;
    double inverse_norm = 0;
    float inverse_length = 0;
    int left = 0;  // the template's first column and row, relative to the position
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
  };
  static constexpr std::int32_t kAllVisible = -1;
  static constexpr std::int32_t kSkip = -2;
  int first_x = 0;
  int first_y = 0;
  int blocks = 0;  // of kBlock positions, along x
  int rows = 0;    // of positions
  std::vector<Plane> planes;
  std::vector<Group> groups;
};

class CoarseSearch {
 public:
  struct Plane;
  // Memory of one thread's work.
  class Scratch {
   public:
    explicit Scratch(const CoarseSearch& search);

   private:
    friend class CoarseSearch;
    std::vector<std::int32_t> numerators_;
    std::vector<float> bounds_;
    std::vector<std::uint8_t> passes_;
    std::vector<RowMaxima> maxima_;
  };

  CoarseSearch(const std::vector<PatternLevel>& pyramid, const CoarseConfig& config);
  CoarseSearch(CoarseSearch&&) noexcept;
  CoarseSearch& operator=(CoarseSearch&&) noexcept;
  ~CoarseSearch();

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
  struct Group;
  struct BorderBlock;
  [[nodiscard]] std::vector<std::size_t> planes_beside(std::size_t plane) const;
  void score_row(Plane& plane, const CoarseRows& image, int y, const std::int32_t* numerators,
                 Scratch& scratch, const float* bounds, RowMaxima& maxima) const;
  void score_block(const Plane& plane, const CoarseRows& image, int x, int y, int border,
                   const std::int32_t* numerators, RowMaxima& maxima) const;

  CoarseConfig config_;
  int first_x_ =
      0;  // searched positions: first_x_ + [0, blocks_·kBlock), first_y_ + [0, bands_·kBand)
  int first_y_ = 0;
  int blocks_ = 0;
  int bands_ = 0;
  std::vector<Plane> planes_;
  std::vector<Group> groups_;
  std::vector<PeakList> lists_;
  std::vector<PlaneNeighbours> neighbours_;
};

}  // namespace patternd
