// The pictures of the match benchmark, and how far finds lie from their truth.
#pragma once

#include <string>
#include <vector>

#include "pipeline/image.h"
#include "pipeline/match.h"
#include "tools/synth/random_scene.h"

namespace patternd::bench {

// What a timing scene consists of; noise sigma 5, light gradient ±40 %, any angle.
struct MatchSceneSpec {
  std::string name;
  int width = 0;
  int height = 0;
  int pattern_width = 0;
  int pattern_height = 0;
  int instances = 1;
  std::uint64_t seed = 1;
};

struct MatchSceneData {
  MatchSceneSpec spec;
  Image picture;
  Image pattern;
  std::vector<synth::Pose> truth;
};

// Photographs of the package opencv-doc: parts of the first are patterns, the second lies behind.
struct MatchPhotos {
  synth::Photo pattern;
  synth::Photo background;
};
[[nodiscard]] Result<MatchPhotos> load_match_photos();

[[nodiscard]] Result<MatchSceneData> make_match_scene(const MatchPhotos& photos,
                                                      const MatchSceneSpec& spec);

// What was found against what is there: a find counts where it lies within 2 pixels and 2 degrees.
struct MatchErrors {
  int there = 0;
  int found = 0;
  int wrong = 0;
  double rms_px = 0;  // of each coordinate
  double rms_deg = 0;
};
[[nodiscard]] MatchErrors compare_with_truth(const std::vector<Match>& matches,
                                             const std::vector<synth::Pose>& truth);

}  // namespace patternd::bench
