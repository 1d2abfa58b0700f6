// What is really there in a made picture.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/result.h"
#include "tools/synth/cramer_rao.h"
#include "tools/synth/render.h"

namespace patternd::synth {

// One instance, in a result line's terms: x_px, y_px are of its reference point in the rectified
// picture (the plane), angle_deg lies in [−180, 180).
struct InstanceTruth {
  std::string pattern;
  double x_px = 0;
  double y_px = 0;
  double angle_deg = 0;
  double scale = 1;
  double visible = 1;            // share of its unmasked pixels that lie in the valid area
  double cover = 0;              // share of its width that something hides
  std::optional<Point2> raw_px;  // where the reference point lies in the camera's picture
  std::optional<PoseBound> bound;
};

// In the scene's order. `with_bound`: with the Cramér–Rao bound, which takes as long as rendering.
[[nodiscard]] Result<std::vector<InstanceTruth>> truth_of(const SceneRenderer& renderer, int frame,
                                                          bool with_bound);

// One line of truth.jsonl, without its line end:
//   {"seq":3,"instances":[{"pattern":"p1","x_px":…,"y_px":…,"angle_deg":…,"scale":…,"visible":…,
//    "cover":…,"raw_x_px":…,"raw_y_px":…,"x_std_px":…,"y_std_px":…,"angle_std_deg":…}]}
// raw_… only with a camera that sees the point, …_std… only where the bound was asked for and
// exists.
[[nodiscard]] std::string truth_line(std::uint64_t seq, const std::vector<InstanceTruth>& truth);

}  // namespace patternd::synth
