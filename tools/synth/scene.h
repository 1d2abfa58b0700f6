// What a made scene consists of: a flat world with patterns on it, the camera that looks at it,
// light and noise. Units: plane pixels (the rectified picture's) and grey levels of 8 bit; angles
// in degrees as in results (a positive angle turns clockwise on the screen).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/image.h"
#include "pipeline/result.h"
#include "tools/synth/spline_picture.h"

namespace patternd::synth {

// A pattern as a smooth function of its own pixels: pixel (u, v) lies at
// (left + (u + ½)·k − ½, top + (v + ½)·k − ½) of the photo, k = photo_px_per_px.
struct ScenePattern {
  enum class Shape { kRectangle, kEllipse };
  std::string name;
  std::shared_ptr<const SplinePicture> photo;
  double left = 0;
  double top = 0;
  double photo_px_per_px = 1;
  int width = 0;
  int height = 0;
  Shape shape = Shape::kRectangle;

  // The reference point: the centre.
  [[nodiscard]] double ref_x() const { return (width - 1) / 2.0; }
  [[nodiscard]] double ref_y() const { return (height - 1) / 2.0; }
  // Grey level, and with its derivatives along the pattern's pixels.
  [[nodiscard]] double value(double u, double v) const;
  [[nodiscard]] SplinePicture::Sample sample(double u, double v) const;
};

// p_plane = (x, y) + scale · R(angle) · (p_pattern − ref).
struct Pose {
  double x_px = 0;
  double y_px = 0;
  double angle_deg = 0;
  double scale = 1;
};

// A pattern lying somewhere. Its grey levels become gain · value + offset.
struct Instance {
  std::size_t pattern = 0;
  Pose pose;         // in frame 0
  Pose motion;       // added each frame: x_px, y_px, angle_deg; `scale` is not used
  double cover = 0;  // share [0, 1) of its width, from its left, that the background hides
  double gain = 1;
  double offset = 0;

  [[nodiscard]] Pose pose_in(int frame) const;
};

// What stands behind the patterns, filling the whole plane (mirrored at the photo's borders).
struct Background {
  std::shared_ptr<const SplinePicture> photo;
  double left = 0;  // photo position of plane pixel (0, 0)
  double top = 0;
  double photo_px_per_px = 1;
};

// A linear fall of light across the rendered picture: factor 1 ± gradient at opposite corners,
// divided by 1 + gradient so that the brightest place keeps its grey level and nothing saturates.
struct Light {
  double gradient = 0;  // [0, 1)
  double direction_deg = 0;
};

struct Scene {
  int width = 0;  // of the plane; also of the picture where there is no camera
  int height = 0;
  Background background;
  std::vector<ScenePattern> patterns;
  std::vector<Instance> instances;  // later ones lie on top
  Light light;
  double blur_sigma_px = 0;  // Gaussian, of the optics
  double noise_sigma = 0;    // Gaussian, grey levels of 8 bit, independent in each pixel
  PixelFormat format = PixelFormat::kGray8;  // or kGray16: grey levels times 257
  // The camera that looks at the plane; its output (rectified) size is the plane's. Absent: the
  // picture is the plane itself.
  std::optional<CameraModel> camera;
  std::uint64_t seed = 1;

  [[nodiscard]] int picture_width() const { return camera ? camera->image_width : width; }
  [[nodiscard]] int picture_height() const { return camera ? camera->image_height : height; }
};

// A pattern cut out of a photo: its pixel (0, 0) has its upper left corner at that of photo pixel
// (x, y). kInvalidArgument where the rectangle leaves the photo or its sides are under 8 or over
// 4096.
[[nodiscard]] Result<ScenePattern> cut_pattern(const std::string& name,
                                               std::shared_ptr<const SplinePicture> photo, int x,
                                               int y, int width, int height,
                                               double photo_px_per_px = 1);

// The picture to teach: the pattern as the same camera would see it at angle 0, scale 1 and whole
// pixels, without light, blur or noise.
[[nodiscard]] Result<Image> picture_of(const ScenePattern& pattern,
                                       PixelFormat format = PixelFormat::kGray8);
// Its mask: 255 where the pixel belongs wholly to the pattern, else 0; empty for a rectangle.
[[nodiscard]] Result<Image> mask_of(const ScenePattern& pattern);

// Where a pattern's pixel lies on the plane, and the reverse.
[[nodiscard]] Point2 to_plane(const Pose& pose, const ScenePattern& pattern, Point2 pattern_px);
[[nodiscard]] Point2 to_pattern(const Pose& pose, const ScenePattern& pattern, Point2 plane_px);

// A scene that can be rendered: sizes, ranges and indices; kInvalidArgument names the first fault.
[[nodiscard]] Result<void> check_scene(const Scene& scene);

}  // namespace patternd::synth
