// A scene on disk: pictures or a recording, and all that is needed to search them and to judge the
// result.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "pipeline/result.h"
#include "tools/synth/render.h"

namespace patternd::synth {

// Writes into `folder` (made where it does not exist; refused where it holds anything):
//   patterns/NAME.png  the pattern to teach
//   camera.yaml        the calibration file, where the scene has a camera
//   truth.jsonl        a line a frame (truth.h)
//   picture.png        the one frame
[[nodiscard]] Result<void> write_scene(const SceneRenderer& renderer, const std::string& folder,
                                       bool with_bound);

struct RecordingOptions {
  int frame_count = 100;
  double fps = 25;
  bool with_bound = false;
  // A camera that is knocked: from frame `moved_from` on frames are those of this renderer, which
  // has the same scene and another camera. Null: it stays where it is.
  const SceneRenderer* moved = nullptr;
  int moved_from = 0;
  std::function<void(int frame)> progress;  // called before each frame; may be empty

  [[nodiscard]] const SceneRenderer& in_frame(const SceneRenderer& at_first, int frame) const {
    return moved != nullptr && frame >= moved_from ? *moved : at_first;
  }
};

// The same with many frames in place of picture.png:
//   recording/         00000000.pgm and so on, and index.jsonl; seq counts from 1, frame n is
//   stamped
//                      (n − 1)/fps after 2026-01-01T00:00:00Z
//   patternd.yaml      a configuration that plays and searches it: patternd --config patternd.yaml
[[nodiscard]] Result<void> write_recording(const SceneRenderer& renderer, const std::string& folder,
                                           const RecordingOptions& options);

}  // namespace patternd::synth
