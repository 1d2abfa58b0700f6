#include "tools/calibrate/charuco.h"

#include <array>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <opencv2/core/version.hpp>

// OpenCV 4.7 moved these boards into objdetect, as values with a detector of their own.
#define PATTERND_OPENCV_4_7 (CV_VERSION_MAJOR > 4 || CV_VERSION_MINOR >= 7)
#if PATTERND_OPENCV_4_7
#include <opencv2/objdetect/charuco_detector.hpp>
#else
#include <opencv2/aruco/charuco.hpp>
#endif

#include "tools/calibrate/checks.h"

namespace patternd::calibrate {
namespace {

constexpr std::array<std::pair<const char*, int>, 9> kDictionaries = {{
    {"DICT_4X4_50", cv::aruco::DICT_4X4_50},
    {"DICT_4X4_100", cv::aruco::DICT_4X4_100},
    {"DICT_4X4_250", cv::aruco::DICT_4X4_250},
    {"DICT_5X5_50", cv::aruco::DICT_5X5_50},
    {"DICT_5X5_100", cv::aruco::DICT_5X5_100},
    {"DICT_5X5_250", cv::aruco::DICT_5X5_250},
    {"DICT_6X6_50", cv::aruco::DICT_6X6_50},
    {"DICT_6X6_250", cv::aruco::DICT_6X6_250},
    {"DICT_7X7_250", cv::aruco::DICT_7X7_250},
}};

#if PATTERND_OPENCV_4_7
using BoardHandle = std::shared_ptr<cv::aruco::CharucoBoard>;

BoardHandle create_board(const Board& board, int dictionary) {
  return std::make_shared<cv::aruco::CharucoBoard>(
      cv::Size(board.columns, board.rows), static_cast<float>(board.square_mm),
      static_cast<float>(board.marker_mm), cv::aruco::getPredefinedDictionary(dictionary));
}

void detect_corners(const cv::Mat& picture, const BoardHandle& board, cv::Mat& corners,
                    cv::Mat& ids) {
  cv::aruco::CharucoDetector(*board).detectBoard(picture, corners, ids);
}

std::vector<cv::Point3f> corners_of(const BoardHandle& board) {
  return board->getChessboardCorners();
}

void draw_board(const BoardHandle& board, const cv::Size& size, int edge, cv::Mat& drawn) {
  board->generateImage(size, drawn, edge, 1);
}
#else
using BoardHandle = cv::Ptr<cv::aruco::CharucoBoard>;

BoardHandle create_board(const Board& board, int dictionary) {
  return cv::aruco::CharucoBoard::create(
      board.columns, board.rows, static_cast<float>(board.square_mm),
      static_cast<float>(board.marker_mm), cv::aruco::getPredefinedDictionary(dictionary));
}

void detect_corners(const cv::Mat& picture, const BoardHandle& board, cv::Mat& corners,
                    cv::Mat& ids) {
  std::vector<int> marker_ids;
  std::vector<std::vector<cv::Point2f> > markers;
  cv::aruco::detectMarkers(picture, board->dictionary, markers, marker_ids);
  if (marker_ids.empty()) return;
  cv::aruco::interpolateCornersCharuco(markers, marker_ids, picture, board, corners, ids);
}

std::vector<cv::Point3f> corners_of(const BoardHandle& board) { return board->chessboardCorners; }

void draw_board(const BoardHandle& board, const cv::Size& size, int edge, cv::Mat& drawn) {
  board->draw(size, drawn, edge, 1);
}
#endif

Result<BoardHandle> make_board(const Board& board) {
  for (const auto& [name, number] : kDictionaries)
    if (board.dictionary == name) return create_board(board, number);
  std::string known;
  for (const auto& [name, number] : kDictionaries)
    known += std::string(known.empty() ? "" : ", ") + name;
  return fail(ErrorCode::kInvalidArgument,
              "--dictionary " + board.dictionary + ": unknown; " + known);
}

}  // namespace

Result<BoardView> find_charuco(const cv::Mat& picture, const Board& board,
                               const std::string& name) {
  auto made = make_board(board);
  if (!made) return tl::make_unexpected(made.error());
  cv::Mat corners;
  cv::Mat ids;
  detect_corners(picture, *made, corners, ids);
  if (ids.total() < 6) {
    return fail(ErrorCode::kNotFound,
                name + ": " + std::to_string(ids.total()) + " corners of the " + describe(board) +
                    " found; at least 6 are needed (sharp, and with the print's numbers and "
                    "dictionary)");
  }
  const std::vector<cv::Point3f> places = corners_of(*made);
  BoardView view{name, {}, {}};
  for (int i = 0; i < static_cast<int>(ids.total()); ++i) {
    const cv::Point3f& place = places[static_cast<std::size_t>(ids.at<int>(i))];
    view.board_mm.push_back({static_cast<double>(place.x), static_cast<double>(place.y)});
    const cv::Point2f corner = corners.at<cv::Point2f>(i);
    view.image_px.push_back({static_cast<double>(corner.x), static_cast<double>(corner.y)});
  }
  // Some releases of OpenCV count y upwards. (A picture that is mirrored shows no marker that can
  // be read, so nothing else looks like this.)
  if (is_mirrored(view)) {
    for (Point2& mm : view.board_mm) mm.y = board.rows * board.square_mm - mm.y;
  }
  return view;
}

Result<Image> draw_charuco(const Board& board, double pixels_per_mm) {
  auto made = make_board(board);
  if (!made) return tl::make_unexpected(made.error());
  const double square = board.square_mm * pixels_per_mm;
  const int edge = static_cast<int>(std::lround(square));
  const cv::Size size(static_cast<int>(std::lround((board.columns + 2) * square)),
                      static_cast<int>(std::lround((board.rows + 2) * square)));
  cv::Mat drawn;
  draw_board(*made, size, edge, drawn);
  return Image::copy_of({drawn.data, drawn.cols, drawn.rows, drawn.step, PixelFormat::kGray8});
}

}  // namespace patternd::calibrate
