#include "tools/calibrate/calibration_run.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "calibration/camera_map.h"
#include "calibration/plane_point.h"
#include "pipeline/image_file.h"
#include "pipeline/input_file.h"
#include "pipeline/sources/frame_reader.h"
#include "tools/calibrate/conversions.h"
#include "tools/calibrate/drawings.h"
#include "tools/calibrate/frame_stream.h"
#include "tools/calibrate/view_selection.h"

namespace patternd::calibrate {
namespace {

namespace files = std::filesystem;

constexpr double kPairLimitPx = 1.0;  // pairs nearer than this are never outliers
constexpr std::size_t kPairsFileLimit = 4U << 20;
// A running service has shown enough with so many views over this share of the picture.
constexpr std::size_t kEnoughViews = 25;
constexpr double kEnoughCoverage = 0.85;
// Of the board on the plane, where it is filmed: frames taken, how long it is waited for, and how
// little it may move between two of them.
constexpr std::size_t kPlaneFrames = 10;
constexpr double kPlaneSeconds = 10;
constexpr double kStillPx = 0.5;

// A file as named, a folder by the names of its pictures, every n-th of them.
Result<std::vector<std::string>> picture_paths(const std::string& name, int every) {
  std::error_code ignored;
  if (!files::is_directory(name, ignored)) return std::vector<std::string>{name};
  std::vector<std::string> inside;
  for (const auto& entry : files::directory_iterator(name, ignored)) {
    if (is_picture_name(entry.path().filename().string())) inside.push_back(entry.path().string());
  }
  std::sort(inside.begin(), inside.end());
  if (inside.empty()) {
    return fail(ErrorCode::kNotFound,
                name + ": no recording and no pictures in this folder (PNG, JPEG, PGM, PPM)");
  }
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < inside.size(); i += static_cast<std::size_t>(every))
    paths.push_back(inside[i]);
  return paths;
}

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

// Where a view comes from.
struct ViewSource {
  std::size_t report = 0;  // index into the outcome's pictures
  std::string stem;        // of its drawing's name
  Image picture;           // of a stream's frame that is to be drawn
};

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

class Run {
 public:
  explicit Run(const Request& request) : request_(request) {}

  Result<Outcome> carry_out() {
    if (auto done = find_lens(); !done) return tl::make_unexpected(done.error());
    if (auto done = find_plane(); !done) return tl::make_unexpected(done.error());
    return std::move(outcome_);
  }

 private:
  Result<void> find_lens() {
    if (!request_.opencv_file.empty()) return take(from_opencv(request_.opencv_file));
    if (!request_.ros_file.empty()) return take(from_ros(request_.ros_file));
    if (!request_.lens_file.empty()) return take(load_camera_model(request_.lens_file));
    if (request_.pictures.empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "no pictures; name files, folders, recordings, or HOST:PORT of a service");
    }
    return request_.board ? fit_lens() : take_size(request_.pictures.front());
  }

  Result<void> take(Result<CameraModel> model) {
    if (!model) return tl::make_unexpected(model.error());
    outcome_.model = *model;
    outcome_.model.plane.reset();
    outcome_.model.border = 0;
    return {};
  }

  // Point pairs alone: the plane as the camera shows it, without a lens.
  Result<void> take_size(const std::string& name) {
    if (is_stream(name, request_.most_views)) {
      auto stream = open_stream(name);
      if (!stream) return tl::make_unexpected(stream.error());
      const auto frame = (*stream)->next();
      if (!frame) return tl::make_unexpected(frame.error());
      if (!*frame) return fail(ErrorCode::kNotFound, name + ": no frame");
      return check_size(name, (*frame)->luma);
    }
    const auto paths = picture_paths(name, 1);
    if (!paths) return tl::make_unexpected(paths.error());
    const auto picture = read_image(paths->front());
    if (!picture) return tl::make_unexpected(picture.error());
    return check_size(paths->front(), picture->view());
  }

