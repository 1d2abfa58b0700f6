// Our own search on an accuracy scene.
#pragma once

#include <vector>

#include "pipeline/result.h"
#include "tools/synth/accuracy.h"

namespace patternd::synth {

// Teaches the scene's pattern and finds it, at all angles, at most ten times, everything else as by
// default.
[[nodiscard]] Result<std::vector<Find>> search_scene(const AccuracyScene& scene, double min_score);

}  // namespace patternd::synth
