// What the way down the pyramid and refinement work from on the GPU, for all patterns at once: made
// once for a configuration, the same for all frames in flight.
#pragma once

#include <memory>
#include <vector>

#include "cuda/memory.h"
#include "pipeline/matcher_plan.h"

namespace patternd::cuda {

// Warps for each pose that the blocks of a step look at, of patterns of at most width × height
// pixels at its level. Where the GPU has room for all blocks that find a candidate, about half, as
// many as have pixels to sample; where blocks wait for room, fewer, for while one decides where to
// look next, others sample. On an H200 4, 8 and 16 patterns took 60, 74 and 110 µs for 69, 102 and
// 143 with four warps (measurements/2026-11-30-h200-poses.txt).
[[nodiscard]] int pose_warps(const DeviceProperties& gpu, int width, int height,
                             std::size_t blocks);

struct TracePlan {
  // Copies the patterns of all levels to the device; waits. kUnsupported for more ranges of angles
  // than the kernels take.
  [[nodiscard]] static Result<TracePlan> create(const std::shared_ptr<const Device>& device,
                                                const std::vector<const PatternPlan*>& plans);

  // One launch of the trace: a step of every pattern that has one.
  struct Step {
    Address patterns = 0;
    Address regressions = 0;
    bool chooses = false;  // not all candidates may be followed
    unsigned glances = 1;  // candidates that these may be
    int team_blocks = 1;   // a candidate
    Shape shape;           // with one block for each that is followed
  };
  // The finest level; see RefineParameters.
  struct LastStep {
    Address patterns = 0;
    Address regressions = 0;
    Address loose = 0;
    Address at_bound = 0;
    Address allowed = 0;
    int result_limit = 0;  // candidates that a pattern may have there
    int team_limit = 0;    // that may have more than one block
    int team_blocks = 1;   // that a candidate has use for
    Shape shape;
  };

  // Places for results of all patterns.
  [[nodiscard]] std::size_t most_results() const {
    return static_cast<std::size_t>(search_count) * static_cast<std::size_t>(last.result_limit);
  }

  int search_count = 0;
  int team_limit = 0;  // candidates of a search that a launch with teams may have
  std::vector<Step> steps;
  LastStep last;
  DeviceBuffer tables;
  Kernel glance, step, keep, refine;
};

}  // namespace patternd::cuda
