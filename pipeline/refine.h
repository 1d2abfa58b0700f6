// Sub-pixel refinement at the finest level: inverse-compositional Gauss–Newton on shift, angle and
// scale, with brightness, gain and uneven light as nuisance parameters.
//
// The sampled picture W is regressed on the pattern T, a constant, ramps added to it and ramps of
// its gain, and the pattern's derivatives J by shift (x, y), angle and scale:
//
//   W ≈ a·T + b + c·q + (d·q)·T + a·J·δ.
//
// The pose is moved by δ until it vanishes. J comes from the pattern, not from the noisy picture,
// so noise does not bias the pose; the Gram matrix of the regressors depends on the pattern alone
// and is inverted once. Light that falls unevenly multiplies: without its ramps of the gain a large
// pattern is drawn to its bright side (0.17 px at 195 pixels where the light falls by a quarter).
// In a round smooth blob such a ramp looks just like a shift: where the ramps would cost the pose
// most of what the pattern knows, a prior holds them to 0 (ridge regression); else a weak one holds
// them to what light does.
// (Baker and Matthews, "Lucas–Kanade 20 years on", 2004; the gain as in Evangelidis and Psarakis,
// 2008, but by linear regression and with ramps.)
#pragma once

#include <array>
#include <vector>

#include "pipeline/trace.h"

namespace patternd {

// Regressors: T, 1, q_x, q_y, T·q_x, T·q_y, then the derivatives by x, y and, where they are free,
// angle and scale.
inline constexpr int kFirstRamp = 2;
inline constexpr int kNuisances = 6;
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
  // What the light's prior adds to the Gram matrix's diagonal for the four ramps.
  std::array<double, kNuisances - kFirstRamp> light_prior{};
  // The regressors' Gram matrix without that, and the inverse with it, kMostRegressors wide; the
  // inverse is empty where the pattern can't be refined.
  std::vector<double> gram;
  std::vector<double> inverse_gram;

  [[nodiscard]] int regressors() const {
    return kNuisances + 2 + (with_angle ? 1 : 0) + (with_scale ? 1 : 0);
  }
};

// Rough: without ramps of the gain; fewer unknowns converge from farther off, for the way down.
enum class LightModel { kRough, kUneven };
[[nodiscard]] RefinePattern make_refine_pattern(const TraceLevel& level, bool with_angle,
                                                bool with_scale,
                                                LightModel light = LightModel::kUneven);

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

// Where a pose did not settle: it is known to a step of the search, one pixel of the level by shift
// and at the pattern's farthest pixel by angle.
[[nodiscard]] Refinement unsettled(const RefinePattern& pattern, const Candidate& at);

// How long to go on.
struct RefineLimits {
  int iterations = 12;
  double still_px = 0.01;   // done when no pixel moves by more than this any more
  double nearly_px = 0.01;  // good enough when that is what is left after the last iteration
  // Then so many steps with cubic samples, or until one moves no pixel by more than still_px.
  int cubic_steps = 3;
};
// For the way down, where the next level takes over.
inline constexpr RefineLimits kTraceLimits{3, 0.06, 0.5, 0};

// Refines the candidate's pose and sets its score and visible share there; on failure (no
// convergence within a pixel or two) it stays as it was, with the deviations of unsettled().
// Allocates nothing.
[[nodiscard]] Refinement refine(const RefinePattern& pattern, const TraceImage& image,
                                TraceScratch& scratch, Candidate& candidate,
                                const RefineLimits& limits = {});

// Sets the candidate's score, visible share and polarity by bilinear sampling at its pose.
void score_candidate(const TraceLevel& level, const TraceImage& image, TraceScratch& scratch,
                     Candidate& candidate);

}  // namespace patternd
