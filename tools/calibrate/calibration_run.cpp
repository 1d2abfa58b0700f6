#include "tools/calibrate/calibration_run.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <utility>

#include "calibration/camera_map.h"
#include "calibration/plane_point.h"
#include "pipeline/image_file.h"
#include "tools/calibrate/conversions.h"
#include "tools/calibrate/drawings.h"

namespace patternd::calibrate {
namespace {

namespace files = std::filesystem;

constexpr double kPairLimitPx = 1.0;  // pairs nearer than this are never outliers
constexpr std::size_t kPairsFileLimit = 4U << 20;

bool is_picture(const files::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg" || ending == ".pgm" ||
         ending == ".ppm";
}

// Files as named, folders by the names of their pictures, every n-th of each.
Result<std::vector<std::string>> picture_paths(const std::vector<std::string>& named, int every) {
  std::vector<std::string> paths;
  for (const std::string& name : named) {
    std::error_code ignored;
    if (!files::is_directory(name, ignored)) {
      paths.push_back(name);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : files::directory_iterator(name, ignored)) {
      if (is_picture(entry.path())) inside.push_back(entry.path().string());
    }
    std::sort(inside.begin(), inside.end());
    if (inside.empty()) {
      return fail(ErrorCode::kNotFound,
                  name +
                      ": no pictures in this folder (PNG, JPEG, PGM, PPM); of a video, make "
                      "numbered pictures first, with patternctl record");
    }
    for (std::size_t i = 0; i < inside.size(); i += static_cast<std::size_t>(every)) {
      paths.push_back(inside[i]);
    }
  }
  return paths;
}

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
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
    const auto named = picture_paths(request_.pictures, request_.every);
    if (!named) return tl::make_unexpected(named.error());
    const std::vector<std::string>& paths = *named;
    if (paths.empty()) {
      return fail(ErrorCode::kInvalidArgument, "no pictures; name files or a folder of them");
    }
    return request_.board ? fit_lens(paths) : take_size(paths.front());
  }

  Result<void> take(Result<CameraModel> model) {
    if (!model) return tl::make_unexpected(model.error());
    outcome_.model = *model;
    outcome_.model.plane.reset();
    outcome_.model.border = 0;
    return {};
  }

  // Point pairs alone: the plane as the camera shows it, without a lens.
  Result<void> take_size(const std::string& path) {
    auto picture = read_image(path);
    if (!picture) return tl::make_unexpected(picture.error());
    outcome_.model.image_width = picture->width();
    outcome_.model.image_height = picture->height();
    return {};
  }

  Result<void> fit_lens(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      if (auto added = add_picture(path); !added) return added;
    }
    if (views_.empty()) {
      return fail(ErrorCode::kInvalidArgument, "the board was found in none of " +
                                                   std::to_string(paths.size()) + " pictures; " +
                                                   outcome_.pictures.front().left_out);
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
    CameraModel& model = outcome_.model;
    if (model.image_width == 0) {
      model.image_width = picture->width();
      model.image_height = picture->height();
    }
    if (picture->width() != model.image_width || picture->height() != model.image_height) {
      return fail(ErrorCode::kInvalidArgument,
                  path + " has " + size_text(picture->width(), picture->height()) +
                      " pixels, the pictures before it " +
                      size_text(model.image_width, model.image_height) +
                      "; all must come from one camera in one mode");
    }
    outcome_.pictures.push_back({path, 0, 0, 0, 0, {}});
    auto view = find_board(std::as_const(*picture).view(), *request_.board, path);
    if (view) {
      view_pictures_.push_back(outcome_.pictures.size() - 1);
      views_.push_back(std::move(*view));
      return {};
    }
    if (view.error().code != ErrorCode::kNotFound) return tl::make_unexpected(view.error());
    outcome_.pictures.back().left_out = view.error().message;
    outcome_.findings.push_back({false, view.error().message});
    return {};
  }

  void leave_out(std::size_t view) {
    const auto at = static_cast<std::ptrdiff_t>(view);
    outcome_.pictures[view_pictures_[view]].left_out = "its error stood out";
    views_.erase(views_.begin() + at);
    view_pictures_.erase(view_pictures_.begin() + at);
  }

  Result<void> describe_pictures() {
    for (std::size_t i = 0; i < views_.size(); ++i) {
      PictureReport& report = outcome_.pictures[view_pictures_[i]];
      report.points = views_[i].image_px.size();
      report.rms_px = outcome_.fit->view_rms_px[i];
      report.coverage =
          coverage({views_[i]}, outcome_.model.image_width, outcome_.model.image_height);
      report.tilt_deg = tilt_deg(outcome_.fit->poses[i]);
      if (request_.drawings.empty()) continue;
      auto picture = read_image(report.name);
      if (!picture) return tl::make_unexpected(picture.error());
      const std::string path =
          drawing_path(files::path(report.name).stem().string() + "-residuals");
      if (auto drawn = draw_residuals(path, std::as_const(*picture).view(), views_[i],
                                      outcome_.fit->lens, outcome_.fit->poses[i]);
          !drawn) {
        return drawn;
      }
    }
    return {};
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
    auto picture = read_image(request_.plane_picture);
    if (!picture) return tl::make_unexpected(picture.error());
    if (picture->width() != outcome_.model.image_width ||
        picture->height() != outcome_.model.image_height) {
      return fail(ErrorCode::kInvalidArgument,
                  request_.plane_picture + " has " +
                      size_text(picture->width(), picture->height()) + " pixels, the lens is for " +
                      size_text(outcome_.model.image_width, outcome_.model.image_height));
    }
    auto view = find_board(std::as_const(*picture).view(), *request_.board, request_.plane_picture);
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
    return draw_rectified(drawing_path("plane"), std::as_const(*picture).view(), outcome_.model,
                          *view);
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
      outcome_.findings.push_back({false, "pair " + std::to_string(i + 1) + " is " +
                                              std::to_string(fit->distances[i]) +
                                              " px off and was left out; check its numbers"});
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
  std::vector<std::size_t> view_pictures_;  // index into outcome_.pictures, by view
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
