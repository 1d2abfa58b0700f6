// In place of charuco.cpp where OpenCV comes without its contributed modules.
#include "tools/calibrate/charuco.h"

namespace patternd::calibrate {
namespace {

Error absent() {
  return {ErrorCode::kUnsupported,
          "--charuco: this build lacks OpenCV's aruco module (libopencv-contrib-dev); use a "
          "chessboard or circles"};
}

}  // namespace

Result<BoardView> find_charuco(const cv::Mat&, const Board&, const std::string&) {
  return tl::make_unexpected(absent());
}

Result<Image> draw_charuco(const Board&, double) { return tl::make_unexpected(absent()); }

}  // namespace patternd::calibrate
