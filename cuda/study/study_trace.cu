// The thesis's trace search (T14, algorithm 2): coordinates doubled, the 3×3 neighbourhood tried on
// the next finer level, the best kept, dropped under the least score. One launch a level.

#include "cuda/study/study_ncc.h"

namespace patternd::cuda {

PATTERND_DEVICE bool study_inside_candidate(const StudyTraceParameters& p,
                                            const StudyCandidate& candidate, int neighbour,
                                            StudyTurn& turn, int& x, int& y) {
  turn = global<const StudyTurn>(p.turns)[candidate.angle];
  x = 2 * candidate.x + neighbour % 3 - 1;
  y = 2 * candidate.y + neighbour / 3 - 1;
  return study_inside(p.level, turn, x, y);
}

// Moves a candidate to the best of its nine scores; the first of equals.
PATTERND_DEVICE void study_move(const StudyTraceParameters& p, StudyCandidate& candidate,
                                const float* scores) {
  int best = 0;
  for (int k = 1; k < kStudyNeighbours; ++k)
    if (scores[k] > scores[best]) best = k;
  candidate.x = 2 * candidate.x + best % 3 - 1;
  candidate.y = 2 * candidate.y + best / 3 - 1;
  candidate.score = scores[best];
  if (scores[best] < p.least_score) candidate.alive = 0;
}

// A thread a neighbour. block: (9, kStudyTraceCandidates).
PATTERND_KERNEL __launch_bounds__(288) patternd_study_trace_thread(const StudyTraceParameters p) {
  __shared__ float scores[kStudyTraceCandidates][kStudyNeighbours];
  const int index = block_x() * kStudyTraceCandidates + thread_y();
  StudyCandidate* all = global<StudyCandidate>(p.candidates);
  StudyCandidate candidate = {};
  if (index < p.count) candidate = all[index];
  float score = 0.0F;
  if (candidate.alive != 0) {
    StudyTurn turn;
    int x;
    int y;
    if (study_inside_candidate(p, candidate, thread_x(), turn, x, y)) {
      StudySums sums = {};
      study_add(p.level, turn, x, y, 0, 1, sums);
      score = study_score(p.level, sums);
    }
  }
  scores[thread_y()][thread_x()] = score;
  block_barrier();
  if (thread_x() == 0 && candidate.alive != 0) {
    study_move(p, candidate, scores[thread_y()]);
    all[index] = candidate;
  }
}

// A warp a neighbour, a block a candidate. block: (32, 9).
PATTERND_KERNEL __launch_bounds__(288) patternd_study_trace_warp(const StudyTraceParameters p) {
  __shared__ float scores[kStudyNeighbours];
  StudyCandidate* own = global<StudyCandidate>(p.candidates) + block_x();
  StudyCandidate candidate = *own;
  if (candidate.alive == 0) return;
  StudyTurn turn;
  int x;
  int y;
  float score = 0.0F;
  if (study_inside_candidate(p, candidate, thread_y(), turn, x, y)) {
    StudySums sums = {};
    study_add(p.level, turn, x, y, thread_x(), kWarpSize, sums);
    score = study_score(p.level, study_warp_sums(sums));
  }
  if (thread_x() == 0) scores[thread_y()] = score;
  block_barrier();
  if (thread_x() == 0 && thread_y() == 0) {
    study_move(p, candidate, scores);
    *own = candidate;
  }
}

}  // namespace patternd::cuda
