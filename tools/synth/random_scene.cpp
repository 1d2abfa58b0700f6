#include "tools/synth/random_scene.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "pipeline/image_file.h"
#include "tools/synth/portable_math.h"
#include "tools/synth/random.h"
#include "tools/synth/structure.h"

namespace patternd::synth {
namespace {

// Keys of the streams of random numbers that one seed gives, so that asking for more patterns, say,
// does not move the instances. The renderer's noise uses the small ones (its frames' numbers).
constexpr std::uint64_t kPatternStream = 1ULL << 40U;
constexpr std::uint64_t kPlaceStream = 2ULL << 40U;
constexpr std::uint64_t kBackgroundStream = 3ULL << 40U;
constexpr std::uint64_t kLightStream = 4ULL << 40U;

// What a part of a photo must have to be a pattern: contrast in grey levels, slope in every
// direction in grey levels a photo pixel, and detail that no other place has by chance.
constexpr double kLeastContrast = 22;
constexpr double kLeastSlope = 2.5;
constexpr double kLargestCoarseShare = 0.5;

bool serves_as_pattern(const Structure& structure) {
  return structure.contrast >= kLeastContrast && structure.weakest_slope >= kLeastSlope &&
         structure.coarse_share <= kLargestCoarseShare;
}
constexpr int kTries = 400;

tl::unexpected<Error> wrong(const std::string& message) {
  return fail(ErrorCode::kInvalidArgument, message);
}

Result<void> check_options(const RandomSceneOptions& o) {
  if (o.pattern_count < 1 || o.pattern_count > 100)
    return wrong("number of patterns is " + std::to_string(o.pattern_count) + "; 1 to 100");
  if (o.instance_count < 0 || o.instance_count > 10000)
    return wrong("number of instances is " + std::to_string(o.instance_count) + "; 0 to 10000");
  if (o.min_pattern_px < 8 || o.min_pattern_px > o.max_pattern_px || o.max_pattern_px > 4096) {
    return wrong("pattern sizes are " + std::to_string(o.min_pattern_px) + " to " +
                 std::to_string(o.max_pattern_px) + " px; rising, within 8 to 4096");
  }
  if (!(o.min_angle_deg <= o.max_angle_deg) || !(std::abs(o.min_angle_deg) <= 360) ||
      !(std::abs(o.max_angle_deg) <= 360))
    return wrong("angles must rise and lie within ±360 degrees");
  if (!(o.min_scale >= 0.05) || !(o.min_scale <= o.max_scale) || !(o.max_scale <= 20))
    return wrong("scales must rise and lie within 0.05 to 20");
  if (o.frame_count < 1 || o.frame_count > 1'000'000)
    return wrong("number of frames is " + std::to_string(o.frame_count) + "; 1 to 1000000");
  if (!(o.max_speed_px >= 0 && o.max_speed_px <= 1000) ||
      !(o.max_speed_deg >= 0 && o.max_speed_deg <= 360))
    return wrong("speeds a frame must lie within 0 to 1000 px and 0 to 360 degrees");
  return {};
}

// A pattern from `photo`, or nothing where no try finds structure.
std::optional<ScenePattern> draw_pattern(const std::string& name, const Photo& photo,
                                         const RandomSceneOptions& o, Random& random) {
  const double k = o.photo_px_per_px;
  for (int i = 0; i < kTries; ++i) {
    const double log_side =
        random.uniform(natural_log(o.min_pattern_px), natural_log(o.max_pattern_px + 1.0));
    const int longer =
        std::clamp(static_cast<int>(exponential(log_side)), o.min_pattern_px, o.max_pattern_px);
    const int shorter =
        std::max(o.min_pattern_px, static_cast<int>(random.uniform(0.75, 1) * longer));
    const bool upright = random.below(2) == 0;
    const int width = upright ? shorter : longer;
    const int height = upright ? longer : shorter;
    const int room_x = photo->width() - static_cast<int>(std::ceil(width * k));
    const int room_y = photo->height() - static_cast<int>(std::ceil(height * k));
    if (room_x < 0 || room_y < 0) continue;
    const int x = static_cast<int>(random.below(static_cast<std::uint64_t>(room_x) + 1));
    const int y = static_cast<int>(random.below(static_cast<std::uint64_t>(room_y) + 1));
    if (!serves_as_pattern(measure_structure(*photo, x, y, width * k, height * k))) continue;
    auto pattern = cut_pattern(name, photo, x, y, width, height, k);
    if (pattern) return *pattern;
  }
  return std::nullopt;
}

double radius_of(const Scene& scene, const Instance& instance) {
  const ScenePattern& pattern = scene.patterns[instance.pattern];
  const double square = static_cast<double>(pattern.width) * pattern.width +
                        static_cast<double>(pattern.height) * pattern.height;
  return instance.pose.scale * std::sqrt(square) / 2;
}

bool stays_inside(const Scene& scene, const Instance& instance, int last_frame) {
  const double radius = radius_of(scene, instance);
  for (const int frame : {0, last_frame}) {
    const Pose pose = instance.pose_in(frame);
    if (pose.x_px - radius < 0 || pose.y_px - radius < 0 || pose.x_px + radius > scene.width - 1 ||
        pose.y_px + radius > scene.height - 1)
      return false;
  }
  return true;
}

bool keeps_clear(const Scene& scene, const Instance& instance, int last_frame) {
  const double radius = radius_of(scene, instance);
  for (const Instance& other : scene.instances) {
    const double distance = radius + radius_of(scene, other);
    for (int frame = 0; frame <= last_frame; ++frame) {
      const Pose a = instance.pose_in(frame);
      const Pose b = other.pose_in(frame);
      const double dx = a.x_px - b.x_px;
      const double dy = a.y_px - b.y_px;
      if (dx * dx + dy * dy < distance * distance) return false;
    }
  }
  return true;
}

Instance draw_instance(const Scene& scene, const RandomSceneOptions& o, std::size_t pattern,
                       Random& random) {
  Instance instance;
  instance.pattern = pattern;
  instance.pose = {random.uniform(0, scene.width), random.uniform(0, scene.height),
                   random.uniform(o.min_angle_deg, o.max_angle_deg),
                   random.uniform(o.min_scale, o.max_scale)};
  const SinCos heading = sin_cos_deg(random.uniform(0, 360));
  const double speed = random.uniform(0, o.max_speed_px);
  instance.motion = {speed * heading.cos, speed * heading.sin,
                     random.uniform(-o.max_speed_deg, o.max_speed_deg), 1};
  instance.cover = o.cover;
  return instance;
}

void place_instances(Scene& scene, const RandomSceneOptions& o, Random& random) {
  for (int i = 0; i < o.instance_count; ++i) {
    const auto pattern = static_cast<std::size_t>(i) % scene.patterns.size();
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const Instance instance = draw_instance(scene, o, pattern, random);
      if (!stays_inside(scene, instance, o.frame_count - 1) ||
          !keeps_clear(scene, instance, o.frame_count - 1))
        continue;
      scene.instances.push_back(instance);
      break;
    }
  }
}

// A photo that gave no pattern (the patterns themselves would lie in it), or none.
Photo unused_photo(const std::vector<Photo>& photos, const std::vector<ScenePattern>& patterns,
                   Random& random) {
  std::vector<Photo> free;
  for (const Photo& photo : photos) {
    const bool used = std::any_of(patterns.begin(), patterns.end(),
                                  [&](const ScenePattern& p) { return p.photo == photo; });
    if (!used) free.push_back(photo);
  }
  return free.empty() ? nullptr : free[random.below(free.size())];
}

Result<Background> draw_background(const std::vector<Photo>& photos, const Scene& scene,
                                   const RandomSceneOptions& o, std::uint64_t seed) {
  Random random(seed, kBackgroundStream);
  Background background;
  background.photo = unused_photo(photos, scene.patterns, random);
  if (!background.photo) {
    auto noise = value_noise(512, 512, 64, random.bits());
    if (!noise) return tl::make_unexpected(noise.error());
    auto photo = make_photo(noise->view());
    if (!photo) return tl::make_unexpected(photo.error());
    background.photo = *photo;
  }
  background.photo_px_per_px = o.photo_px_per_px;
  background.left = random.uniform(0, background.photo->width());
  background.top = random.uniform(0, background.photo->height());
  return background;
}

// Adds smoothed random grey levels on a grid of `cell` pixels.
void add_octave(MutableImageView picture, int cell, double amplitude, std::uint64_t seed) {
  const auto lattice = [&](int i, int j) {
    return Random(seed, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(j)).uniform();
  };
  const auto smooth = [](double t) { return t * t * (3 - 2 * t); };
  for (int y = 0; y < picture.height; ++y) {
    const double ty = smooth(static_cast<double>(y % cell) / cell);
    for (int x = 0; x < picture.width; ++x) {
      const double tx = smooth(static_cast<double>(x % cell) / cell);
      const int i = x / cell;
      const int j = y / cell;
      const double above = lattice(i, j) * (1 - tx) + lattice(i + 1, j) * tx;
      const double below = lattice(i, j + 1) * (1 - tx) + lattice(i + 1, j + 1) * tx;
      picture.row<float>(y)[x] += static_cast<float>(amplitude * (above * (1 - ty) + below * ty));
    }
  }
}

}  // namespace

