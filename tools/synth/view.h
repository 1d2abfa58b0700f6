// Where each pixel of the rendered picture looks on the plane.
#pragma once

#include <optional>
#include <vector>

#include "calibration/camera_model.h"
#include "pipeline/thread_pool.h"
#include "tools/synth/scene.h"

namespace patternd::synth {

class View {
 public:
  // A scene without a camera is seen straight on. Solves the camera's map at every pixel; `pool`
  // may be null.
  View(const Scene& scene, ThreadPool* pool);

  struct Spot {
    double x = 0;  // plane pixels
    double y = 0;
    Jacobian2 sides{1, 0, 0, 1};  // d(plane)/d(picture)
    bool sees_plane = true;       // false where the ray misses the plane
  };
  [[nodiscard]] Spot at(int x, int y) const;
  // Plane -> picture; nothing where the camera does not see the point.
  [[nodiscard]] std::optional<Point2> to_picture(Point2 plane_px) const;

  [[nodiscard]] int width() const { return width_; }
  [[nodiscard]] int height() const { return height_; }

 private:
  int width_;
  int height_;
  std::optional<CameraModel> camera_;
  std::vector<Spot> spots_;  // one a pixel; empty without a camera
};

}  // namespace patternd::synth
