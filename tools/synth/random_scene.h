// Scenes made by chance from photographs, fixed by a seed: what the accuracy benchmark, its test
// and `patternctl synth scene` render.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/result.h"
#include "tools/synth/scene.h"

namespace patternd::synth {

using Photo = std::shared_ptr<const SplinePicture>;

// What is asked for; the rest is drawn.
struct RandomSceneOptions {
  int width = 800;
  int height = 600;
  int pattern_count = 1;
  int min_pattern_px = 48;  // sides, drawn evenly in their logarithm; each pattern is about square
  int max_pattern_px = 256;
  int instance_count = 3;  // in all; fewer where they find no room
  double min_angle_deg = -180;
  double max_angle_deg = 180;
  double min_scale = 1;
  double max_scale = 1;
  double photo_px_per_px = 1;  // above 1: the world is sharper than the camera
  double cover = 0;            // share of each instance that is hidden
  double light_gradient = 0.4;
  double blur_sigma_px = 0;
  double noise_sigma = 5;
  int frame_count = 1;       // above 1: instances move, and stay within the plane
  double max_speed_px = 0;   // a frame
  double max_speed_deg = 0;  // a frame
  PixelFormat format = PixelFormat::kGray8;
  std::optional<CameraModel> camera;  // its output size takes the place of width and height
};

// Draws a scene. The first pattern_count photos that can be used give the patterns, each a part
// with enough structure to be told apart from its own shifts and turns; another photo (the same one
// where there is only one) gives the background. Instances do not overlap and lie wholly within the
// plane. kInvalidArgument where no photo has a part of the size wanted with structure, or an option
// is out of range.
[[nodiscard]] Result<Scene> random_scene(const std::vector<Photo>& photos,
                                         const RandomSceneOptions& options, std::uint64_t seed);

// A picture without a photograph: value noise, octaves of smoothed random grey levels, all of one
// strength. `coarsest_px`: the largest blotches' size; each octave's are half as large, down to 2.
[[nodiscard]] Result<Image> value_noise(int width, int height, int coarsest_px, std::uint64_t seed);

// Reads a photograph as a smooth function of the plane.
[[nodiscard]] Result<Photo> load_photo(const std::string& path);
[[nodiscard]] Result<Photo> make_photo(const ImageView& picture);

}  // namespace patternd::synth