  // The first picture says what size all must have.
  Result<void> check_size(const std::string& name, const ImageView& picture) {
    CameraModel& model = outcome_.model;
    if (model.image_width == 0) {
      model.image_width = picture.width;
      model.image_height = picture.height;
    }
    if (picture.width == model.image_width && picture.height == model.image_height) return {};
    return fail(ErrorCode::kInvalidArgument, name + " has " +
                                                 size_text(picture.width, picture.height) +
                                                 " pixels, the pictures before it " +
                                                 size_text(model.image_width, model.image_height) +
                                                 "; all must come from one camera in one mode");
  }

  Result<void> add_input(const std::string& name) {
    if (is_stream(name, request_.most_views)) return add_stream(name);
    const auto paths = picture_paths(name, request_.every);
    if (!paths) return tl::make_unexpected(paths.error());
    for (const std::string& path : *paths) {
      if (auto added = add_picture(path); !added) return added;
    }
    return {};
  }

  Result<void> fit_lens() {
    for (const std::string& name : request_.pictures) {
      if (auto added = add_input(name); !added) return added;
    }
    if (views_.empty()) {
      return fail(ErrorCode::kInvalidArgument, "the board was found in no picture; " + not_found_);
    }
    const int width = outcome_.model.image_width;
    const int height = outcome_.model.image_height;
    auto fit = fit_camera(views_, width, height, request_.fit);
    while (fit && request_.leave_out && outstanding_view(*fit) >= 0) {
      leave_out(static_cast<std::size_t>(outstanding_view(*fit)));
      fit = fit_camera(views_, width, height, request_.fit);
    }
    if (!fit) return tl::make_unexpected(fit.error());
    outcome_.model.lens = fit->lens;
    outcome_.coverage = coverage(views_, width, height);
    outcome_.findings = check_calibration(views_, *fit, width, height);
    outcome_.fit = std::move(*fit);
    return describe_pictures();
  }

  Result<void> add_picture(const std::string& path) {
    auto picture = read_image(path);
    if (!picture) return tl::make_unexpected(picture.error());
    if (auto fits = check_size(path, std::as_const(*picture).view()); !fits) return fits;
    auto view = find_board(std::as_const(*picture).view(), *request_.board, path);
    if (view) {
      add_view(std::move(*view), files::path(path).stem().string(), {});
      return {};
    }
    if (view.error().code != ErrorCode::kNotFound) return tl::make_unexpected(view.error());
    outcome_.pictures.push_back({path, 0, 0, 0, 0, {}});
    outcome_.pictures.back().left_out = view.error().message;
    outcome_.findings.push_back({false, view.error().message});
    not_found_ = view.error().message;
    return {};
  }

  void add_view(BoardView view, std::string stem, Image picture) {
    outcome_.pictures.push_back({view.name, 0, 0, 0, 0, {}});
    view_sources_.push_back({outcome_.pictures.size() - 1, std::move(stem), std::move(picture)});
    views_.push_back(std::move(view));
  }

  Result<void> add_stream(const std::string& name) {
    auto stream = open_stream(name);
    if (!stream) return tl::make_unexpected(stream.error());
    std::optional<ViewSelection> selection;
    SameAsBefore same;
    StreamProgress progress{name, 0, 0, 0, 0};
    for (std::uint64_t number = 0;; ++number) {
      auto frame = (*stream)->next();
      if (!frame) return tl::make_unexpected(frame.error());
      if (!*frame || ((*stream)->is_live() && is_enough(progress, (*frame)->seconds))) break;
      const ImageView& luma = (*frame)->luma;
      if (auto fits = check_size(name, luma); !fits) return fits;
      if (number % static_cast<std::uint64_t>(request_.every) != 0) continue;
      if (!selection)
        selection.emplace(request_.most_views, luma.width, luma.height, !request_.drawings.empty());
      ++progress.frames;
      if (same(luma)) {
        selection->stood_still();
      } else if (auto looked = look_at(**frame, name, *selection, progress); !looked) {
        return looked;
      }
      if (request_.progress) request_.progress(progress);
    }
    outcome_.streams.push_back(progress);
    if (progress.with_board == 0) return {};
    for (ViewSelection::Kept& kept : selection->take()) {
      add_view(std::move(kept.view), "frame-" + std::to_string(kept.seq), std::move(kept.picture));
    }
    return {};
  }

