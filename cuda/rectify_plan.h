// The map of a rectification in the compact form that the GPU works from: a square of output pixels
// has two quadratic polynomials, fitted to the camera model in double precision.
//
// A lens and a plane bend so little within 32 pixels that a quadratic through nine points follows
// them to a few ten-thousandths of a pixel; 96 bytes then stand for 1,024 positions, where a
// ready-made map would cost 8 bytes a pixel, more than the pictures themselves. Where a square's
// check points miss by more than kMaxPlanErrorPx, or the model has no value at a node, the square's
// positions are written out one by one. Smaller squares are taken where that would be many.
#pragma once

#include <cstdint>
#include <vector>

#include "calibration/camera_model.h"
#include "cuda/kernels/parameters.h"
#include "pipeline/result.h"

namespace patternd::cuda {

inline constexpr double kMaxPlanErrorPx = 1.0 / 4096;

struct RectifyPlan {
  int width = 0;  // of the output
  int height = 0;
  int patch_side_log2 = 5;
  int patches_across = 0;
  int patches_down = 0;
  std::vector<RectifyPatch> patches;  // row by row
  std::vector<std::uint32_t> masks;   // `side` words a patch that is partly valid
  std::vector<float> tables;          // 2 · side² numbers a patch with explicit positions

  [[nodiscard]] int side() const { return 1 << patch_side_log2; }
};

// Plans for a model that has passed check_camera_model. A pixel is valid where its source lies in
// [0, w−1] × [0, h−1], decided in double precision, pixel by pixel wherever the border is near.
[[nodiscard]] Result<RectifyPlan> plan_rectification(const CameraModel& model);

// What the kernel computes for a pixel: whether it has a source, and where (in float arithmetic,
// like the kernel's). For tests.
struct PlannedPosition {
  bool valid = false;
  double x = 0;
  double y = 0;
};
[[nodiscard]] PlannedPosition planned_position(const RectifyPlan& plan, int x, int y);

// 255 where an output pixel has a source, else 0, `width` bytes a row.
[[nodiscard]] std::vector<std::uint8_t> valid_mask(const RectifyPlan& plan);

}  // namespace patternd::cuda
