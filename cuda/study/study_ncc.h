// NCC of a turned pattern at a position, in one pass over three sums (T10, T11), for the study's
// kernels: the pattern's own mean and energy come from the host.
#pragma once

#include "cuda/kernels/device.h"
#include "cuda/study/study_parameters.h"

namespace patternd::cuda {

// Values of the picture lie in 0..1; sums about the middle keep their squares small.
inline constexpr float kStudyMiddle = 0.5F;

// The picture at (x, y), bilinear with weights of full precision.
PATTERND_DEVICE float study_sample(u64 texture, float x, float y) {
  const float left = static_cast<float>(floor_to_int(x));
  const float top = static_cast<float>(floor_to_int(y));
  const Gathered g = gather<0>(texture, left + 1.0F, top + 1.0F);
  const float upper = fused(x - left, g.right_top - g.left_top, g.left_top);
  const float lower = fused(x - left, g.right_bottom - g.left_bottom, g.left_bottom);
  return fused(y - top, lower - upper, upper);
}

struct StudySums {
  float s, ss, sp;
};

// Adds pattern pixels first, first + step, … to the sums, at a position that is inside.
PATTERND_DEVICE void study_add(const StudyLevel& level, const StudyTurn& turn, int x, int y,
                               int first, int step, StudySums& sums) {
  const float* pattern = global<const float>(level.pattern);
  const float middle_x = 0.5F * static_cast<float>(level.pattern_width - 1);
  const float middle_y = 0.5F * static_cast<float>(level.pattern_height - 1);
  const int pixels = level.pattern_width * level.pattern_height;
  const int columns_a_step = step % level.pattern_width;
  const int rows_a_step = step / level.pattern_width;
  int i = first % level.pattern_width;
  int j = first / level.pattern_width;
  for (int k = first; k < pixels; k += step) {
    const float px = static_cast<float>(i) - middle_x;
    const float py = static_cast<float>(j) - middle_y;
    const float value =
        study_sample(level.texture, static_cast<float>(x) + (px * turn.cosine - py * turn.sine),
                     static_cast<float>(y) + (px * turn.sine + py * turn.cosine)) -
        kStudyMiddle;
    sums.s += value;
    sums.ss = fused(value, value, sums.ss);
    sums.sp = fused(value, pattern[k], sums.sp);
    i += columns_a_step;
    j += rows_a_step;
    if (i >= level.pattern_width) {
      i -= level.pattern_width;
      ++j;
    }
  }
}

PATTERND_DEVICE bool study_inside(const StudyLevel& level, const StudyTurn& turn, int x, int y) {
  const float at_x = static_cast<float>(x);
  const float at_y = static_cast<float>(y);
  return at_x >= turn.reach_x && at_y >= turn.reach_y &&
         at_x + turn.reach_x <= static_cast<float>(level.width - 1) &&
         at_y + turn.reach_y <= static_cast<float>(level.height - 1);
}

// A window whose variance is under a hundredth of a grey level's square scores 0.
PATTERND_DEVICE float study_score(const StudyLevel& level, const StudySums& sums) {
  const float n = static_cast<float>(level.pattern_width * level.pattern_height);
  const float energy = sums.ss - sums.s * sums.s / n;
  if (!(energy > n * 1.5e-7F) || !(level.energy > 0.0F)) return 0.0F;
  return sums.sp / root(energy * level.energy);
}

PATTERND_DEVICE StudySums study_warp_sums(const StudySums& sums) {
  return {warp_sum(sums.s), warp_sum(sums.ss), warp_sum(sums.sp)};
}

}  // namespace patternd::cuda
