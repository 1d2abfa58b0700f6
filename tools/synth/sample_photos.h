// The photographs that scenes are made of where nobody names others.
#pragma once

#include <string>
#include <vector>

#include "pipeline/result.h"
#include "tools/synth/random_scene.h"

namespace patternd::synth {

// Paths of pictures from Debian's opencv-doc, those that are there. They show different things, so
// that no pattern cut from one lies in another.
[[nodiscard]] std::vector<std::string> sample_photo_paths();

[[nodiscard]] Result<std::vector<Photo>> load_photos(const std::vector<std::string>& paths);

// Four textures of 640×640 pixels from value noise, for where there are no photographs.
[[nodiscard]] Result<std::vector<Photo>> made_textures(std::uint64_t seed);

}  // namespace patternd::synth
