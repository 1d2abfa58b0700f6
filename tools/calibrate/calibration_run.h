// One calibration, from the pictures named to the camera model and all that is worth reporting.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calibration/homography.h"
#include "calibration/plane_output.h"
#include "tools/calibrate/board.h"
#include "tools/calibrate/checks.h"

namespace patternd::calibrate {

// How far reading a recording or a running service has come.
struct StreamProgress {
  std::string name;
  std::uint64_t frames = 0;  // looked at
  std::uint64_t with_board = 0;
  std::size_t taken = 0;  // views so far
  double coverage = 0;    // of these
};

struct Request {
  // Pictures, folders of them, recordings, videos, HOST:PORT of a running service. Of what brings
  // many, the most different views of the board are chosen.
  std::vector<std::string> pictures;
  int every = 1;                // of each folder, recording or service, every n-th picture
  std::size_t most_views = 40;  // of each recording or service
  double most_seconds = 60;     // of a service; it ends earlier where the views cover the picture
  // Called after each frame of a recording or service; may be empty.
  std::function<void(const StreamProgress&)> progress;
  std::optional<Board> board;
  CameraFitOptions fit;
  bool leave_out = false;  // go on without pictures whose error stands out
  std::string lens_file;   // a calibration file whose lens is taken instead of fitting one
  std::string opencv_file;
  std::string ros_file;
  std::string plane_picture;  // a picture of the board lying on the plane, or what brings some
  std::vector<PointPair> plane_pairs;  // raw picture pixels (to), millimetres (from)
  PlaneWishes wishes;
  std::string drawings;  // folder; empty: none
};

struct PictureReport {
  std::string name;
  std::size_t points = 0;
  double rms_px = 0;
  double coverage = 0;
  double tilt_deg = 0;
  std::string left_out;  // why; empty where it took part
};

struct PlaneReport {
  double rms_px = 0;
  double rms_mm = 0;
  std::vector<std::size_t> outliers;  // pairs left out, counting from 1
};

struct Outcome {
  CameraModel model;
  std::optional<CameraFit> fit;
  std::vector<StreamProgress> streams;  // in the order given
  std::vector<PictureReport> pictures;
  double coverage = 0;
  std::optional<PlaneReport> plane;
  std::vector<Finding> findings;
};

[[nodiscard]] Result<Outcome> calibrate(const Request& request);

}  // namespace patternd::calibrate
