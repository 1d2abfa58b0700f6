// Parameters of the study's kernels; the rules of kernels/parameters.h apply.
#pragma once

#include "cuda/kernels/parameters.h"

namespace patternd::cuda {

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

}  // namespace patternd::cuda