  [[nodiscard]] bool is_enough(const StreamProgress& progress, double seconds) const {
    return seconds > request_.most_seconds ||
           (progress.taken >= kEnoughViews && progress.coverage >= kEnoughCoverage);
  }

  Result<void> look_at(const StreamFrame& frame, const std::string& name, ViewSelection& selection,
                       StreamProgress& progress) {
    auto view = find_board(frame.luma, *request_.board,
                           name + ", frame " + std::to_string(frame.seq), true);
    if (!view) {
      if (view.error().code != ErrorCode::kNotFound) return tl::make_unexpected(view.error());
      not_found_ = view.error().message;
      return {};
    }
    ++progress.with_board;
    selection.offer(std::move(*view), frame.seq, frame.luma);
    std::vector<BoardView> kept;
    for (const ViewSelection::Kept& each : selection.kept()) kept.push_back(each.view);
    progress.taken = kept.size();
    progress.coverage = coverage(kept, frame.luma.width, frame.luma.height);
    return {};
  }

  void leave_out(std::size_t view) {
    const auto at = static_cast<std::ptrdiff_t>(view);
    outcome_.pictures[view_sources_[view].report].left_out = "its error stood out";
    views_.erase(views_.begin() + at);
    view_sources_.erase(view_sources_.begin() + at);
  }

  Result<void> describe_pictures() {
    for (std::size_t i = 0; i < views_.size(); ++i) {
      PictureReport& report = outcome_.pictures[view_sources_[i].report];
      report.points = views_[i].image_px.size();
      report.rms_px = outcome_.fit->view_rms_px[i];
      report.coverage =
          coverage({views_[i]}, outcome_.model.image_width, outcome_.model.image_height);
      report.tilt_deg = tilt_deg(outcome_.fit->poses[i]);
      if (request_.drawings.empty()) continue;
      if (auto drawn = draw_view(i); !drawn) return drawn;
    }
    return {};
  }

  Result<void> draw_view(std::size_t i) {
    Image& picture = view_sources_[i].picture;
    if (picture.empty()) {  // a file, which is still there
      auto read = read_image(views_[i].name);
      if (!read) return tl::make_unexpected(read.error());
      picture = std::move(*read);
    }
    return draw_residuals(drawing_path(view_sources_[i].stem + "-residuals"),
                          std::as_const(picture).view(), views_[i], outcome_.fit->lens,
                          outcome_.fit->poses[i]);
  }

  [[nodiscard]] std::string drawing_path(const std::string& name) const {
    return (files::path(request_.drawings) / (name + ".png")).string();
  }

  Result<void> find_plane() {
    if (!request_.plane_picture.empty()) return plane_from_board();
    if (!request_.plane_pairs.empty()) return plane_from_pairs();
    return {};
  }

  Result<void> plane_from_board() {
    if (!request_.board) {
      return fail(ErrorCode::kInvalidArgument,
                  "--plane needs the board's kind and size (--chessboard CxR --square MM)");
    }
    Image picture;
    auto view = find_plane_board(picture);
    if (!view) return tl::make_unexpected(view.error());
    if (is_mirrored(*view)) {
      return fail(ErrorCode::kInvalidArgument,
                  request_.plane_picture + ": the board is wrong side up or the picture mirrored");
    }
    if (looks_the_same_turned(*request_.board)) {
      outcome_.findings.push_back(
          {false,
           "the board looks the same when turned by half a turn, so (0, 0) mm may be its "
           "other end; use one with an odd and an even number of corners, or charuco"});
    }
    auto pose = fit_pose(*view, outcome_.model.lens);
    if (!pose) return tl::make_unexpected(pose.error());
    const Matrix3 homography = plane_homography(outcome_.model.lens, *pose);
    std::vector<PointPair> pairs;
    for (std::size_t i = 0; i < view->board_mm.size(); ++i) {
      pairs.push_back({view->board_mm[i], view->image_px[i]});
    }
    if (auto made = finish_plane(homography, pairs, {}); !made) return made;
    if (request_.drawings.empty()) return {};
    return draw_rectified(drawing_path("plane"), std::as_const(picture).view(), outcome_.model,
                          *view);
  }

