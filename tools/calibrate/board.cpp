#include "tools/calibrate/board.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <opencv2/calib3d.hpp>
#include <opencv2/imgproc.hpp>

#include "tools/calibrate/charuco.h"

namespace patternd::calibrate {
namespace {

// Larger pictures are searched at half or a quarter of their size first.
constexpr int kSearchSide = 1600;

cv::Mat wrapped(const ImageView& picture) {
  // OpenCV has no view of constant pixels; it only reads here.
  return {picture.height, picture.width, CV_8U, const_cast<std::uint8_t*>(picture.data),
          picture.stride_bytes};
}

cv::Mat as_bytes(const ImageView& picture) {
  if (picture.format == PixelFormat::kGray8) return wrapped(picture);
  cv::Mat bytes;
  cv::Mat(picture.height, picture.width, CV_16U, const_cast<std::uint8_t*>(picture.data),
          picture.stride_bytes)
      .convertTo(bytes, CV_8U, 1.0 / 257);
  return bytes;
}

std::vector<Point2> board_points(const Board& board) {
  std::vector<Point2> points;
  for (int row = 0; row < board.rows; ++row) {
    for (int column = 0; column < board.columns; ++column) {
      if (board.kind == BoardKind::kAsymmetricCircles) {
        points.push_back({(2 * column + row % 2) * board.square_mm / 2, row * board.square_mm / 2});
      } else {
        points.push_back({column * board.square_mm, row * board.square_mm});
      }
    }
  }
  return points;
}

// The least distance of two neighbouring corners.
double spacing(const std::vector<cv::Point2f>& corners, int columns) {
  double least = 1e9;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const auto c = static_cast<std::size_t>(columns);
    if ((i + 1) % c != 0) least = std::min(least, cv::norm(corners[i + 1] - corners[i]));
    if (i + c < corners.size()) least = std::min(least, cv::norm(corners[i + c] - corners[i]));
  }
  return least;
}

bool find_corners(const cv::Mat& picture, cv::Size size, bool quick,
                  std::vector<cv::Point2f>& corners) {
  const int flags = cv::CALIB_CB_ADAPTIVE_THRESH | cv::CALIB_CB_NORMALIZE_IMAGE |
                    (quick ? cv::CALIB_CB_FAST_CHECK : 0);
  double scale = 1;
  while (std::max(picture.cols, picture.rows) * scale > kSearchSide) scale /= 2;
  cv::Mat small = picture;
  if (scale < 1) cv::resize(picture, small, {}, scale, scale, cv::INTER_AREA);
  if (!cv::findChessboardCorners(small, size, corners, flags)) return false;
  for (cv::Point2f& corner : corners) {  // pixel centres have integer coordinates
    corner.x = static_cast<float>((static_cast<double>(corner.x) + 0.5) / scale - 0.5);
    corner.y = static_cast<float>((static_cast<double>(corner.y) + 0.5) / scale - 0.5);
  }
  const int reach = std::clamp(static_cast<int>(spacing(corners, size.width) / 2) - 1, 2, 5);
  const cv::TermCriteria until(cv::TermCriteria::EPS | cv::TermCriteria::COUNT, 100, 1e-4);
  if (scale < 1) {  // first from the coarse place, then as fine as it goes
    const int coarse = std::max(reach, static_cast<int>(2 / scale));
    cv::cornerSubPix(picture, corners, {coarse, coarse}, {-1, -1}, until);
  }
  cv::cornerSubPix(picture, corners, {reach, reach}, {-1, -1}, until);
  return true;
}

// The grey level of the square that lies outwards of the first corner, and of its neighbour, at the
// corners' own positions extrapolated.
bool first_square_is_dark(const cv::Mat& picture, const std::vector<cv::Point2f>& corners,
                          int columns) {
  const auto c = static_cast<std::size_t>(columns);
  const cv::Point2f right = corners[1] - corners[0];
  const cv::Point2f down = corners[c] - corners[0];
  const auto level = [&](cv::Point2f p) {
    const int x = std::clamp(cvRound(p.x), 0, picture.cols - 1);
    const int y = std::clamp(cvRound(p.y), 0, picture.rows - 1);
    return picture.at<std::uint8_t>(y, x);
  };
  const cv::Point2f outer = corners[0] - 0.5F * right - 0.5F * down;
  const cv::Point2f beside = corners[0] + 0.5F * right - 0.5F * down;
  return level(outer) < level(beside);
}

Result<std::vector<cv::Point2f>> find_points(const cv::Mat& picture, const Board& board,
                                             const std::string& name, bool quick) {
  std::vector<cv::Point2f> points;
  const cv::Size size(board.columns, board.rows);
  bool found = false;
  if (board.kind == BoardKind::kChessboard) {
    found = find_corners(picture, size, quick, points);
    if (found && !looks_the_same_turned(board) &&
        !first_square_is_dark(picture, points, board.columns)) {
      std::reverse(points.begin(), points.end());
    }
  } else {
    const int layout = board.kind == BoardKind::kCircles ? cv::CALIB_CB_SYMMETRIC_GRID
                                                         : cv::CALIB_CB_ASYMMETRIC_GRID;
    found = cv::findCirclesGrid(picture, size, points, layout);
    if (!found && !quick)
      found = cv::findCirclesGrid(picture, size, points, layout | cv::CALIB_CB_CLUSTERING);
  }
  if (!found) {
    return fail(ErrorCode::kNotFound,
                name + ": no " + describe(board) +
                    " found; the whole board must be visible, sharp and evenly lit, with a light "
                    "edge around it, and the numbers must be those of the print");
  }
  return points;
}

}  // namespace

