// The board that lies on the plane.
#pragma once

#include "tools/calibrate/calibration_run.h"

namespace patternd::calibrate {

struct PlaneBoard {
  BoardView view;
  Image picture;  // that shows it
};

// Looks for the request's board in its picture of the plane, or in several frames of a board that
// lies still, whose mean has less noise. `model` says what size pictures must have.
[[nodiscard]] Result<PlaneBoard> find_plane_board(const Request& request, const CameraModel& model);

}  // namespace patternd::calibrate