  // The board on the plane, and the picture that shows it.
  Result<BoardView> find_plane_board(Image& picture) {
    const std::string& name = request_.plane_picture;
    if (is_stream(name, request_.most_views)) return watch_plane_board(picture);
    auto read = read_image(name);
    if (!read) return tl::make_unexpected(read.error());
    picture = std::move(*read);
    if (auto fits = check_plane_size(std::as_const(picture).view()); !fits)
      return tl::make_unexpected(fits.error());
    return find_board(std::as_const(picture).view(), *request_.board, name);
  }

  Result<void> check_plane_size(const ImageView& picture) const {
    const CameraModel& model = outcome_.model;
    if (picture.width == model.image_width && picture.height == model.image_height) return {};
    return fail(ErrorCode::kInvalidArgument,
                request_.plane_picture + " has " + size_text(picture.width, picture.height) +
                    " pixels, the lens is for " + size_text(model.image_width, model.image_height));
  }

  // Several frames of a board that lies still give its corners with less noise than one.
  Result<BoardView> watch_plane_board(Image& picture) {
    auto stream = open_stream(request_.plane_picture);
    if (!stream) return tl::make_unexpected(stream.error());
    std::vector<BoardView> views;
    std::string why = request_.plane_picture + ": no frame";
    while (views.size() < kPlaneFrames) {
      auto frame = (*stream)->next();
      if (!frame) return tl::make_unexpected(frame.error());
      if (!*frame || (*frame)->seconds > kPlaneSeconds) break;
      if (auto fits = check_plane_size((*frame)->luma); !fits)
        return tl::make_unexpected(fits.error());
      auto view = find_board((*frame)->luma, *request_.board, request_.plane_picture, true);
      if (!view) why = view.error().message;
      if (!view) continue;
      if (!views.empty() && !(view_distance_px(views.front(), *view) < kStillPx)) {
        return fail(ErrorCode::kInvalidArgument,
                    request_.plane_picture + ": the board moves; let it lie on the plane");
      }
      // ChArUco boards may show other points in another frame; those of the first count.
      if (!views.empty() && view->image_px.size() != views.front().image_px.size()) continue;
      if (views.empty()) {
        auto copy = Image::copy_of((*frame)->luma);
        if (!copy) return tl::make_unexpected(copy.error());
        picture = std::move(*copy);
      }
      views.push_back(std::move(*view));
    }
    if (views.empty()) return fail(ErrorCode::kNotFound, why);
    return mean_view(std::move(views));
  }

