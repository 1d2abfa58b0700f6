// An estimator that wastes nothing: least squares over every pixel of an instance. Far too slow to
// search with; it shows what a made scene allows.
#pragma once

#include "pipeline/image.h"
#include "tools/synth/scene.h"

namespace patternd::test {

// Fits (x, y, angle) so that the picture's pixels inside the pattern become
// (a + c·dx + d·dy)·P + b, a linear fall of light; P is the spline through the taught picture.
// Gauss– Newton from `start`, which must lie within about half a pixel of the best. Returns the
// fitted pose.
[[nodiscard]] synth::Pose fit_pose(const ImageView& picture, const ImageView& pattern,
                                   const synth::Pose& start);

}  // namespace patternd::test
