#include "tools/calibrate/plane_board.h"

#include <utility>

#include "pipeline/image_file.h"
#include "tools/calibrate/frame_stream.h"
#include "tools/calibrate/input_pictures.h"
#include "tools/calibrate/view_selection.h"

namespace patternd::calibrate {
namespace {

// Frames taken of a board that is filmed, how long it is waited for, and how little it may move
// between two of them.
constexpr std::size_t kFrames = 10;
constexpr double kSeconds = 10;
constexpr double kStillPx = 0.5;

// The first view's points, each the mean over the views that have as many.
BoardView mean_view(std::vector<BoardView> views) {
  BoardView mean = std::move(views.front());
  for (std::size_t i = 0; i < mean.image_px.size(); ++i) {
    Point2 sum = mean.image_px[i];
    for (std::size_t v = 1; v < views.size(); ++v) {
      sum.x += views[v].image_px[i].x;
      sum.y += views[v].image_px[i].y;
    }
    const auto count = static_cast<double>(views.size());
    mean.image_px[i] = {sum.x / count, sum.y / count};
  }
  return mean;
}

Result<void> check_plane_size(const Request& request, const CameraModel& model,
                              const ImageView& picture) {
  if (picture.width == model.image_width && picture.height == model.image_height) return {};
  return fail(ErrorCode::kInvalidArgument,
              request.plane_picture + " has " + size_text(picture.width, picture.height) +
                  " pixels, the lens is for " + size_text(model.image_width, model.image_height));
}

// Takes a view that fits those before; they stay as they are where it has other points, as ChArUco
// boards may show in another frame.
Result<void> add_view(const Request& request, BoardView view, const ImageView& luma,
                      std::vector<BoardView>& views, Image& picture) {
  if (views.empty()) {
    auto copy = Image::copy_of(luma);
    if (!copy) return tl::make_unexpected(copy.error());
    picture = std::move(*copy);
  } else if (!(view_distance_px(views.front(), view) < kStillPx)) {
    return fail(ErrorCode::kInvalidArgument,
                request.plane_picture + ": the board moves; let it lie on the plane");
  } else if (view.image_px.size() != views.front().image_px.size()) {
    return {};
  }
  views.push_back(std::move(view));
  return {};
}

Result<PlaneBoard> watch_plane_board(const Request& request, const CameraModel& model) {
  auto stream = open_stream(request.plane_picture);
  if (!stream) return tl::make_unexpected(stream.error());
  std::vector<BoardView> views;
  Image picture;
  std::string why = request.plane_picture + ": no frame";
  while (views.size() < kFrames) {
    auto frame = (*stream)->next();
    if (!frame) return tl::make_unexpected(frame.error());
    if (!*frame || (*frame)->seconds > kSeconds) break;
    const ImageView& luma = (*frame)->luma;
    if (auto fits = check_plane_size(request, model, luma); !fits)
      return tl::make_unexpected(fits.error());
    auto view = find_board(luma, *request.board, request.plane_picture, true);
    if (!view) {
      why = view.error().message;
    } else if (auto added = add_view(request, std::move(*view), luma, views, picture); !added) {
      return tl::make_unexpected(added.error());
    }
  }
  if (views.empty()) return fail(ErrorCode::kNotFound, why);
  return PlaneBoard{mean_view(std::move(views)), std::move(picture)};
}

}  // namespace

Result<PlaneBoard> find_plane_board(const Request& request, const CameraModel& model) {
  const std::string& name = request.plane_picture;
  if (is_stream(name, request.most_views)) return watch_plane_board(request, model);
  auto picture = read_image(name);
  if (!picture) return tl::make_unexpected(picture.error());
  const ImageView shown = std::as_const(*picture).view();
  if (auto fits = check_plane_size(request, model, shown); !fits)
    return tl::make_unexpected(fits.error());
  auto view = find_board(shown, *request.board, name);
  if (!view) return tl::make_unexpected(view.error());
  return PlaneBoard{std::move(*view), std::move(*picture)};
}

}  // namespace patternd::calibrate
