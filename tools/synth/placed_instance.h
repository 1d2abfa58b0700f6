// One instance as it lies in one frame, sampled by the picture's pixels.
#pragma once

#include "tools/synth/coverage.h"
#include "tools/synth/portable_math.h"
#include "tools/synth/scene.h"
#include "tools/synth/view.h"

namespace patternd::synth {

// Sub-samples ("cells") along each side of a pixel.
inline constexpr int kCellsPerSide = 4;

// Centre of cell i, from the pixel's centre.
[[nodiscard]] constexpr double cell_offset(int i) {
  return (i + 0.5) / static_cast<double>(kCellsPerSide) - 0.5;
}

// A part of the picture: right and bottom are excluded.
struct PictureRect {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  [[nodiscard]] bool empty() const { return left >= right || top >= bottom; }
};

class PlacedInstance {
 public:
  // `pattern` and `instance` must outlive it.
  PlacedInstance(const ScenePattern& pattern, const Instance& instance, int frame);

  // A pixel's square on the pattern: where its centre lies, and d(pattern)/d(picture).
  struct Spot {
    double u = 0;
    double v = 0;
    Jacobian2 sides{};
  };
  [[nodiscard]] Spot spot(const View::Spot& view) const;
  // True where the pixel lies wholly in what shows of the pattern.
  [[nodiscard]] bool fills(const Spot& spot) const;

  struct Paint {
    double share = 0;  // of the pixel that the instance covers
    double value = 0;  // its grey level there, times the share
  };
  [[nodiscard]] Paint paint(const Spot& spot) const;

  // The pattern's mean over the pixel, as if it went on beyond its edge, and its derivatives by the
  // pose: grey levels a plane pixel and a degree.
  struct Slope {
    double value = 0;
    double by_x = 0;
    double by_y = 0;
    double by_angle = 0;
  };
  [[nodiscard]] Slope slope(const Spot& spot) const;

  // The pixels that the instance can reach, two more on each side; the whole picture where the
  // camera does not see all of its outline.
  [[nodiscard]] PictureRect bounds(const View& view) const;

 private:
  [[nodiscard]] VisibleShape::Place place(const Spot& spot) const;
  [[nodiscard]] double grey(double value) const {
    return instance_.gain * value + instance_.offset;
  }

  const ScenePattern& pattern_;
  const Instance& instance_;
  Pose pose_;
  SinCos turn_;
  VisibleShape shape_;
};

}  // namespace patternd::synth
