#include "calibration/camera_model_check.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

#include "calibration/camera_map.h"

namespace patternd {
namespace {

// An output pixel that covers less than this many input pixels, or more than its inverse, has no
// picture left to show.
constexpr double kMinAreaRatio = 1e-9;

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
  char buffer[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

// False for NaN and infinities too.
bool within(double value, double limit) { return value >= -limit && value <= limit; }

// Calls visit(point) on the output's outline, every pixel, until it returns false.
template <class Visit>
void visit_outline(const CameraModel& model, Visit&& visit) {
  const int w = model.output_width();
  const int h = model.output_height();
  for (int x = 0; x < w; ++x) {
    if (!visit(Point2{static_cast<double>(x), 0.0})) return;
    if (!visit(Point2{static_cast<double>(x), h - 1.0})) return;
  }
  for (int y = 0; y < h; ++y) {
    if (!visit(Point2{0.0, static_cast<double>(y)})) return;
    if (!visit(Point2{w - 1.0, static_cast<double>(y)})) return;
  }
}

void check_sizes(const CameraModel& model, std::vector<ModelFault>& faults) {
  const auto side_ok = [](int side) { return side >= 1 && side <= kMaxModelSide; };
  if (!side_ok(model.image_width) || !side_ok(model.image_height)) {
    faults.push_back({"image_size", text("%dx%d", model.image_width, model.image_height),
                      text("two whole numbers [width, height], 1 to %d each", kMaxModelSide)});
  }
  if (model.plane && !side_ok(model.plane->width)) {
    faults.push_back(
        {"plane.width", text("%d", model.plane->width), text("1 to %d", kMaxModelSide)});
  }
  if (model.plane && !side_ok(model.plane->height)) {
    faults.push_back(
        {"plane.height", text("%d", model.plane->height), text("1 to %d", kMaxModelSide)});
  }
}

void check_lens_numbers(const Lens& lens, std::vector<ModelFault>& faults) {
  if (lens.model == LensModel::kBrownConrady || lens.model == LensModel::kFisheye) {
    const std::array<double, 9>& k = lens.camera_matrix;
    const std::string form = text(
        "[fx, 0, cx, 0, fy, cy, 0, 0, 1] in pixels, fx and fy from %g to %g, cx and cy from %g "
        "to %g",
        kMinFocalPx, kMaxFocalPx, -kMaxPrincipalPx, kMaxPrincipalPx);
    const auto is_focal = [](double f) { return f >= kMinFocalPx && f <= kMaxFocalPx; };
    const bool shape = k[1] == 0 && k[3] == 0 && k[6] == 0 && k[7] == 0 && k[8] == 1;
    const bool finite = std::all_of(k.begin(), k.end(), [](double v) { return std::isfinite(v); });
    if (!finite) {
      faults.push_back({"lens.camera_matrix", "a number is not finite", form});
    } else if (!shape) {
      faults.push_back({"lens.camera_matrix",
                        "not a camera matrix by rows without skew (is it transposed?)", form});
    } else if (!(is_focal(k[0]) && is_focal(k[4]))) {
      faults.push_back(
          {"lens.camera_matrix", text("focal lengths are %g and %g", k[0], k[4]), form});
    } else if (!within(k[2], kMaxPrincipalPx) || !within(k[5], kMaxPrincipalPx)) {
      faults.push_back(
          {"lens.camera_matrix", text("the principal point is %g, %g", k[2], k[5]), form});
    }
  }
  const std::vector<std::string>& names = coefficient_names(lens.model);
  std::string accepted = "no coefficients with this model";
  if (!names.empty()) {
    accepted = text("numbers from %g to %g for", -kMaxCoefficient, kMaxCoefficient);
    for (const std::string& name : names) accepted += " " + name;
  }
  for (std::size_t i = 0; i < lens.distortion.size(); ++i) {
    if (i >= names.size() && lens.distortion[i] != 0) {
      faults.push_back(
          {"lens.distortion",
           text("coefficient %zu does not exist in model %s", i + 1, name_of(lens.model)),
           accepted});
    } else if (!within(lens.distortion[i], kMaxCoefficient)) {
      faults.push_back({"lens.distortion." + names[i], text("%g", lens.distortion[i]), accepted});
    }
  }
}

void check_plane_numbers(const CameraModel& model, std::vector<ModelFault>& faults) {
  if (!within(model.border, kMaxBorder)) {
    faults.push_back({"plane.border", text("%g", model.border),
                      text("a grey level from %g to %g", -kMaxBorder, kMaxBorder)});
  }
  if (!model.plane) return;
  const Plane& plane = *model.plane;
  const auto& h = plane.homography;
  if (!std::all_of(h.begin(), h.end(), [](double v) { return within(v, kMaxHomography); })) {
    faults.push_back(
        {"plane.homography", "a number is out of range",
         text("nine numbers from %g to %g by rows, output (plane) pixel to undistorted image pixel",
              -kMaxHomography, kMaxHomography)});
  }
  if (!(plane.mm_per_px >= 0 && plane.mm_per_px <= kMaxMmPerPx)) {
    faults.push_back({"plane.mm_per_px", text("%g", plane.mm_per_px),
                      "above 0, millimetres that one output pixel is wide"});
  }
  if (!within(plane.origin_px.x, kMaxOriginPx) || !within(plane.origin_px.y, kMaxOriginPx)) {
    faults.push_back({"plane.origin_px", text("%g, %g", plane.origin_px.x, plane.origin_px.y),
                      text("the output pixel [x, y] that is (0, 0) mm, from %g to %g",
                           -kMaxOriginPx, kMaxOriginPx)});
  }
}

// The lens must have a point for every output pixel whose source could lie in the input picture.
void check_fold(const CameraModel& model, const CameraMap& map, std::vector<ModelFault>& faults) {
  visit_outline(model, [&](Point2 p) {
    const std::optional<Point2> fold = map.fold_in_input(p);
    if (!fold || fold->x < 0 || fold->y < 0 || fold->x > model.image_width - 1.0 ||
        fold->y > model.image_height - 1.0) {
      return true;
    }
    faults.push_back(
        {"lens.distortion",
         text("the lens polynomial folds back within the picture (on the way to output pixel "
              "%.0f, %.0f, at input pixel %.1f, %.1f)",
              p.x, p.y, fold->x, fold->y),
         "coefficients whose polynomial rises over the whole picture: check signs and order, or "
         "calibrate with boards up to the corners, or make the output smaller"});
    return false;
  });
}

// The third coordinate is linear (before the lens), so its least value lies on the outline.
void check_homography(const CameraModel& model, const CameraMap& map,
                      std::vector<ModelFault>& faults) {
  const char* direction = "a homography from output (plane) pixel to undistorted image pixel";
  if (!inverse(model.plane->homography)) {
    faults.push_back({"plane.homography", "singular (its determinant is 0)", direction});
    return;
  }
  bool any_front = false;
  bool any_behind = false;
  Point2 behind{};
  visit_outline(model, [&](Point2 p) {
    const std::optional<double> depth = map.depth(p);
    if (!depth) return true;
    if (*depth > 0) any_front = true;
    if (*depth <= 0 && !any_behind) {
      any_behind = true;
      behind = p;
    }
    return !(any_front && any_behind);
  });
  if (any_behind && any_front) {
    faults.push_back({"plane.homography",
                      text("passes through infinity inside the output (pixel %.0f, %.0f is behind "
                           "the camera)",
                           behind.x, behind.y),
                      std::string(direction) +
                          " whose third coordinate is positive over the whole output; make the "
                          "output smaller or move its origin"});
  } else if (any_behind) {
    faults.push_back({"plane.homography", "the whole output lies behind the camera",
                      "the same nine numbers with their signs changed"});
  }
}

// Looks for a map that squeezes the output into a line or a point.
void check_area(const CameraModel& model, const CameraMap& map, std::vector<ModelFault>& faults) {
  for (const double fx : {0.0, 0.5, 1.0}) {
    for (const double fy : {0.0, 0.5, 1.0}) {
      const Point2 p{fx * (model.output_width() - 1), fy * (model.output_height() - 1)};
      Jacobian2 j{};
      if (!map.to_input(p, &j)) continue;
      const double ratio = std::abs(j[0] * j[3] - j[1] * j[2]);
      if (ratio >= kMinAreaRatio && ratio <= 1 / kMinAreaRatio) continue;
      faults.push_back(
          {"plane.homography",
           text("singular or nearly so: output pixel %.0f, %.0f covers %.3g input pixels", p.x, p.y,
                ratio),
           "a homography from output (plane) pixel to undistorted image pixel (is it the "
           "inverse?)"});
      return;
    }
  }
}

}  // namespace

const std::vector<std::string>& coefficient_names(LensModel model) {
  static const std::vector<std::string> none;
  static const std::vector<std::string> brown{"k1", "k2", "p1", "p2", "k3", "k4", "k5", "k6"};
  static const std::vector<std::string> fisheye{"k1", "k2", "k3", "k4"};
  static const std::vector<std::string> unit{"k1", "k2", "p1", "p2", "k3"};
  switch (model) {
    case LensModel::kNone:
      return none;
    case LensModel::kBrownConrady:
      return brown;
    case LensModel::kFisheye:
      return fisheye;
    case LensModel::kUnitPolynomial:
      return unit;
  }
  return none;
}

std::vector<ModelFault> find_faults(const CameraModel& model) {
  std::vector<ModelFault> faults;
  check_sizes(model, faults);
  check_lens_numbers(model.lens, faults);
  check_plane_numbers(model, faults);
  if (!faults.empty()) return faults;  // the geometry needs sound numbers

  const CameraMap map(model);
  check_fold(model, map, faults);
  if (model.plane) check_homography(model, map, faults);
  if (faults.empty() && model.plane) check_area(model, map, faults);
  return faults;
}

Result<void> check_camera_model(const CameraModel& model, const std::string& name) {
  std::string message;
  for (const ModelFault& fault : find_faults(model)) {
    if (!message.empty()) message += '\n';
    message += name + ": " + fault.key + ": " + fault.wrong + "; " + fault.accepted;
  }
  if (!message.empty()) return fail(ErrorCode::kInvalidArgument, message);
  return {};
}

}  // namespace patternd
