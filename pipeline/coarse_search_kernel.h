// The inner loops of the coarse search: integer sums over many positions at once. Everything here
// is exact, so that every instruction set gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace patternd {

// Positions are worked on in blocks of this many along x, whatever the vector's length.
inline constexpr int kBlock = 16;
// Rows of positions that share a load of the image.
inline constexpr int kBand = 4;

// A coarse level prepared for searching; pointers stand at pixel (0, 0), and enough pixels (of
// value 0) lie around the picture that a template at any searched position stays inside.
//   pairs[x]   S(x) in the low half, S(x+1) in the high half: one 32-bit lane is two taps of the
//              window that starts at x
//   sums[x]    S(…) + … + S(x−1) of the row, modulo 2^32; squares[x] likewise
struct CoarseRows {
  const std::int32_t* pairs = nullptr;
  const std::uint32_t* sums = nullptr;
  const std::uint32_t* squares = nullptr;
  std::ptrdiff_t stride = 0;  // elements between rows, the same for the three
};

[[nodiscard]] inline std::int32_t pair_of(int low, int high) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(low & 0xFFFF) |
                                   (static_cast<std::uint32_t>(high & 0xFFFF) << 16));
}

// Pixels [begin, end) of a template's row, relative to the position.
struct MaskRun {
  int row = 0;
  int begin = 0;
  int end = 0;
};

// What a band of positions, kBand rows of them, takes from the image: pairs of pixels, each with a
// weight for every row of positions that it counts in; row k of positions takes template row `image
// row − k`. Near the template's rim not all rows count, so the pairs are sorted into parts by the
// rows for which they hold weights.
struct BandPlace {
  std::int32_t row = 0;  // of the image, from the band's first row of positions
  std::int32_t column = 0;
};
struct BandPart {
  int first = 0;  // row of positions
  int rows = 0;
  std::vector<BandPlace> places;
  std::vector<std::int32_t> weights;  // `rows` pairs of weights a place
};
// Rows that a part may hold: {0, 1}, {2, 3}, {0, 1, 2}, {1, 2, 3}, all.
inline constexpr int kBandParts = 5;
struct BandWeights {
  BandPart parts[kBandParts];
  BandWeights();
  // Adds a pair of pixels with its kBand pairs of weights, to the smallest part that has those that
  // are not 0; to none where all are.
  void add(const BandPlace& place, const std::int32_t (&weights)[kBand]);
};

// Σ T·S for the kBand rows from `y` and positions [x_begin, x_end), a multiple of kBlock:
// out[k·out_stride + x − x_begin]. |Σ T·S| must fit 31 bits.
void correlate_band(const BandWeights& band, const CoarseRows& image, int y, int x_begin, int x_end,
                    std::int32_t* out, std::ptrdiff_t out_stride);
void correlate_band_reference(const BandWeights& band, const CoarseRows& image, int y, int x_begin,
                              int x_end, std::int32_t* out, std::ptrdiff_t out_stride);

// ΣS and ΣS² over the mask's runs at the kBlock positions from (x, y), modulo 2^32.
struct BlockSums {
  std::uint32_t sum[kBlock];
  std::uint32_t square[kBlock];
};
void window_sums(const std::vector<MaskRun>& runs, const CoarseRows& image, int x, int y,
                 BlockSums& out);

// Kinds of blocks: all positions see everything that is asked about, the block is left out; else
// an index into a list of blocks in which that differs.
inline constexpr std::int32_t kAllVisible = -1;
inline constexpr std::int32_t kSkip = -2;

// 1 over the visible pixels of a mask at each position of a block; 0 where there are none.
struct BlockCounts {
  float per_pixel[kBlock];
};

// Blocks of positions along a row, each of a kind.
struct BlockRow {
  int x = 0;  // of the first position
  int y = 0;
  int blocks = 0;
  const std::int32_t* kinds = nullptr;
};

// For each position: the mean S̄ over the mask's visible pixels, and √Σ(S − S̄)², at least 1e-6.
// `complete` holds where all of the mask is visible, `border` otherwise.
void energy_row(const std::vector<MaskRun>& runs, const BlockCounts& complete,
                const BlockCounts* border, const CoarseRows& image, const BlockRow& row,
                float* means, float* roots);

// What the score of each position of a block depends on beside the picture: n, ΣT over the n
// pixels that count there, and 1 / sqrt(n ΣT² − (ΣT)²), which is 0 where nothing is to be scored.
struct BlockTerms {
  float pixels[kBlock];
  float sum[kBlock];
  float inverse_norm[kBlock];
};
// A block of positions of which some see only a part of the pattern, or may not be searched.
struct BorderBlock {
  BlockTerms terms;             // pixels: visible, 0: not searched
  float least[kBlock];          // see find_passing
  std::int64_t sum[kBlock];     // ΣT over the visible pixels
  double inverse_norm[kBlock];  // 1 / sqrt(n ΣT² − (ΣT)²)
};

// passes[i] becomes 1 where at some position of block i |ΣTS − mean·ΣT| exceeds least·root, else 0;
// without `absolute`, ΣTS − mean·ΣT itself. ΣT is 0 and `least` holds where all is visible.
void find_passing(const std::int32_t* numerators, const float* means, const float* roots,
                  float least, const BorderBlock* border, bool absolute, const BlockRow& row,
                  std::uint8_t* passes);

// NCC of each position in single precision: (n ΣTS − ΣT ΣS) · inverse_norm / sqrt(n ΣS² − (ΣS)²),
// 0 where the window is flat. Good to about 1e-3, for deciding which positions to score exactly.
void estimate_scores(const std::int32_t* numerators, const BlockSums& sums, const BlockTerms& terms,
                     float* scores);

}  // namespace patternd
