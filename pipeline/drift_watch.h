// Has the camera moved? Patterns with known places on the plane (`fiducials`) are compared with
// them every few frames.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/match.h"
#include "pipeline/result.h"

namespace patternd {

// The `fiducials` section, with the names already looked up.
struct FiducialParams {
  std::vector<int> patterns;      // indices into the configured patterns, each once
  std::vector<Point2> places_mm;  // one a pattern
  double limit_mm = 0.5;          // more than this is a move
  int every = 100;                // frames between two comparisons
};

// What the last comparison found.
struct Drift {
  bool moved =
      false;  // over the limit in the last kDriftVotes comparisons; back when as many are under it
  int found = 0;          // fiducials seen
  double worst_mm = 0;    // largest distance between a fiducial and its place
  double shift_x_mm = 0;  // mean of seen minus known
  double shift_y_mm = 0;
  double turn_deg = 0;         // rotation about the fiducials' middle; 0 with fewer than two seen
  std::uint64_t compared = 0;  // comparisons so far
};

// Comparisons in a row that must agree before the state changes: one covered fiducial is no move.
inline constexpr int kDriftVotes = 3;

// Fed with every frame's matches by one thread; allocates nothing after create().
class DriftWatch {
 public:
  // Refuses (kInvalidArgument) lists of different lengths, an index out of range or twice, a limit
  // that is not above 0.
  [[nodiscard]] static Result<DriftWatch> create(const FiducialParams& params,
                                                 std::size_t pattern_count);

  // Looks at one frame's matches (their millimetres must be there). True where the state has just
  // changed; drift() then tells. A frame on which no fiducial is seen changes nothing.
  [[nodiscard]] bool feed(const std::vector<Match>& matches);
  [[nodiscard]] const Drift& drift() const { return drift_; }

 private:
  explicit DriftWatch(FiducialParams params) : params_(std::move(params)) {}
  [[nodiscard]] bool compare(const std::vector<Match>& matches);

  FiducialParams params_;
  Drift drift_;
  int frames_ = 0;  // since the last comparison
  int votes_ = 0;   // comparisons in a row that disagree with drift_.moved
};

}  // namespace patternd
