// The inner loops of connected components, one row at a time, in the best instruction set of the
// machine. Rows are bit strings: bit x % 64 of word x / 64 is pixel x; bits beyond the width are 0,
// and one word of zeros follows. How they fit together: COMPONENTS.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pipeline/components_statistics.h"

namespace patternd::components {

// Words of a row of bits, the zero word behind it included.
[[nodiscard]] inline std::size_t row_words(int width) {
  return static_cast<std::size_t>(width) / 64 + 2;
}
// Bytes behind a row's last pixel that the loops may read.
inline constexpr std::size_t kRowTailBytes = 128;
// Labels behind a row's last run that write_labels may read.
inline constexpr std::size_t kLabelTail = 16;

// A run of the row and a run of the row above that touch; both count from 1.
struct Join {
  std::uint16_t run;
  std::uint16_t upper;
};

// What a run adds to the Geometry of its component.
struct RunSums {
  std::uint32_t sum_2x;
  std::uint32_t sum_y;
  std::uint32_t length;
  std::uint32_t sides;  // left_from_end, right << 16
};

// Elements behind the last run that the loops may read and write.
inline constexpr std::size_t kRunTail = 16;

// The runs of one row, left to right. Memory for `width` runs (and kRunTail) and 3·width joins at
// most.
struct RowRuns {
  std::uint16_t* start = nullptr;
  std::uint16_t* end = nullptr;          // the last pixel, inclusive
  std::uint16_t* first_upper = nullptr;  // the first run above that it touches, from 1; 0: none
  Join* joins = nullptr;                 // all other touches
  std::size_t count = 0;
  std::size_t join_count = 0;
  // Scratch.
  std::uint16_t* touches = nullptr;      // all ones where the run touches one above
  std::uint16_t* fresh_start = nullptr;  // where the runs with a new label start
  RunSums* sums = nullptr;
};

// Labels while they are provisional: a forest in which a parent is never larger than its child, so
// that the root is the component's first label in scan order. Label 0 is nobody's. Arrays of
// statistics are indexed by label; null: not wanted.
struct Forest {
  std::uint32_t* parent = nullptr;
  std::uint32_t next = 1;  // the next unused label
  Geometry* geometry = nullptr;
  Intensity* intensity = nullptr;
  Moments* moments = nullptr;
  const std::uint64_t* squares = nullptr;  // squares[x]: sum of the squares below x
};

// The root of a label; halves the path on its way.
inline std::uint32_t find_root(std::uint32_t* parent, std::uint32_t label) {
  while (parent[label] != label) {
    parent[label] = parent[parent[label]];
    label = parent[label];
  }
  return label;
}

// Joins two components and returns their common root.
inline std::uint32_t unite(std::uint32_t* parent, std::uint32_t a, std::uint32_t b) {
  a = find_root(parent, a);
  b = find_root(parent, b);
  const std::uint32_t low = a < b ? a : b;
  parent[a] = low;
  parent[b] = low;
  return low;
}

// bits: low <= pixel <= high.
void threshold_row(const std::uint8_t* row, int width, std::uint8_t low, std::uint8_t high,
                   std::uint64_t* bits);
void threshold_row(const std::uint16_t* row, int width, std::uint16_t low, std::uint16_t high,
                   std::uint64_t* bits);
// bits: |a[x] − b[x]| <= limit; with `narrow` only those that were set stay.
void similar_row(const std::uint8_t* a, const std::uint8_t* b, int width, std::uint8_t limit,
                 bool narrow, std::uint64_t* bits);
void similar_row(const std::uint16_t* a, const std::uint16_t* b, int width, std::uint16_t limit,
                 bool narrow, std::uint64_t* bits);

// The runs of `bits`, and how they touch those of `upper` (the row above; zeros: none). Fills all
// of `runs`.
void find_runs(const std::uint64_t* bits, const std::uint64_t* upper, int width, bool eight,
               RowRuns& runs);

// A row under similarity: `starts` has the first pixel of each run set (pixel 0 always); up,
// up_left, up_right have a pixel set that connects to that neighbour above.
struct SimilarityBits {
  const std::uint64_t* starts;
  const std::uint64_t* upper_starts;
  const std::uint64_t* up;
  const std::uint64_t* up_left;
  const std::uint64_t* up_right;
};
void find_similar_runs(const SimilarityBits& bits, int width, RowRuns& runs);

// Gives every run of row y its label (labels[i] for run i, from 1; labels[0] = 0), and adds it to
// the label's statistics. upper_labels likewise for the row above. `row` may be null without
// intensity.
void label_runs(const RowRuns& runs, int y, const std::uint8_t* row,
                const std::uint32_t* upper_labels, std::uint32_t* labels, Forest& forest);
void label_runs(const RowRuns& runs, int y, const std::uint16_t* row,
                const std::uint32_t* upper_labels, std::uint32_t* labels, Forest& forest);

// Adds rows first_y to last_y, which have the same runs and labels as the row that label_runs saw
// last, to the statistics, but for intensity.
void repeat_runs(const RowRuns& runs, int first_y, int last_y, const std::uint32_t* labels,
                 Forest& forest);
// The intensity of one such row.
void add_intensity(const RowRuns& runs, int y, const std::uint8_t* row, const std::uint32_t* labels,
                   Forest& forest);
void add_intensity(const RowRuns& runs, int y, const std::uint16_t* row,
                   const std::uint32_t* labels, Forest& forest);

// out[x] = the label of the run that pixel x belongs to, 0 outside. `bits` as in find_runs, or
// (every_pixel) the starts as in find_similar_runs. labels[i] for run i from 1; kLabelTail more may
// be read.
void write_labels(const std::uint64_t* bits, const std::uint32_t* labels, int width,
                  bool every_pixel, std::int32_t* out);

}  // namespace patternd::components
