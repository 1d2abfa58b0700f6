#include "tools/synth/placed_instance.h"

#include <algorithm>
#include <cmath>

namespace patternd::synth {
namespace {

constexpr double kRadiansPerDegree = 0.017453292519943295;
constexpr double kCellCount = kCellsPerSide * kCellsPerSide;

template <class Body>
void for_each_cell(const PlacedInstance::Spot& spot, Body&& body) {
  for (int j = 0; j < kCellsPerSide; ++j) {
    for (int i = 0; i < kCellsPerSide; ++i) {
      const double x = cell_offset(i);
      const double y = cell_offset(j);
      body(spot.u + spot.sides[0] * x + spot.sides[1] * y,
           spot.v + spot.sides[2] * x + spot.sides[3] * y);
    }
  }
}

// A point of the pattern's rectangle: `along` [0, 1) of side 0 (upper) to 3, clockwise.
Point2 outline_point(const ScenePattern& pattern, int side, double along) {
  const double right = pattern.width - 0.5;
  const double bottom = pattern.height - 0.5;
  switch (side) {
    case 0:
      return {-0.5 + along * pattern.width, -0.5};
    case 1:
      return {right, -0.5 + along * pattern.height};
    case 2:
      return {right - along * pattern.width, bottom};
    default:
      return {-0.5, bottom - along * pattern.height};
  }
}

}  // namespace

PlacedInstance::PlacedInstance(const ScenePattern& pattern, const Instance& instance, int frame)
    : pattern_(pattern),
      instance_(instance),
      pose_(instance.pose_in(frame)),
      turn_(sin_cos_deg(pose_.angle_deg)),
      shape_(pattern, instance.cover) {}

PlacedInstance::Spot PlacedInstance::spot(const View::Spot& view) const {
  const double x = (view.x - pose_.x_px) / pose_.scale;
  const double y = (view.y - pose_.y_px) / pose_.scale;
  const double c = turn_.cos / pose_.scale;
  const double s = turn_.sin / pose_.scale;
  const Jacobian2& j = view.sides;
  return {pattern_.ref_x() + turn_.cos * x + turn_.sin * y,
          pattern_.ref_y() - turn_.sin * x + turn_.cos * y,
          {c * j[0] + s * j[2], c * j[1] + s * j[3], c * j[2] - s * j[0], c * j[3] - s * j[1]}};
}

VisibleShape::Place PlacedInstance::place(const Spot& spot) const {
  return shape_.place(spot.u, spot.v, (std::abs(spot.sides[0]) + std::abs(spot.sides[1])) / 2,
                      (std::abs(spot.sides[2]) + std::abs(spot.sides[3])) / 2);
}

bool PlacedInstance::fills(const Spot& spot) const {
  return place(spot) == VisibleShape::Place::kInside;
}

PlacedInstance::Paint PlacedInstance::paint(const Spot& spot) const {
  const VisibleShape::Place where = place(spot);
  if (where == VisibleShape::Place::kOutside) return {};
  Jacobian2 cell = spot.sides;
  for (double& side : cell) side /= kCellsPerSide;
  Paint sum;
  for_each_cell(spot, [&](double u, double v) {
    const double share = where == VisibleShape::Place::kInside ? 1 : shape_.share(u, v, cell);
    if (share <= 0) return;
    sum.share += share;
    sum.value += share * grey(pattern_.value(u, v));
  });
  return {sum.share / kCellCount, sum.value / kCellCount};
}

// With p = R(−a)·(q − t)/s + ref: dp/dt = −R(−a)/s and dp/da = (v − ref_v, −(u − ref_u)).
PlacedInstance::Slope PlacedInstance::slope(const Spot& spot) const {
  const double c = turn_.cos / pose_.scale;
  const double s = turn_.sin / pose_.scale;
  Slope sum;
  for_each_cell(spot, [&](double u, double v) {
    const SplinePicture::Sample sample = pattern_.sample(u, v);
    sum.value += grey(sample.value);
    sum.by_x += s * sample.dy - c * sample.dx;
    sum.by_y += -s * sample.dx - c * sample.dy;
    sum.by_angle += sample.dx * (v - pattern_.ref_y()) - sample.dy * (u - pattern_.ref_x());
  });
  const double scale = instance_.gain / kCellCount;
  return {sum.value / kCellCount, sum.by_x * scale, sum.by_y * scale,
          sum.by_angle * scale * kRadiansPerDegree};
}

PictureRect PlacedInstance::bounds(const View& view) const {
  constexpr int kPointsPerSide = 16;
  constexpr double kFar = 1e9;
  double low_x = kFar;
  double low_y = kFar;
  double high_x = -kFar;
  double high_y = -kFar;
  for (int i = 0; i < 4 * kPointsPerSide; ++i) {
    const double along = static_cast<double>(i % kPointsPerSide) / kPointsPerSide;
    const auto picture = view.to_picture(
        to_plane(pose_, pattern_, outline_point(pattern_, i / kPointsPerSide, along)));
    if (!picture) return {0, 0, view.width(), view.height()};
    low_x = std::min(low_x, picture->x);
    high_x = std::max(high_x, picture->x);
    low_y = std::min(low_y, picture->y);
    high_y = std::max(high_y, picture->y);
  }
  const auto clip = [](double value, int high) {
    return static_cast<int>(std::clamp(value, 0.0, static_cast<double>(high)));
  };
  return {clip(std::floor(low_x) - 2, view.width()), clip(std::floor(low_y) - 2, view.height()),
          clip(std::ceil(high_x) + 3, view.width()), clip(std::ceil(high_y) + 3, view.height())};
}

}  // namespace patternd::synth