bool looks_the_same_turned(const Board& board) {
  switch (board.kind) {
    case BoardKind::kChessboard:
      return (board.columns + board.rows) % 2 == 0;
    case BoardKind::kCircles:
      return true;
    case BoardKind::kAsymmetricCircles:
      return board.rows % 2 != 0;
    case BoardKind::kCharuco:
      return false;
  }
  return false;
}

Result<BoardView> find_board(const ImageView& picture, const Board& board, const std::string& name,
                             bool quick) {
  const cv::Mat bytes = as_bytes(picture);
  try {
    if (board.kind == BoardKind::kCharuco) return find_charuco(bytes, board, name);
    const auto points = find_points(bytes, board, name, quick);
    if (!points) return tl::make_unexpected(points.error());
    BoardView view{name, board_points(board), {}};
    for (const cv::Point2f& p : *points) {
      view.image_px.push_back({static_cast<double>(p.x), static_cast<double>(p.y)});
    }
    return view;
  } catch (const cv::Exception& fault) {
    return fail(ErrorCode::kInternal, name + ": OpenCV: " + fault.what());
  }
}

Result<Image> draw_board(const Board& board, double pixels_per_mm) {
  if (board.kind == BoardKind::kCharuco) return draw_charuco(board, pixels_per_mm);
  const double square = board.square_mm * pixels_per_mm;
  const bool chess = board.kind == BoardKind::kChessboard;
  const double step = board.kind == BoardKind::kAsymmetricCircles ? square / 2 : square;
  const double across =
      board.kind == BoardKind::kAsymmetricCircles ? 2 * board.columns : board.columns;
  const int width = static_cast<int>(std::lround((across + 1) * step + 2 * square));
  const int height = static_cast<int>(std::lround((board.rows + 1) * step + 2 * square));
  auto image = Image::create(width, height, PixelFormat::kGray8);
  if (!image) return image;
  cv::Mat picture(height, width, CV_8U, image->view().data, image->view().stride_bytes);
  picture.setTo(255);
  if (chess) {
    for (int row = 0; row <= board.rows; ++row) {
      for (int column = 0; column <= board.columns; ++column) {
        if ((row + column) % 2 != 0) continue;
        const auto edge = [&](int i) { return static_cast<int>(std::lround((i + 1) * square)); };
        picture(cv::Range(edge(row), edge(row + 1)), cv::Range(edge(column), edge(column + 1))) = 0;
      }
    }
    return image;
  }
  for (const Point2& p : board_points(board)) {  // 1/16 pixel: OpenCV draws in fixed point
    const cv::Point centre(cvRound((p.x * pixels_per_mm + 2 * square - 0.5) * 16),
                           cvRound((p.y * pixels_per_mm + 2 * square - 0.5) * 16));
    cv::circle(picture, centre, cvRound(step * 0.3 * 16), 0, cv::FILLED, cv::LINE_AA, 4);
  }
  return image;
}

std::string describe(const Board& board) {
  const char* kinds[] = {"chessboard", "charuco board", "circle grid", "asymmetric circle grid"};
  char text[120];
  std::snprintf(text, sizeof text, "%dx%d %s of %g mm", board.columns, board.rows,
                kinds[static_cast<int>(board.kind)], board.square_mm);
  return text;
}

}  // namespace patternd::calibrate
