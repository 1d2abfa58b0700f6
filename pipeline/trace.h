// Trace search (T14): a candidate is followed down the pyramid, at each level to the best of its
// neighbours in shift, angle and scale. The picture is sampled once per angle in the pattern's own
// frame with a rim around it, and the shifts are read from that patch.
#pragma once

#include <vector>

#include "pipeline/pattern_pyramid.h"
#include "pipeline/trace_kernel.h"

namespace patternd {

// A place where the pattern may be; (x, y) is where its centre lies, in level-0 pixels.
struct Candidate {
  double x = 0;
  double y = 0;
  double angle_deg = 0;
  double scale = 1;
  double score = 0;  // with the sign of `inverted` taken out: larger is better
  double visible = 1;
  int level = 0;  // of the pyramid, that the score is from
  bool inverted = false;
  double runner_up = 0;  // of a match: the best score of another pose at its place
};

// One level of a trace, ready to be compared with the picture's level `image_level`.
struct TraceLevel {
  int image_level = 0;
  UprightPattern pattern;
  double origin_x = 0;  // as in PatternLevel
  double origin_y = 0;
  double spacing = 1;
  double angle_step_deg = 0;  // 0: the angle is fixed
  double scale_step = 0;      // relative; 0: the scale is fixed
};

// A pattern's level for a search at scales around `scale`: where the pattern appears larger than it
// was taught, a coarser level of the picture shows it at the taught size.
[[nodiscard]] TraceLevel make_trace_level(const PatternLevel& level, int image_level);

// Buffers of one thread.
class TraceScratch {
 public:
  TraceScratch() = default;
  // For patterns of at most this size.
  TraceScratch(int width, int height);
  [[nodiscard]] Patch patch(int width, int height);

 private:
  std::vector<float> values_;
  std::vector<float> visible_;
};

struct TraceImage {
  ImageView image;  // of the level
  ImageView valid;  // empty: all valid
  double least_contrast = 0;
  double least_visible = 0;  // share of the pattern's pixels; windows that see fewer score 0
  bool any_polarity = false;
  // A candidate that scores less at first, at its angle and one step to either side, is not
  // followed.
  double hopeless_score = -1;
  // A regression follows: the best shift will do, unsettled.
  bool regressed_next = false;
};

// Where the samples of a candidate lie in the picture's level, with `rim` pixels around the
// pattern.
[[nodiscard]] SamplingGrid grid_of(const TraceLevel& level, const Candidate& at, int rim);

// Samples of the picture around a candidate, in the pattern's frame with `rim` pixels around it.
// Returns false where a part is invisible (then patch.visible is filled).
bool sample_candidate(const TraceLevel& level, const TraceImage& image, const Candidate& at,
                      int rim, const Patch& patch);

// The best score of the 3×3 shifts around a candidate, at its own angle and scale: what trace_step
// sees first.
[[nodiscard]] double score_around(const TraceLevel& level, const TraceImage& image,
                                  TraceScratch& scratch, const Candidate& at);

// Moves the candidate to the best place near it and sets its score there (0 where there is none).
void trace_step(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                Candidate& candidate);

}  // namespace patternd
