#include "tools/synth/view.h"

#include <cmath>
#include <cstddef>

namespace patternd::synth {
namespace {

// Farther away, towards the horizon, the plane counts as unseen.
constexpr double kFarPx = 1e6;

View::Spot spot_of(const CameraModel& camera, int x, int y) {
  View::Spot spot;
  const auto plane =
      camera.to_output({static_cast<double>(x), static_cast<double>(y)}, &spot.sides);
  spot.sees_plane = plane.has_value() && std::abs(plane->x) < kFarPx && std::abs(plane->y) < kFarPx;
  if (!spot.sees_plane) return spot;
  spot.x = plane->x;
  spot.y = plane->y;
  return spot;
}

}  // namespace

View::View(const Scene& scene, ThreadPool* pool)
    : width_(scene.picture_width()), height_(scene.picture_height()), camera_(scene.camera) {
  if (!camera_) return;
  const auto width = static_cast<std::size_t>(width_);
  spots_.resize(width * static_cast<std::size_t>(height_));
  auto solve_row = [&](std::size_t y) {
    for (int x = 0; x < width_; ++x)
      spots_[y * width + static_cast<std::size_t>(x)] = spot_of(*camera_, x, static_cast<int>(y));
  };
  if (pool != nullptr) {
    pool->for_each(static_cast<std::size_t>(height_), solve_row);
  } else {
    for (std::size_t y = 0; y < static_cast<std::size_t>(height_); ++y) solve_row(y);
  }
}

View::Spot View::at(int x, int y) const {
  if (camera_) {
    return spots_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) +
                  static_cast<std::size_t>(x)];
  }
  Spot spot;
  spot.x = x;
  spot.y = y;
  return spot;
}

std::optional<Point2> View::to_picture(Point2 plane_px) const {
  if (!camera_) return plane_px;
  return camera_->to_input(plane_px);
}

}  // namespace patternd::synth
