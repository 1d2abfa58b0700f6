// The kernels' parameters: one plain struct a kernel, the same bytes on the host and in every
// device image. No pointers and no size_t: addresses are 64-bit fields, in 32-bit images too, so
// that one layout serves all. Sizes are checked on both sides by the static_asserts here.
#pragma once

namespace patternd::cuda {

using Address = unsigned long long;

inline constexpr int kWarpSize = 32;  // compared with the device's when it is opened

// ---- convert ------------------------------------------------------------------------------------
enum ConvertKind { kConvertPacked, kConvertShifted, kConvertColour, kConvertMosaic };
// Weights of a mosaic's neighbourhood at one kind of site: pipeline/frame_luma.h's BayerWeights.
struct BayerSite {
  unsigned centre;
  unsigned horizontal;
  unsigned vertical;
  unsigned diagonal;
};
struct ConvertParameters {
  Address input;
  Address output;
  int input_stride;
  int output_stride;
  int width;
  int height;
  int kind;   // ConvertKind
  int first;  // packed: the first luma byte; colour: 0 where red comes first, else 1
  int shift;  // bits up to full scale
  unsigned mask;
  int wide_output;  // 16 bits; a mosaic's input too
  int unused;
  BayerSite sites[4];  // by 2 · (row parity) + (column parity)
};
static_assert(sizeof(ConvertParameters) == 120);

// ---- rectify ------------------------------------------------------------------------------------
// A square of output pixels with one map: source x = base_x − 1/2 + Σ x[3 j + i] u^i v^j, y
// likewise, where u, v count from the square's middle. That half pixel makes rounding to the
// nearest whole number find the texel to the left (rectify.cu).
struct RectifyPatch {
  float x[9];
  float y[9];
  float base_x;  // whole numbers
  float base_y;
  int mask;   // kPatchAllValid, kPatchNoneValid, or index of this patch's rows of valid bits
  int table;  // −1, or index of this patch's side² explicit positions (x, y less the bases)
  int near;   // 1: a row's neighbours in a source of floats all exist, in few lines of the cache
  int unused;
};
static_assert(sizeof(RectifyPatch) == 96);
inline constexpr int kPatchAllValid = -1;
inline constexpr int kPatchNoneValid = -2;
inline constexpr int kMaxPatchSide = 32;

struct RectifyParameters {
  Address texture;  // the source, point mode, unnormalised coordinates, clamped
  Address patches;  // RectifyPatch[patches_down][patches_across]
  Address masks;    // u32[][side]: bit x of row y: output pixel has a source
  Address tables;   // float2[][side][side]
  Address output;
  int stride_bytes;
  int width;
  int height;
  int patch_side_log2;  // 3, 4, 5
  int patches_across;
  int rows_per_warp;  // a multiple of 4, at most the patch's side
  float scale;        // texture value -> grey level
  float border;       // grey level
  Address pixels;     // of a source of floats: its first, for plain loads; 0: by texture alone
  int source_stride;  // bytes
  int unused;
};
static_assert(sizeof(RectifyParameters) == 88);

// ---- pyramid ------------------------------------------------------------------------------------
struct PyramidLevel {
  Address address;
  int stride_bytes;
  int width;
  int height;
  int unused;
};
inline constexpr int kPyramidTileBytes = 128;      // of a row of the first level that a block takes
inline constexpr int kPyramidTileRows = 64;        // and how many rows
inline constexpr int kPyramidThreads = 256;        // a block: one for 16 bytes of two rows
inline constexpr int kPyramidLevelsPerLaunch = 6;  // that a tile yields
struct PyramidParameters {
  PyramidLevel levels[kPyramidLevelsPerLaunch + 1];  // [0] is read, the others are written
  Address moment;                                    // see note_moment
  int level_count;                                   // the one read included
  int unused;
};
static_assert(sizeof(PyramidParameters) == 184);

// ---- coarse search ------------------------------------------------------------------------------
inline constexpr int kCoarseBlock = 16;     // positions that share a class, as on the CPU (kBlock)
inline constexpr int kCoarseColumns = 16;   // positions of a thread, side by side
inline constexpr int kCoarseTileRows = 32;  // of positions, one a lane
inline constexpr int kCoarseMostWarps = 4;  // of a block, side by side
inline constexpr int kCoarsePlanes = 2;     // planes that share a pixel's load
// Shared memory a block for what becomes of a tile's sums.
constexpr int coarse_places_bytes(int tile_width) {
  return kCoarsePlanes * kCoarseTileRows * (4 * (tile_width + 1) + 2 * tile_width);
}
inline constexpr int kCoarseJudgeThreads = 256;
inline constexpr int kCoarseAllVisible = -1;
inline constexpr int kCoarseSkip = -2;

// A coarse level, and what is made of it for the search: `samples` stands at pixel (0, 0) of a copy
// in floats, each pixel less the middle of its range and 0 where it is invalid; `prefix` at column
// 0 of pairs {S(0) + … + S(x−1), the same of S²} modulo 2^32 for each row. Around the picture both
// go on as with zeros, as far as any search reads.
struct CoarseImage {
  Address pixels;
  Address valid;  // u8[height][valid_stride], 0 where invalid; 0: all valid
  Address samples;
  Address prefix;
  int stride_bytes;
  int valid_stride;
  int made_stride;  // elements a row of `samples` and `prefix`
  int made_right;   // columns of `prefix` from 0 on
  int width;
  int height;
  int is_16_bit;
  int unused;
};
static_assert(sizeof(CoarseImage) == 64);

// Pixels [begin, end) of a template's row, relative to the position.
struct CoarseRun {
  int row;
  int begin;
  int end;
};

// A block of positions of which some see only a part of the pattern, or may not be searched
// (pixels 0).
struct CoarseBorder {
  int pixels[kCoarseBlock];
  long long sum[kCoarseBlock];
  double inverse_norm[kCoarseBlock];
};
static_assert(sizeof(CoarseBorder) == 320);

// A position's window over the pixels that a group's planes have in common and that are visible:
// mean, and root of the energy. Only where |ΣTS − mean·ΣT| > least·root a plane may score over its
// threshold (pipeline/coarse_layout.cpp, least_of).
struct alignas(8) CoarseBound {
  float mean;
  float root;
};
// What it takes of a position in a border block: ΣT, least.
struct alignas(8) CoarseNeed {
  float sum;
  float least;
};

// Neighbouring angles that share a bound.
struct CoarseGroup {
  Address runs;
  Address bounds;       // CoarseBound[rows][16 · blocks]
  Address block_class;  // int[rows][blocks], as a plane's, of the common pixels
  Address border;       // float[][16]: 1 / visible common pixels, 0: none
  int run_count;
  int image;
  int first_x;
  int first_y;
  int blocks;
  int rows;
  float per_pixel;  // where all are visible
  int unused;
};
static_assert(sizeof(CoarseGroup) == 64);

// The taps of one row of a pair's templates: from column `begin` of the pair's box, an even number,
// the weights from tap number `first`.
struct CoarseSpan {
  int begin;
  int count;
  int first;
  int unused;
};

// Two planes of a group (neighbouring angles, or the two phases of one) that are searched together.
struct CoarsePair {
  Address weights;            // float[taps][kCoarsePlanes]
  Address spans;              // CoarseSpan[rows + 1], the last one's `first` the number of taps
  int planes[kCoarsePlanes];  // −1: none
  int group;
  int image;
  int left;  // of the box that both templates lie in, relative to the position
  int top;
  int width;
  int rows;
  int first_x;  // of the positions
  int first_y;
  int blocks;
  int position_rows;
};
static_assert(sizeof(CoarsePair) == 64);

// One angle and scale of one pattern.
struct CoarsePlane {
  Address taps;         // short[height][width]
  Address runs;         // CoarseRun[run_count]
  Address needs;        // CoarseNeed[][16], beside `border`
  Address block_class;  // int[rows][blocks]: kCoarseAllVisible, kCoarseSkip, index into border
  Address border;       // CoarseBorder[]
  Address scores;  // float[rows][16 · blocks]; negative: inverted; 0: none, also after a frame
  double inverse_norm;  // 1 / sqrt(n ΣT²)
  double threshold;
  double angle_deg;
  double scale;
  double spacing;  // level-0 pixels a pixel of the level
  float least;     // as in CoarseNeed, of positions that see all of the pattern
  float phase_x;
  float phase_y;
  int any_polarity;
  int search;  // index of the pattern
  int image;
  int left;  // of the template, relative to the position
  int top;
  int width;
  int height;
  int run_count;
  int pixels;
  int first_x;  // of the positions
  int first_y;
  int blocks;
  int rows;
  int neighbour_begin;  // in the list of neighbouring planes
  int neighbour_end;
  float gain;  // 1 / least estimated score that is worth an exact one
  int unused;
};
static_assert(sizeof(CoarsePlane) == 168);

// ---- coarse search by matrix units ----
inline constexpr int kOctet = 8;           // planes that are multiplied together
inline constexpr int kScoreRows = 8;       // of positions a warp takes
inline constexpr int kScoreColumns = 8;    // the same
inline constexpr int kScoreMostWarps = 8;  // of a block, side by side
inline constexpr int kStrips = 4;          // of a window that are multiplied at a time
inline constexpr int kStripWidth = 4;      // pixels
inline constexpr int kStepRows = 2;        // of each strip that a product takes

// Four strips of the windows, from rows and columns of their own, all as high. A product takes two
// rows of all four: 32 pixels.
struct CoarseStrips {
  int at[kStrips];  // word of the tile where each begins, for the tile's first position
  int steps;        // products one below the other
  int unused[3];
};
static_assert(sizeof(CoarseStrips) == 32);

// What a lane brings to a product over eight planes: of the plane lane / 4, of strip lane % 4, four
// pixels of the first row and of the second. A weight is 256 · high + low.
struct alignas(16) CoarseFactors {
  unsigned high[kStepRows];
  unsigned low[kStepRows];
};
// The same of the masks: 1 where a pixel counts.
struct alignas(8) CoarseMasks {
  unsigned counts[kStepRows];
};

// Of a position and a plane that is seen with n pixels: it may score where (ΣTS − mean·ΣS)·gain is
// over √(n·ΣS² − (ΣS)²), mean being that of T over the pixels. A gain of 0: never.
struct alignas(16) CoarseTerms {
  float pixels;  // n
  float mean;
  float gain;
  float inverted;  // −1: negatives count too, 0: they don't
};

// What 8×8 positions see of each of eight planes, a row each: kCoarseAllVisible, kCoarseSkip, or an
// index into the octet's parts. Of tiles that see all of all planes, or nothing, there is none.
struct alignas(16) CoarseTileKinds {
  int kinds[kOctet][kScoreRows];
};
inline constexpr int kTileAllVisible = -1;
inline constexpr int kTileSkipped = -2;

// Up to eight neighbouring planes of a pattern.
struct CoarseOctet {
  Address strips;   // CoarseStrips[strip_count + 1]
  Address factors;  // CoarseFactors[products + 1][32], the strips' one after the other
  Address masks;    // CoarseMasks[products + 1][32]
  Address terms;    // CoarseTerms[8]
  Address tiles;  // int[down][2 · blocks], of 8×8 positions: kTileAllVisible (all planes see all),
                  // kTileSkipped, or an index into tile_kinds
  Address tile_kinds;  // CoarseTileKinds[]
  Address parts;       // CoarseTerms[][8], of rows of eight positions that see parts
  int strip_count;
  int products;
  int first_plane;
  int unused;
};
static_assert(sizeof(CoarseOctet) == 72);

// Octets of a pattern that blocks take one after the other, from one tile of pixels.
struct CoarseSlice {
  int first_octet;
  int octet_count;
  int image;
  int first_x;  // of the positions
  int first_y;
  int blocks;
  int position_rows;
  int left;  // of the tile, relative to its first position; first_x + left is a multiple of 4
  int top;
  int quads;  // columns of the tile, in fours
  int rows;   // of the tile
  int unused;
};
static_assert(sizeof(CoarseSlice) == 48);

// A position that may score more than its threshold. (x, y) count from the plane's first.
struct CoarseLook {
  int plane;
  short x;
  short y;
  float numerator;
};
static_assert(sizeof(CoarseLook) == 12);

// A position that does.
struct CoarsePosition {
  int plane;
  short x;
  short y;
  float score;  // negative: inverted
};
struct CoarsePeak {
  float score;  // magnitude
  int inverted;
  int x;
  int y;
};
// A peak that no neighbouring plane beats.
struct CoarseFound {
  float score;
  int inverted;
  int x;
  int y;
  int plane;
};

inline constexpr int kPeakCapacity = 1024;   // a plane; more: overflow
inline constexpr int kFoundCapacity = 8192;  // a pattern; more: overflow
inline constexpr int kClearBlocks = 16;      // that clear what the search wrote
inline constexpr int kSelectThreads = 256;   // a block of the selection
inline constexpr int kSelectLanes = 8;       // of these for each find
inline constexpr int kSelectScores = 1024;   // that a block compares with at a time

// Counters that a frame starts from zero. `overflow` not zero: more was found than there is room
// for, and the frame is the CPU's.
struct CoarseCounters {
  unsigned looks;  // by matrix units: positions until now
  unsigned positions;
  unsigned overflow;
  unsigned ended;  // blocks of the search by matrix units
};

// How much of a pattern goes on.
struct CoarseLimits {
  int peaks_per_plane;
  int selected;
};

struct CoarseParameters {
  Address images;      // CoarseImage[image_count]
  Address groups;      // CoarseGroup[group_count]
  Address pairs;       // CoarsePair[pair_count]
  Address planes;      // CoarsePlane[plane_count]
  Address neighbours;  // int[]
  Address counters;    // CoarseCounters, then unsigned peak_counts[plane_count], found_counts[…]
  Address peak_counts;
  Address found_counts;
  Address positions;        // CoarsePosition[position_capacity]
  Address peaks;            // CoarsePeak[plane_count][kPeakCapacity]
  Address found;            // CoarseFound[search_count][kFoundCapacity]
  Address selected;         // TracedCandidate[search_count][select_limit], best first
  Address selected_counts;  // int[search_count]
  Address limits;           // CoarseLimits[search_count]
  Address loser_counts;     // int[search_count], zeroed for the trace
  Address looks;            // CoarseLook[look_capacity]
  Address octets;           // CoarseOctet[]
  Address slices;           // CoarseSlice[]
  Address search_moment;    // see note_moment
  Address suppression_moment;
  int image_count;
  int group_count;
  int pair_count;
  int slice_count;
  int plane_count;
  int search_count;
  unsigned look_capacity;
  unsigned position_capacity;
  int select_limit;   // most of any search
  int counter_words;  // from `counters` on, zeroed by the first kernel of a frame
  int chunk_rows;     // template rows that the search keeps in shared memory at a time
  int chunk_taps;     // most taps of so many rows
  int tile_pitch;     // floats (matrix units: words) a row of pixels in shared memory
  int tile_words;     // matrix units: of one kind of word
};
static_assert(sizeof(CoarseParameters) == 216);

// ---- trace and refine ---------------------------------------------------------------------------
// A place where a pattern may be; (x, y) is where its centre lies, in level-0 pixels.
struct TracedPose {
  double x;
  double y;
  double angle_deg;
  double scale;
};

struct TracedCandidate {
  TracedPose pose;
  double score;  // with the sign of `inverted` taken out: larger is better
  double visible;
  double runner_up;
  // From refinement, for the standard deviations: mean squared residual, gain, and the entries
  // (x, x), (y, y), (x, y), (angle, angle) of the inverse Gram matrix.
  double residual;
  double gain;
  double inverse[4];
  int search;
  int inverted;
  int alive;      // 0: dropped
  int converged;  // 1: refined
};
static_assert(sizeof(TracedCandidate) == 120);

// A level of the picture's pyramid.
struct TraceImage {
  Address texture;  // point mode, clamped
  Address valid;    // u8[height][valid_stride], 0 where invalid; only with has_valid
  int valid_stride;
  int width;
  int height;
  int has_valid;
};
static_assert(sizeof(TraceImage) == 32);

inline constexpr int kTileFloats = 3072;

// A pattern upright at one level, compared with the picture's level `image_level`.
struct TracePattern {
  Address pixels;         // float2[height][width]: T (zero-mean, 0 outside the mask), mask 1 or 0
  double to_level;        // 1 / 2^image_level
  double spacing;         // level-0 pixels a pixel of the pattern
  double counted;         // pixels of the mask
  double energy;          // ΣT²
  double angle_step_deg;  // 0: the angle is fixed
  double scale_step;      // relative; 0: the scale is fixed
  double least_contrast;
  double least_visible;
  double threshold;       // a candidate whose score falls under it is dropped
  double hopeless_score;  // one that scores less at first is not followed
  double period_deg;      // of angles: 360 over the symmetry
  int width;
  int height;
  int image_level;
  int most_kept;  // candidates that go on from here
  int used;       // 0: this pattern does not take part in this step
  int any_polarity;
  int coarsest;          // 1: what the coarse search saw still counts as a score
  int neighbours_first;  // 1: they are tried before regression
  float first_column;    // pixels from the pattern's centre to the middle of pixel (0, 0)
  float first_row;
  float pixel_in_level;  // pixels of the picture's level a pixel of the pattern, at scale 1
  int strip_width;       // of the pattern's pixels that are sampled at a time: with a rim of one
  int strip_rows;        // they make kTileFloats at most
  int most_followed;     // of the coarse search's candidates; 0: all
  int followed_unseen;   // of these, by their coarse score
  int regressed_next;    // 1: the best shift will do where the neighbours lead
};
static_assert(sizeof(TracePattern) == 160);

// A candidate that lost; kept for the runners-up.
struct TracedLoser {
  TracedPose pose;
  double score;
  int level;  // that the score is from
  int unused;
};
inline constexpr int kMostLosers = 512;  // a pattern

inline constexpr int kKeepThreads = 512;      // a block of the choice of what goes on
inline constexpr int kMostCandidates = 4096;  // a pattern

// The shared memory of a block that works on a pose.
inline constexpr int kPoseMemoryBytes = 42 * 1024;

// Blocks can sum over one candidate's pixels together, which are cut into the same pieces however
// many blocks there are.
inline constexpr int kMostPieces = 16;  // of a pattern, rows side by side
inline constexpr int kPieceSums = 32;
// A piece's sum, a float, in the upper half of a word whose lower half says which pass it is of,
// counting from 1: who reads a word sees both or neither.
using TeamSum = unsigned long long;
// What they hand to each other; all zero between launches.
struct alignas(16) PoseTeam {
  unsigned arrived;  // blocks, from kTeamClosed on those that came too late
  unsigned size;     // blocks that take part where some came too late; 0: not known yet
  unsigned left;     // blocks that have ended
  unsigned unused;
  TeamSum sums[2][kMostPieces][kPieceSums];  // of this pass and the one before
};
static_assert(sizeof(PoseTeam) == 8208);
inline constexpr unsigned kTeamClosed = 1U << 16;

struct TraceParameters {
  Address images;        // TraceImage[], by level
  Address patterns;      // TracePattern[search_count], of this step
  Address regressions;   // RefinePattern[search_count]: followed by regression where `used`
  Address candidates;    // TracedCandidate[search_count][select_limit]
  Address next;          // the same again, for those that go on to the next step
  Address counts;        // int[search_count]
  Address losers;        // TracedLoser[search_count][kMostLosers]
  Address loser_counts;  // int[search_count]
  Address counters;      // CoarseCounters
  Address teams;         // PoseTeam[search_count][team_limit]; refinement's: [team_limit]
  Address glances_done;  // unsigned[search_count], all zero between launches
  Address headers;       // ResultHeader[search_count]
  Address moment;        // see note_moment
  int search_count;
  int select_limit;
  int team_limit;   // candidates of a search (in refinement: of all) that may have a team each
  int team_blocks;  // a candidate; in refinement: at most
};
static_assert(sizeof(TraceParameters) == 120);

// T, 1, q_x, q_y, T·q_x, T·q_y, then the derivatives by x, y, angle and scale.
inline constexpr int kRegressors = 10;
inline constexpr int kByX = 6;
struct RefinePattern {
  Address pixels;       // float4[height][width]: mask (1: counts, 2: is regressed too), T, dT/dx,
                        // dT/dy
  Address gram;         // double[10][10], with the light's prior on its diagonal
  double first_column;  // q_x of column 0, pixels from the pattern's centre
  double first_row;
  double counted;
  int regressors;
  int with_angle;
  int with_scale;
  int used;  // 0: cannot be refined
  int piece_rows;
  int pieces;
  double inverse_gram[kRegressors * kRegressors];
};
static_assert(sizeof(RefinePattern) == 864);

// What a frame hands to the host, in memory that it reads in place: this header for each pattern,
// then its candidates, then those of its losers that may be a runner-up.
struct ResultLoser {
  float x, y, angle_deg, scale;
  float score;
  int level;
};
static_assert(sizeof(ResultLoser) == 24);
struct ResultHeader {
  int candidates;
  int losers;
  unsigned overflow;
  unsigned broken;  // not zero: the GPU's blocks lost each other; stays so
};
inline constexpr int kMostRefineThreads = 256;  // a block
struct RefineParameters {
  TraceParameters trace;  // of the finest level; least_contrast and least_visible are the search's,
                          // the regressions those of the finest level
  Address loose;          // TracePattern[search_count] for what does not converge
  Address at_bound;       // RefinePattern[search_count] for poses at a limit of the angles
  Address allowed;        // AllowedPoses[search_count]
  Address results;        // TracedCandidate[search_count][result_limit]
  Address result_losers;  // ResultLoser[search_count][kMostLosers]
  Address ends;           // u64[search_count][result_limit]: when each was done, by the GPU's clock
  int result_limit;
  int unused;
};
static_assert(sizeof(RefineParameters) == 176);
// Ranges that a pose is put back into after refinement.
inline constexpr int kMostAngleRanges = 16;
struct AllowedPoses {
  double low_deg[kMostAngleRanges];
  double high_deg[kMostAngleRanges];
  double period_deg;
  double low_scale;
  double high_scale;
  int ranges;         // 0: all angles
  float max_overlap;  // of a match with another
};
static_assert(sizeof(AllowedPoses) == 288);

}  // namespace patternd::cuda
