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

// Pixels [begin, end) of a template's row, relative to the position.
struct MaskRun {
  int row = 0;
  int begin = 0;
  int end = 0;
};

// One image row's share of a band: image row `row` above the band's first position row, pixels from
// `column`, two a pair. The weights of a pair come in fours, for the band's kBand rows of
// positions: row k takes template row `row − k`.
struct WeightSpan {
  int row = 0;
  int column = 0;
  int pairs = 0;
};
struct BandWeights {
  std::vector<WeightSpan> spans;
  std::vector<std::int32_t> weights;  // the sum of `pairs`, times kBand
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

// For each position of [x_begin, x_end) of row y: factor · sqrt(Σ(S − S̄)²) over the runs, which
// hold `pixels` pixels.
void energy_row(const std::vector<MaskRun>& runs, int pixels, const CoarseRows& image, int y,
                int x_begin, int x_end, float factor, float* out);

// passes[i] becomes 1 where in block i some numerator · factor exceeds its bound, else 0.
// `absolute`: its magnitude.
void find_passing(const std::int32_t* numerators, const float* bounds, float factor, bool absolute,
                  int blocks, std::uint8_t* passes);

// What the score of each position of a block depends on beside the picture: n, ΣT over the n
// pixels that count there, and 1 / sqrt(n ΣT² − (ΣT)²), which is 0 where nothing is to be scored.
struct BlockTerms {
  float pixels[kBlock];
  float sum[kBlock];
  float inverse_norm[kBlock];
};
// NCC of each position in single precision: (n ΣTS − ΣT ΣS) · inverse_norm / sqrt(n ΣS² − (ΣS)²),
// 0 where the window is flat. Good to about 1e-3, for deciding which positions to score exactly.
void estimate_scores(const std::int32_t* numerators, const BlockSums& sums, const BlockTerms& terms,
                     float* scores);

}  // namespace patternd
