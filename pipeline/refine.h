// Sub-pixel refinement at the finest level: inverse-compositional Gauss–Newton on shift, angle and
// scale, with brightness, gain and a light gradient as nuisance parameters.
//
// The sampled picture W is regressed on the pattern T, a constant, two ramps and the pattern's
// derivatives J by shift (x, y), angle and scale:  W ≈ a·T + b + c·q + a·J·δ.  The pose is moved by
// δ until it vanishes. J comes from the pattern, not from the noisy picture, so noise does not bias
// the pose; the Gram matrix of the regressors depends on the pattern alone and is inverted once.
// (Baker and Matthews, "Lucas–Kanade 20 years on", 2004; the gain as in Evangelidis and Psarakis,
// 2008, but by linear regression and with ramps.)
#pragma once

#include <array>
#include <vector>

#include "pipeline/trace.h"

namespace patternd {

// Regressors: T, 1, q_x, q_y, then the derivatives.
inline constexpr int kNuisances = 4;
inline constexpr int kMostRegressors = kNuisances + 4;

// Products of the sampled picture with each row's regressors, summed up.
struct RegressorSums {
  std::array<double, kMostRegressors> with_picture{};
  double square = 0;  // Σ M·W²
};

struct RefinePattern {
  TraceLevel level;
  // As level.pattern: the mask without its rim (whose pixels the background reaches into), and the
  // pattern's derivatives along x and y a pixel, all 0 elsewhere.
  std::vector<float> mask;
  std::vector<float> values;
  std::vector<float> gradient_x;
  std::vector<float> gradient_y;
  std::vector<float> columns;  // q_x of each column, pixels from the pattern's centre
  double first_row = 0;        // q_y of row 0
  double pixels = 0;
  bool with_angle = true;
  bool with_scale = false;
  // The regressors' Gram matrix and its inverse, kMostRegressors wide; empty where the pattern
  // can't be refined.
  std::vector<double> gram;
  std::vector<double> inverse_gram;

  [[nodiscard]] int regressors() const {
    return kNuisances + 2 + (with_angle ? 1 : 0) + (with_scale ? 1 : 0);
  }
};

[[nodiscard]] RefinePattern make_refine_pattern(const TraceLevel& level, bool with_angle,
                                                bool with_scale);

// What refinement found out beside the pose.
struct Refinement {
  bool converged = false;
  double x_std_px = 0;
  double y_std_px = 0;
  double angle_std_deg = 0;
};

// What the last regression says about how well the pose is known: mean squared residual, the
// pattern's gain, and entries of the inverse Gram matrix for shift (x, y) and angle.
struct PoseInformation {
  double residual = 0;
  double gain = 1;
  double xx = 0;
  double yy = 0;
  double xy = 0;
  double angle = 0;
};
// The standard deviations of a converged pose, from the noise that is left and the sampling's own
// smoothing.
[[nodiscard]] Refinement standard_deviations(const RefinePattern& pattern, const Candidate& at,
                                             const PoseInformation& information);

// How long to go on.
struct RefineLimits {
  int iterations = 12;
  double still_px = 0.002;   // done when no pixel moves by more than this any more
  double nearly_px = 0.002;  // good enough when that is what is left after the last iteration
};
// For the way down, where the next level takes over.
inline constexpr RefineLimits kTraceLimits{3, 0.06, 0.5};

// Refines the candidate's pose and sets its score and visible share there; on failure (no
// convergence within a pixel or two) it stays as it was. Allocates nothing.
[[nodiscard]] Refinement refine(const RefinePattern& pattern, const TraceImage& image,
                                TraceScratch& scratch, Candidate& candidate,
                                const RefineLimits& limits = {});

// Sets the candidate's score, visible share and polarity by bilinear sampling at its pose.
void score_candidate(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                     Candidate& candidate);

}  // namespace patternd
