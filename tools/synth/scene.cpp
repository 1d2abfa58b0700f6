#include "tools/synth/scene.h"

#include <cmath>
#include <utility>

#include "tools/synth/coverage.h"
#include "tools/synth/portable_math.h"

namespace patternd::synth {
namespace {

constexpr int kMinPatternSide = 8;
constexpr int kMaxPatternSide = 4096;
constexpr double kMaxPlace = 1e6;  // positions and motions, plane pixels

tl::unexpected<Error> wrong(const std::string& message) {
  return fail(ErrorCode::kInvalidArgument, "scene: " + message);
}

bool within(double value, double low, double high) { return value >= low && value <= high; }

bool usable(const Pose& pose) {
  return within(pose.x_px, -kMaxPlace, kMaxPlace) && within(pose.y_px, -kMaxPlace, kMaxPlace) &&
         within(pose.angle_deg, -kMaxPlace, kMaxPlace);
}

Result<void> check_instance(const Instance& instance, std::size_t pattern_count) {
  if (instance.pattern >= pattern_count) {
    return wrong("instance of pattern " + std::to_string(instance.pattern) + "; the scene has " +
                 std::to_string(pattern_count));
  }
  if (!usable(instance.pose) || !usable(instance.motion))
    return wrong("an instance's pose or motion is not finite or beyond 1e6");
  if (!within(instance.pose.scale, 0.05, 20))
    return wrong("scale is " + std::to_string(instance.pose.scale) + "; 0.05 to 20 is accepted");
  if (!(instance.cover >= 0 && instance.cover < 1))
    return wrong("cover is " + std::to_string(instance.cover) + "; 0 up to 1, 1 excluded");
  if (!within(instance.gain, -100, 100) || !within(instance.offset, -65535, 65535))
    return wrong("an instance's gain must lie within ±100 and its offset within ±65535");
  return {};
}

Result<void> check_light_and_noise(const Scene& scene) {
  if (!(scene.light.gradient >= 0 && scene.light.gradient < 1)) {
    return wrong("light gradient is " + std::to_string(scene.light.gradient) +
                 "; 0 up to 1, 1 excluded");
  }
  if (!within(scene.light.direction_deg, -kMaxPlace, kMaxPlace))
    return wrong("light direction must be an angle in degrees");
  if (!within(scene.blur_sigma_px, 0, 50))
    return wrong("blur is " + std::to_string(scene.blur_sigma_px) + " px; 0 to 50 is accepted");
  if (!within(scene.noise_sigma, 0, 255))
    return wrong("noise is " + std::to_string(scene.noise_sigma) + "; 0 to 255 grey levels");
  return {};
}

}  // namespace

double ScenePattern::value(double u, double v) const {
  return photo->value(left + (u + 0.5) * photo_px_per_px - 0.5,
                      top + (v + 0.5) * photo_px_per_px - 0.5);
}

SplinePicture::Sample ScenePattern::sample(double u, double v) const {
  auto result = photo->sample(left + (u + 0.5) * photo_px_per_px - 0.5,
                              top + (v + 0.5) * photo_px_per_px - 0.5);
  result.dx *= photo_px_per_px;
  result.dy *= photo_px_per_px;
  return result;
}

Pose Instance::pose_in(int frame) const {
  Pose moved = pose;
  moved.x_px += frame * motion.x_px;
  moved.y_px += frame * motion.y_px;
  moved.angle_deg += frame * motion.angle_deg;
  return moved;
}

Result<ScenePattern> cut_pattern(const std::string& name,
                                 std::shared_ptr<const SplinePicture> photo, int x, int y,
                                 int width, int height, double photo_px_per_px) {
  const std::string what = "pattern " + name + ": ";
  if (width < kMinPatternSide || height < kMinPatternSide || width > kMaxPatternSide ||
      height > kMaxPatternSide) {
    return fail(ErrorCode::kInvalidArgument, what + "size is " + std::to_string(width) + "x" +
                                                 std::to_string(height) +
                                                 "; both sides must be 8 to 4096");
  }
  if (!within(photo_px_per_px, 0.05, 20)) {
    return fail(ErrorCode::kInvalidArgument,
                what + "photo pixels a pattern pixel: " + std::to_string(photo_px_per_px) +
                    "; 0.05 to 20 is accepted");
  }
  if (x < 0 || y < 0 || x + width * photo_px_per_px > photo->width() ||
      y + height * photo_px_per_px > photo->height()) {
    return fail(ErrorCode::kInvalidArgument, what + "its rectangle leaves the photo of " +
                                                 std::to_string(photo->width()) + "x" +
                                                 std::to_string(photo->height()) + " pixels");
  }
  ScenePattern pattern;
  pattern.name = name;
  pattern.photo = std::move(photo);
  pattern.left = x;
  pattern.top = y;
  pattern.photo_px_per_px = photo_px_per_px;
  pattern.width = width;
  pattern.height = height;
  return pattern;
}

Point2 to_plane(const Pose& pose, const ScenePattern& pattern, Point2 pattern_px) {
  const SinCos turn = sin_cos_deg(pose.angle_deg);
  const double u = pose.scale * (pattern_px.x - pattern.ref_x());
  const double v = pose.scale * (pattern_px.y - pattern.ref_y());
  return {pose.x_px + turn.cos * u - turn.sin * v, pose.y_px + turn.sin * u + turn.cos * v};
}

Point2 to_pattern(const Pose& pose, const ScenePattern& pattern, Point2 plane_px) {
  const SinCos turn = sin_cos_deg(pose.angle_deg);
  const double x = (plane_px.x - pose.x_px) / pose.scale;
  const double y = (plane_px.y - pose.y_px) / pose.scale;
  return {pattern.ref_x() + turn.cos * x + turn.sin * y,
          pattern.ref_y() - turn.sin * x + turn.cos * y};
}

Result<void> check_scene(const Scene& scene) {
  for (const int side : {scene.width, scene.height}) {
    if (side < 1 || side > kMaxImageSide) {
      return wrong("size is " + std::to_string(scene.width) + "x" + std::to_string(scene.height) +
                   "; both sides must be 1 to " + std::to_string(kMaxImageSide));
    }
  }
  if (scene.format != PixelFormat::kGray8 && scene.format != PixelFormat::kGray16)
    return wrong(std::string("format is ") + name_of(scene.format) + "; gray8 or gray16");
  if (!scene.background.photo) return wrong("no background");
  if (!within(scene.background.photo_px_per_px, 0.001, 1000))
    return wrong("background: photo pixels a plane pixel must be 0.001 to 1000");
  for (const auto& pattern : scene.patterns) {
    if (!pattern.photo) return wrong("pattern " + pattern.name + " has no photo");
  }
  for (const auto& instance : scene.instances) {
    if (auto ok = check_instance(instance, scene.patterns.size()); !ok) return ok;
  }
  if (scene.camera && (scene.camera->output_width() != scene.width ||
                       scene.camera->output_height() != scene.height)) {
    return wrong("the camera's rectified picture is " +
                 std::to_string(scene.camera->output_width()) + "x" +
                 std::to_string(scene.camera->output_height()) + ", the plane " +
                 std::to_string(scene.width) + "x" + std::to_string(scene.height));
  }
  return check_light_and_noise(scene);
}

}  // namespace patternd::synth
