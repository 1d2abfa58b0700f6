#include "tools/calibrate/lens_run.h"

#include <utility>

#include "pipeline/image_file.h"
#include "tools/calibrate/conversions.h"
#include "tools/calibrate/drawings.h"
#include "tools/calibrate/frame_stream.h"
#include "tools/calibrate/input_pictures.h"
#include "tools/calibrate/view_collection.h"

namespace patternd::calibrate {
namespace {

Result<void> take(Outcome& outcome, Result<CameraModel> model) {
  if (!model) return tl::make_unexpected(model.error());
  outcome.model = *model;
  outcome.model.plane.reset();
  outcome.model.border = 0;
  return {};
}

// Point pairs alone: the plane as the camera shows it, without a lens.
Result<void> take_size(const Request& request, Outcome& outcome) {
  const std::string& name = request.pictures.front();
  if (is_stream(name, request.most_views)) {
    auto stream = open_stream(name);
    if (!stream) return tl::make_unexpected(stream.error());
    const auto frame = (*stream)->next();
    if (!frame) return tl::make_unexpected(frame.error());
    if (!*frame) return fail(ErrorCode::kNotFound, name + ": no frame");
    return agree_on_size(outcome.model, name, (*frame)->luma);
  }
  const auto paths = picture_paths(name, 1);
  if (!paths) return tl::make_unexpected(paths.error());
  const auto picture = read_image(paths->front());
  if (!picture) return tl::make_unexpected(picture.error());
  return agree_on_size(outcome.model, paths->front(), picture->view());
}

Result<void> draw_view(const Request& request, const Outcome& outcome, ViewCollection& collection,
                       std::size_t i) {
  const BoardView& view = collection.views()[i];
  ViewSource& source = collection.source(i);
  Image& picture = source.picture;
  if (picture.empty()) {  // a file, which is still there
    auto read = read_image(view.name);
    if (!read) return tl::make_unexpected(read.error());
    picture = std::move(*read);
  }
  return draw_residuals(drawing_path(request.drawings, source.stem + "-residuals"),
                        std::as_const(picture).view(), view, outcome.fit->lens,
                        outcome.fit->poses[i]);
}

Result<void> describe_pictures(const Request& request, Outcome& outcome,
                               ViewCollection& collection) {
  const std::vector<BoardView>& views = collection.views();
  for (std::size_t i = 0; i < views.size(); ++i) {
    PictureReport& report = outcome.pictures[collection.source(i).report];
    report.points = views[i].image_px.size();
    report.rms_px = outcome.fit->view_rms_px[i];
    report.coverage = coverage({views[i]}, outcome.model.image_width, outcome.model.image_height);
    report.tilt_deg = tilt_deg(outcome.fit->poses[i]);
    if (request.drawings.empty()) continue;
    if (auto drawn = draw_view(request, outcome, collection, i); !drawn) return drawn;
  }
  return {};
}

Result<void> fit_lens(const Request& request, Outcome& outcome) {
  ViewCollection collection(request, outcome);
  const std::vector<BoardView>& views = collection.views();
  for (const std::string& name : request.pictures) {
    if (auto added = collection.add(name); !added) return added;
  }
  if (views.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "the board was found in no picture; " + collection.not_found());
  }
  const int width = outcome.model.image_width;
  const int height = outcome.model.image_height;
  auto fit = fit_camera(views, width, height, request.fit);
  while (fit && request.leave_out && outstanding_view(*fit) >= 0) {
    collection.leave_out(static_cast<std::size_t>(outstanding_view(*fit)), "its error stood out");
    fit = fit_camera(views, width, height, request.fit);
  }
  if (!fit) return tl::make_unexpected(fit.error());
  outcome.model.lens = fit->lens;
  outcome.coverage = coverage(views, width, height);
  outcome.findings = check_calibration(views, *fit, width, height);
  outcome.fit = std::move(*fit);
  return describe_pictures(request, outcome, collection);
}

}  // namespace

Result<void> find_lens(const Request& request, Outcome& outcome) {
  if (!request.opencv_file.empty()) return take(outcome, from_opencv(request.opencv_file));
  if (!request.ros_file.empty()) return take(outcome, from_ros(request.ros_file));
  if (!request.lens_file.empty()) return take(outcome, load_camera_model(request.lens_file));
  if (request.pictures.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "no pictures; name files, folders, recordings, or HOST:PORT of a service");
  }
  return request.board ? fit_lens(request, outcome) : take_size(request, outcome);
}

}  // namespace patternd::calibrate