Result<Scene> random_scene(const std::vector<Photo>& photos, const RandomSceneOptions& options,
                           std::uint64_t seed) {
  if (auto ok = check_options(options); !ok) return tl::make_unexpected(ok.error());
  Scene scene;
  scene.width = options.camera ? options.camera->output_width() : options.width;
  scene.height = options.camera ? options.camera->output_height() : options.height;
  scene.camera = options.camera;
  scene.format = options.format;
  scene.blur_sigma_px = options.blur_sigma_px;
  scene.noise_sigma = options.noise_sigma;
  scene.seed = seed;

  Random pattern_random(seed, kPatternStream);
  const std::size_t first = photos.empty() ? 0 : pattern_random.below(photos.size());
  for (std::size_t i = 0; i < photos.size(); ++i) {
    if (scene.patterns.size() == static_cast<std::size_t>(options.pattern_count)) break;
    const std::string name = "p" + std::to_string(scene.patterns.size() + 1);
    auto pattern = draw_pattern(name, photos[(first + i) % photos.size()], options, pattern_random);
    if (pattern) scene.patterns.push_back(std::move(*pattern));
  }
  if (scene.patterns.size() < static_cast<std::size_t>(options.pattern_count)) {
    return wrong("found " + std::to_string(scene.patterns.size()) + " of " +
                 std::to_string(options.pattern_count) + " patterns of " +
                 std::to_string(options.min_pattern_px) + " to " +
                 std::to_string(options.max_pattern_px) +
                 " px with enough structure; give more or larger photos (one a pattern)");
  }
  auto background = draw_background(photos, scene, options, seed);
  if (!background) return tl::make_unexpected(background.error());
  scene.background = *background;
  Random light_random(seed, kLightStream);
  scene.light = {options.light_gradient, light_random.uniform(0, 360)};
  Random place_random(seed, kPlaceStream);
  place_instances(scene, options, place_random);
  if (auto ok = check_scene(scene); !ok) return tl::make_unexpected(ok.error());
  return scene;
}

