#include "tools/bench/match_scenes.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "pipeline/match_angles.h"
#include "tools/synth/render.h"

namespace patternd::bench {
namespace {

constexpr const char* kPhotoFolder = "/usr/share/doc/opencv-doc/examples/data/";
constexpr double kNearPx = 2;
constexpr double kNearDeg = 2;

// Places that keep the instances apart from each other and inside; fewer where there is no room.
std::vector<synth::Instance> place(const MatchSceneSpec& spec) {
  std::mt19937_64 random(spec.seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  const double radius = std::hypot(spec.pattern_width, spec.pattern_height) / 2 + 1;
  std::vector<synth::Instance> placed;
  for (int attempt = 0; attempt < 20000 && static_cast<int>(placed.size()) < spec.instances;
       ++attempt) {
    synth::Instance instance;
    instance.pose.x_px = radius + uniform(random) * (spec.width - 2 * radius - 1);
    instance.pose.y_px = radius + uniform(random) * (spec.height - 2 * radius - 1);
    instance.pose.angle_deg = 360 * uniform(random) - 180;
    const bool clear = std::all_of(placed.begin(), placed.end(), [&](const synth::Instance& other) {
      return std::hypot(other.pose.x_px - instance.pose.x_px,
                        other.pose.y_px - instance.pose.y_px) > 2 * radius;
    });
    if (clear) placed.push_back(instance);
  }
  return placed;
}

}  // namespace

Result<MatchPhotos> load_match_photos() {
  auto pattern = synth::load_photo(std::string(kPhotoFolder) + "graf1.png");
  if (!pattern) return tl::make_unexpected(pattern.error());
  auto background = synth::load_photo(std::string(kPhotoFolder) + "fruits.jpg");
  if (!background) return tl::make_unexpected(background.error());
  return MatchPhotos{*pattern, *background};
}

Result<MatchSceneData> make_match_scene(const MatchPhotos& photos, const MatchSceneSpec& spec) {
  auto cut =
      synth::cut_pattern("part", photos.pattern, 200, 150, spec.pattern_width, spec.pattern_height);
  if (!cut) return tl::make_unexpected(cut.error());
  synth::Scene scene;
  scene.width = spec.width;
  scene.height = spec.height;
  scene.background.photo = photos.background;
  scene.patterns = {*cut};
  scene.instances = place(spec);
  scene.light.gradient = 0.4;
  scene.light.direction_deg = 30;
  scene.noise_sigma = 5;
  scene.seed = spec.seed;
  auto renderer = synth::SceneRenderer::create(scene, nullptr);
  if (!renderer) return tl::make_unexpected(renderer.error());
  auto picture = renderer->render(0);
  if (!picture) return tl::make_unexpected(picture.error());
  auto pattern = synth::picture_of(*cut);
  if (!pattern) return tl::make_unexpected(pattern.error());
  MatchSceneData out{spec, std::move(*picture), std::move(*pattern), {}};
  for (const synth::Instance& instance : scene.instances) out.truth.push_back(instance.pose);
  return out;
}

MatchErrors compare_with_truth(const std::vector<Match>& matches,
                               const std::vector<synth::Pose>& truth) {
  MatchErrors out;
  out.there = static_cast<int>(truth.size());
  double squares_px = 0;
  double squares_deg = 0;
  std::vector<bool> used(matches.size(), false);
  for (const synth::Pose& pose : truth) {
    for (std::size_t i = 0; i < matches.size(); ++i) {
      const double dx = matches[i].x_px - pose.x_px;
      const double dy = matches[i].y_px - pose.y_px;
      const double turn = wrap_deg(matches[i].angle_deg - pose.angle_deg);
      if (used[i] || std::hypot(dx, dy) > kNearPx || std::abs(turn) > kNearDeg) continue;
      used[i] = true;
      ++out.found;
      squares_px += (dx * dx + dy * dy) / 2;
      squares_deg += turn * turn;
      break;
    }
  }
  out.wrong = static_cast<int>(std::count(used.begin(), used.end(), false));
  if (out.found > 0) {
    out.rms_px = std::sqrt(squares_px / out.found);
    out.rms_deg = std::sqrt(squares_deg / out.found);
  }
  return out;
}

}  // namespace patternd::bench