  Result<void> plane_from_pairs() {
    const CameraMap lens(outcome_.model);
    std::vector<PointPair> undistorted;
    for (const PointPair& pair : request_.plane_pairs) {
      const auto p = lens.to_output(pair.to);
      if (!p) {
        return fail(ErrorCode::kInvalidArgument,
                    "pair " + std::to_string(undistorted.size() + 1) +
                        ": the lens has no ray for its pixel; is it inside the picture?");
      }
      undistorted.push_back({pair.from, *p});
    }
    auto fit = fit_homography_robust(undistorted, kPairLimitPx);
    if (!fit) return tl::make_unexpected(fit.error());
    std::vector<std::size_t> outliers;
    for (std::size_t i = 0; i < fit->used.size(); ++i) {
      if (fit->used[i]) continue;
      outliers.push_back(i + 1);
      std::array<char, 100> text{};
      std::snprintf(text.data(), text.size(),
                    "pair %zu is %.2f px off and was left out; check its numbers", i + 1,
                    fit->distances[i]);
      outcome_.findings.push_back({false, text.data()});
    }
    Jacobian2 j{};
    if (apply(fit->homography, undistorted.front().from, &j) && j[0] * j[3] - j[1] * j[2] < 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "the plane comes out mirrored; its y must run clockwise from its x (downwards "
                  "where x runs to the right)");
    }
    return finish_plane(fit->homography, request_.plane_pairs, outliers);
  }

  // Chooses the output and measures how far the pairs are off through the finished model.
  Result<void> finish_plane(const Matrix3& homography, const std::vector<PointPair>& pairs,
                            std::vector<std::size_t> outliers) {
    std::vector<Point2> points_mm;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (std::find(outliers.begin(), outliers.end(), i + 1) == outliers.end()) {
        points_mm.push_back(pairs[i].from);
      }
    }
    auto model = with_plane(outcome_.model, homography, points_mm, request_.wishes);
    if (!model) return tl::make_unexpected(model.error());
    outcome_.model = *model;
    PlaneReport report;
    double squared_px = 0;
    double squared_mm = 0;
    double count = 0;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      if (std::find(outliers.begin(), outliers.end(), i + 1) != outliers.end()) continue;
      const auto px = mm_to_image(outcome_.model, {pairs[i].from, {}});
      const auto mm = image_to_mm(outcome_.model, {pairs[i].to, {}});
      if (!px || !mm) continue;
      squared_px +=
          std::pow(px->point.x - pairs[i].to.x, 2) + std::pow(px->point.y - pairs[i].to.y, 2);
      squared_mm +=
          std::pow(mm->point.x - pairs[i].from.x, 2) + std::pow(mm->point.y - pairs[i].from.y, 2);
      ++count;
    }
    report.rms_px = std::sqrt(squared_px / std::max(count, 1.0));
    report.rms_mm = std::sqrt(squared_mm / std::max(count, 1.0));
    report.outliers = std::move(outliers);
    outcome_.plane = report;
    return {};
  }

  const Request& request_;
  Outcome outcome_;
  std::vector<BoardView> views_;
  std::vector<ViewSource> view_sources_;  // one a view
  std::string not_found_;                 // why the board was not found, the last time
};

}  // namespace

Result<Outcome> calibrate(const Request& request) { return Run(request).carry_out(); }

Result<std::vector<PointPair>> read_pairs(const std::string& path) {
  const auto bytes = read_file(path, kPairsFileLimit);
  if (!bytes) return tl::make_unexpected(bytes.error());
  const std::string all(bytes->begin(), bytes->end());
  std::vector<PointPair> pairs;
  std::size_t start = 0;
  for (int line = 1; start < all.size(); ++line) {
    const std::size_t end = std::min(all.find('\n', start), all.size());
    std::string text = all.substr(start, std::min(end, all.find('#', start)) - start);
    start = end + 1;
    std::vector<double> numbers;
    std::size_t at = 0;
    bool wrong = false;
    while ((at = text.find_first_not_of(" \t\r,;", at)) != std::string::npos) {
      const std::size_t stop = std::min(text.find_first_of(" \t\r,;", at), text.size());
      double value = 0;
      const auto read = std::from_chars(text.data() + at, text.data() + stop, value);
      wrong = wrong || read.ec != std::errc() || read.ptr != text.data() + stop ||
              !std::isfinite(value);
      numbers.push_back(value);
      at = stop;
    }
    if (numbers.empty() && !wrong) continue;
    if (wrong || numbers.size() != 4) {
      return fail(ErrorCode::kParse, path + ":" + std::to_string(line) +
                                         ": not four numbers; x_px y_px x_mm y_mm are expected");
    }
    pairs.push_back({{numbers[2], numbers[3]}, {numbers[0], numbers[1]}});
  }
  return pairs;
}

}  // namespace patternd::calibrate
