// Boards that a camera is calibrated with, and finding their points in a picture.
#pragma once

#include <string>
#include <vector>

#include "calibration/camera_fit.h"
#include "pipeline/image.h"
#include "pipeline/result.h"

namespace patternd::calibrate {

enum class BoardKind { kChessboard, kCharuco, kCircles, kAsymmetricCircles };

// `columns` × `rows` inner corners (chessboard), squares (charuco) or circles.
struct Board {
  BoardKind kind = BoardKind::kChessboard;
  int columns = 0;
  int rows = 0;
  double square_mm = 0;  // side of a square; circles: distance of neighbours in a row
  double marker_mm = 0;  // charuco: side of a marker
  std::string dictionary = "DICT_4X4_50";
};

// Finds the board's points: x runs along its columns, y along its rows, in millimetres from its
// first point. A chessboard's corners are refined over windows of 5 pixels to each side (less where
// squares are small). Where a board tells its ends apart (one side of the chessboard odd, the other
// even), its first point is the one whose outer square is dark. kNotFound where the board isn't in
// the picture; kUnsupported for charuco in a build without OpenCV's aruco. `quick`: a picture
// without a board is told from one with it in less time, and a board in bad light may be missed.
[[nodiscard]] Result<BoardView> find_board(const ImageView& picture, const Board& board,
                                           const std::string& name, bool quick = false);

// True where half a turn maps the board onto itself, so that its first point is a matter of chance.
[[nodiscard]] bool looks_the_same_turned(const Board& board);

// The board to print, `pixels_per_mm` fine, with a white edge one square wide.
[[nodiscard]] Result<Image> draw_board(const Board& board, double pixels_per_mm);

// "9x6 chessboard, squares of 30 mm"
[[nodiscard]] std::string describe(const Board& board);

}  // namespace patternd::calibrate
