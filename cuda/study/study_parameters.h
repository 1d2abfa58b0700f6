// Parameters of the study's kernels; the rules of kernels/parameters.h apply.
#pragma once

#include "cuda/kernels/parameters.h"

namespace patternd::cuda {

// ---- ceilings and rectification -----------------------------------------------------------------
struct StudyCamera {
  float homography[9];  // output pixel -> normalised plane of the camera
  float k1, k2;
  float fx, fy, cx, cy;
};
struct StudyParameters {
  Address texture;
  Address input;
  Address output;
  Address camera_address;  // StudyCamera in global memory
  long long count;         // 16-byte pieces
  int stride_bytes;
  int input_stride;
  int width;
  int height;
  float scale;
  StudyCamera camera;
  int unused[2];
};
static_assert(sizeof(StudyParameters) == 128);

// Where each output pixel's source lies, as two pictures of float: what peers are given.
struct StudyMapParameters {
  Address map_x;
  Address map_y;
  int stride_bytes;
  int width;
  int height;
  StudyCamera camera;
};
static_assert(sizeof(StudyMapParameters) == 88);

// ---- search -------------------------------------------------------------------------------------
// One angle of the search: p_picture = position + R(angle) · (p_pattern − centre). A position
// closer to the edge than the reach would sample outside; it scores 0.
struct StudyTurn {
  float cosine;
  float sine;
  float reach_x;
  float reach_y;
};
static_assert(sizeof(StudyTurn) == 16);

// A level of the picture with the pattern at its scale.
struct StudyLevel {
  Address texture;  // of the picture: float, point mode, clamped
  Address pattern;  // float[pattern_height][pattern_width], zero-mean
  int width;        // of the picture, and so of the positions
  int height;
  int pattern_width;
  int pattern_height;
  float energy;  // ΣP²
  int unused;
};
static_assert(sizeof(StudyLevel) == 40);

struct StudySearchParameters {
  StudyLevel level;
  Address turns;       // StudyTurn[angles], in pixels of the level
  Address scores;      // float[angles][height][width]
  Address suppressed;  // the same; by suppression
  int angles;
  int unused;
};
static_assert(sizeof(StudySearchParameters) == 72);

// ---- trace --------------------------------------------------------------------------------------
struct StudyCandidate {
  int x;  // of the pattern's centre, whole pixels of the level
  int y;
  int angle;  // index
  int alive;  // 0: dropped
  float score;
  int unused;
};
static_assert(sizeof(StudyCandidate) == 24);

struct StudyTraceParameters {
  StudyLevel level;    // the next finer one
  Address turns;       // StudyTurn[], in pixels of that level
  Address candidates;  // StudyCandidate[count], of the coarser level before, of this one after
  int count;
  float least_score;
};
static_assert(sizeof(StudyTraceParameters) == 64);
inline constexpr int kStudyNeighbours = 9;
inline constexpr int kStudyTraceCandidates = 32;  // a block, where a thread has a neighbour

}  // namespace patternd::cuda
