// The thesis's ways to search (T15): a thread a position, or a warp; and suppression (T13).

#include "cuda/study/study_ncc.h"

namespace patternd::cuda {

// "Intuitive": each thread scores one position of one angle by itself. grid: (x, y, angle).
PATTERND_KERNEL __launch_bounds__(1024) patternd_study_ncc_thread(const StudySearchParameters p) {
  const int x = block_x() * threads_x() + thread_x();
  const int y = block_y() * threads_y() + thread_y();
  const int angle = block_z();
  if (x >= p.level.width || y >= p.level.height) return;
  const StudyTurn turn = global<const StudyTurn>(p.turns)[angle];
  float score = 0.0F;
  if (study_inside(p.level, turn, x, y)) {
    StudySums sums = {};
    study_add(p.level, turn, x, y, 0, 1, sums);
    score = study_score(p.level, sums);
  }
  global<float>(p.scores)[(static_cast<i64>(angle) * p.level.height + y) * p.level.width + x] =
      score;
}

// "Reduction": the lanes of a warp share one position's pixels and add up by shuffles; the warps go
// through the positions in a grid-stride loop (algorithm 3).
PATTERND_KERNEL __launch_bounds__(256) patternd_study_ncc_warp(const StudySearchParameters p) {
  const int lane = thread_x();
  const i64 plane = static_cast<i64>(p.level.width) * p.level.height;
  const i64 warps = static_cast<i64>(blocks_x()) * threads_y();
  for (i64 i = static_cast<i64>(block_x()) * threads_y() + thread_y(); i < plane * p.angles;
       i += warps) {
    const int angle = static_cast<int>(i / plane);
    const int at = static_cast<int>(i % plane);
    const int x = at % p.level.width;
    const int y = at / p.level.width;
    const StudyTurn turn = global<const StudyTurn>(p.turns)[angle];
    float score = 0.0F;
    if (study_inside(p.level, turn, x, y)) {
      StudySums sums = {};
      study_add(p.level, turn, x, y, lane, kWarpSize, sums);
      score = study_score(p.level, study_warp_sums(sums));
    }
    if (lane == 0) global<float>(p.scores)[i] = score;
  }
}

// A position keeps its score where none of its eight neighbours has a higher one. grid: (x, y,
// angle).
PATTERND_KERNEL __launch_bounds__(256) patternd_study_suppress(const StudySearchParameters p) {
  const int x = block_x() * threads_x() + thread_x();
  const int y = block_y() * threads_y() + thread_y();
  if (x >= p.level.width || y >= p.level.height) return;
  const i64 plane = static_cast<i64>(block_z()) * p.level.height * p.level.width;
  const float* scores = global<const float>(p.scores) + plane;
  const float own = scores[y * p.level.width + x];
  bool beaten = false;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      const int nx = x + dx;
      const int ny = y + dy;
      if (nx < 0 || ny < 0 || nx >= p.level.width || ny >= p.level.height) continue;
      beaten = beaten || scores[ny * p.level.width + nx] > own;
    }
  }
  global<float>(p.suppressed)[plane + y * p.level.width + x] = beaten ? 0.0F : own;
}

}  // namespace patternd::cuda
