// Scene -> picture, without bias.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "pipeline/image.h"
#include "pipeline/result.h"
#include "pipeline/thread_pool.h"
#include "tools/synth/scene.h"
#include "tools/synth/view.h"

namespace patternd::synth {

// Renders the frames of one scene. What stays the same (the camera's map, the background) is
// computed once.
//
// A pixel is the mean over its square. Inside a pattern that is the midpoint rule on 4×4 cells of
// the pattern's spline; at its edge each cell counts with the exact share of it that lies inside,
// so the edge moves continuously with the pose and no grid shows. The camera's map is solved by
// Newton iteration at each pixel centre (CameraModel::to_output, 1e-9 px) and taken as linear
// within the pixel. Then light, blur, noise, rounding, in this order, as in a camera. The
// background behind a pattern's edge is its mean over the whole pixel.
//
// The same scene gives the same bytes on every machine and number of threads: noise is drawn row by
// row from (seed, frame, row), and nothing here calls the C library's mathematics
// (portable_math.h); a camera with a fisheye lens does, in CameraModel.
class SceneRenderer {
 public:
  // `scene` is copied. `pool` may be null and must outlive the renderer.
  [[nodiscard]] static Result<SceneRenderer> create(const Scene& scene, ThreadPool* pool);
  SceneRenderer(SceneRenderer&&) noexcept;
  SceneRenderer& operator=(SceneRenderer&&) noexcept;
  ~SceneRenderer();

  [[nodiscard]] const Scene& scene() const;
  // The camera's map.
  [[nodiscard]] const View& view() const;
  // Frame `frame` (0 or more) in the scene's format.
  [[nodiscard]] Result<Image> render(int frame) const;
  // The same before noise and rounding, kGrayF32 in grey levels of 8 bit.
  [[nodiscard]] Result<Image> render_exact(int frame) const;

  // Derivatives of the exact picture by one instance's pose, kGrayF32, over the part of the picture
  // that starts at (left, top); 0 in pixels that do not lie wholly inside the visible pattern.
  struct PoseGradient {
    int left = 0;
    int top = 0;
    Image value;  // the pattern alone, light included
    Image by_x;   // grey levels a plane pixel
    Image by_y;
    Image by_angle;  // grey levels a degree
    Image inside;    // 1 where the pixel counts, else 0
  };
  // Nothing where no part of the instance lies in the picture.
  [[nodiscard]] Result<std::optional<PoseGradient>> pose_gradient(int frame,
                                                                  std::size_t instance) const;

 private:
  struct State;
  explicit SceneRenderer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace patternd::synth
