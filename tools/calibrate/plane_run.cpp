#include "tools/calibrate/plane_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "calibration/camera_map.h"
#include "calibration/plane_point.h"
#include "tools/calibrate/drawings.h"
#include "tools/calibrate/plane_board.h"

namespace patternd::calibrate {
namespace {

constexpr double kPairLimitPx = 1.0;  // pairs nearer than this are never outliers

double squared_distance(Point2 a, Point2 b) {
  return std::pow(a.x - b.x, 2) + std::pow(a.y - b.y, 2);
}

// How far the pairs are off through the finished model.
PlaneReport measure(const CameraModel& model, const std::vector<PointPair>& pairs) {
  double squared_px = 0;
  double squared_mm = 0;
  double count = 0;
  for (const PointPair& pair : pairs) {
    const auto px = mm_to_image(model, {pair.from, {}});
    const auto mm = image_to_mm(model, {pair.to, {}});
    if (!px || !mm) continue;
    squared_px += squared_distance(px->point, pair.to);
    squared_mm += squared_distance(mm->point, pair.from);
    ++count;
  }
  PlaneReport report;
  report.rms_px = std::sqrt(squared_px / std::max(count, 1.0));
  report.rms_mm = std::sqrt(squared_mm / std::max(count, 1.0));
  return report;
}

// Chooses the output and measures it. `outliers`: pairs that are left out, counting from 1.
Result<void> finish_plane(const Request& request, Outcome& outcome, const Matrix3& homography,
                          const std::vector<PointPair>& pairs, std::vector<std::size_t> outliers) {
  std::vector<PointPair> used;
  std::vector<Point2> points_mm;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (std::find(outliers.begin(), outliers.end(), i + 1) != outliers.end()) continue;
    used.push_back(pairs[i]);
    points_mm.push_back(pairs[i].from);
  }
  auto model = with_plane(outcome.model, homography, points_mm, request.wishes);
  if (!model) return tl::make_unexpected(model.error());
  outcome.model = *model;
  outcome.plane = measure(outcome.model, used);
  outcome.plane->outliers = std::move(outliers);
  return {};
}

Result<void> plane_from_board(const Request& request, Outcome& outcome) {
  if (!request.board) {
    return fail(ErrorCode::kInvalidArgument,
                "--plane needs the board's kind and size (--chessboard CxR --square MM)");
  }
  const auto board = find_plane_board(request, outcome.model);
  if (!board) return tl::make_unexpected(board.error());
  const BoardView& view = board->view;
  if (is_mirrored(view)) {
    return fail(ErrorCode::kInvalidArgument,
                request.plane_picture + ": the board is wrong side up or the picture mirrored");
  }
  if (looks_the_same_turned(*request.board)) {
    outcome.findings.push_back(
        {false,
         "the board looks the same when turned by half a turn, so (0, 0) mm may be its "
         "other end; use one with an odd and an even number of corners, or charuco"});
  }
  auto pose = fit_pose(view, outcome.model.lens);
  if (!pose) return tl::make_unexpected(pose.error());
  const Matrix3 homography = plane_homography(outcome.model.lens, *pose);
  std::vector<PointPair> pairs;
  for (std::size_t i = 0; i < view.board_mm.size(); ++i) {
    pairs.push_back({view.board_mm[i], view.image_px[i]});
  }
  if (auto made = finish_plane(request, outcome, homography, pairs, {}); !made) return made;
  if (request.drawings.empty()) return {};
  return draw_rectified(drawing_path(request.drawings, "plane"), board->picture.view(),
                        outcome.model, view);
}

// The pairs with their pixels as the lens alone would be taken out.
Result<std::vector<PointPair>> without_lens(const CameraModel& model,
                                            const std::vector<PointPair>& pairs) {
  const CameraMap lens(model);
  std::vector<PointPair> undistorted;
  for (const PointPair& pair : pairs) {
    const auto p = lens.to_output(pair.to);
    if (!p) {
      return fail(ErrorCode::kInvalidArgument,
                  "pair " + std::to_string(undistorted.size() + 1) +
                      ": the lens has no ray for its pixel; is it inside the picture?");
    }
    undistorted.push_back({pair.from, *p});
  }
  return undistorted;
}

Result<void> plane_from_pairs(const Request& request, Outcome& outcome) {
  const auto undistorted = without_lens(outcome.model, request.plane_pairs);
  if (!undistorted) return tl::make_unexpected(undistorted.error());
  auto fit = fit_homography_robust(*undistorted, kPairLimitPx);
  if (!fit) return tl::make_unexpected(fit.error());
  std::vector<std::size_t> outliers;
  for (std::size_t i = 0; i < fit->used.size(); ++i) {
    if (fit->used[i]) continue;
    outliers.push_back(i + 1);
    std::array<char, 100> text{};
    std::snprintf(text.data(), text.size(),
                  "pair %zu is %.2f px off and was left out; check its numbers", i + 1,
                  fit->distances[i]);
    outcome.findings.push_back({false, text.data()});
  }
  Jacobian2 j{};
  if (apply(fit->homography, undistorted->front().from, &j) && j[0] * j[3] - j[1] * j[2] < 0) {
    return fail(ErrorCode::kInvalidArgument,
                "the plane comes out mirrored; its y must run clockwise from its x (downwards "
                "where x runs to the right)");
  }
  return finish_plane(request, outcome, fit->homography, request.plane_pairs, std::move(outliers));
}

}  // namespace

Result<void> find_plane(const Request& request, Outcome& outcome) {
  if (!request.plane_picture.empty()) return plane_from_board(request, outcome);
  if (!request.plane_pairs.empty()) return plane_from_pairs(request, outcome);
  return {};
}

}  // namespace patternd::calibrate