Result<Image> value_noise(int width, int height, int coarsest_px, std::uint64_t seed) {
  if (coarsest_px < 1 || coarsest_px > kMaxImageSide) {
    return wrong("blotches of " + std::to_string(coarsest_px) + " px; 1 to " +
                 std::to_string(kMaxImageSide) + " is accepted");
  }
  auto picture = Image::create(width, height, PixelFormat::kGrayF32);
  if (!picture) return picture;
  picture->fill_bytes(0);
  int octaves = 0;
  for (int cell = coarsest_px; cell >= 2; cell /= 2) ++octaves;
  // Octaves average out; this keeps the contrast at about 40 grey levels.
  const double amplitude = 1.5 * 255 / std::max(octaves, 1);
  std::uint64_t octave = 0;
  for (int cell = coarsest_px; cell >= 2; cell /= 2)
    add_octave(picture->view(), cell, amplitude, seed + 0x100000001B3U * ++octave);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      float& grey = picture->row<float>(y)[x];
      grey = std::clamp(grey - 0.25F * 255, 0.0F, 255.0F);
    }
  }
  return picture;
}

Result<Photo> make_photo(const ImageView& picture) {
  auto spline = SplinePicture::create(picture);
  if (!spline) return tl::make_unexpected(spline.error());
  return std::make_shared<const SplinePicture>(std::move(*spline));
}

Result<Photo> load_photo(const std::string& path) {
  auto picture = read_image(path);
  if (!picture) return tl::make_unexpected(picture.error());
  return make_photo(picture->view());
}

}  // namespace patternd::synth
