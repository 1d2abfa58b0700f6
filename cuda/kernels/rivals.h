// Which rectangles of a pattern may overlap, without the cost of their common polygon: what cannot
// be a match's runner-up is not handed to the host, which looks exactly.
#pragma once

#include "cuda/kernels/pose_sampling.h"

namespace patternd::cuda {

// Rectangles of a pattern at two poses, that may move a little.
struct MovingRectangles {
  float width;  // of the pattern, in the pixels in which poses are given
  float height;
  float margin;  // by how many of these a rectangle's sides may still move
};

// False only where they cannot overlap by more than `least` of the smaller one's area, wherever the
// margin lets them go: not even the box around the second one, upright beside the first, does.
//   may_overlap({10, 10, 0}, 0.3, {0, 0, 0, 1}, {8, 0, 0, 1})  ->  false (they share 0.2)
PATTERND_DEVICE bool may_overlap(const MovingRectangles& of, float least, const TracedPose& first,
                                 const TracedPose& second) {
  const float dx = static_cast<float>(second.x - first.x);
  const float dy = static_cast<float>(second.y - first.y);
  const float scale = static_cast<float>(first.scale);
  const float other = static_cast<float>(second.scale);
  const float reach = fused(0.5F * (scale + other), length_of(of.width, of.height), of.margin);
  if (!(dx * dx + dy * dy < reach * reach)) return false;
  const Turn turn = turn_of(first.angle_deg);
  const Turn between = turn_of(second.angle_deg - first.angle_deg);
  const float cosine = other * size_of(between.cosine);
  const float sine = other * size_of(between.sine);
  const auto common = [&](float apart, float own, float others) {
    return minimum(minimum(own, others), 0.5F * (own + others) - size_of(apart)) + of.margin;
  };
  const float across = common(fused(dx, turn.cosine, dy * turn.sine), scale * of.width,
                              fused(of.width, cosine, of.height * sine));
  const float down = common(fused(dy, turn.cosine, -dx * turn.sine), scale * of.height,
                            fused(of.width, sine, of.height * cosine));
  const float smaller = minimum(scale, other);
  return across > 0 && down > 0 &&
         across * down > least * (smaller * of.width) * (smaller * of.height);
}

}  // namespace patternd::cuda
