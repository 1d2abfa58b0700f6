#include "tools/calibrate/checks.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <set>
#include <utility>

#include "calibration/homography.h"

namespace patternd::calibrate {
namespace {

constexpr int kCellsAcross = 10;
constexpr int kCellsDown = 8;
constexpr std::size_t kFewPictures = 8;
constexpr double kAlikeDeg = 15;
constexpr double kUncertainFocal = 0.01;
const double kDegree = std::acos(-1.0) / 180;

__attribute__((format(printf, 1, 2))) std::string text(const char* format, ...) {
  char buffer[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

double normal_angle_deg(const BoardPose& a, const BoardPose& b) {
  double dot = 0;
  for (const std::size_t i : {2, 5, 8}) dot += a.rotation[i] * b.rotation[i];
  return std::acos(std::clamp(dot, -1.0, 1.0)) / kDegree;
}

void check_variety(const std::vector<BoardView>& views, const CameraFit& fit,
                   std::vector<Finding>& findings) {
  if (views.size() < kFewPictures) {
    findings.push_back({false, text("only %zu pictures; %zu or more make the result firm",
                                    views.size(), kFewPictures)});
  }
  double most = 0;
  for (std::size_t i = 0; i < views.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      most = std::max(most, normal_angle_deg(fit.poses[i], fit.poses[j]));
    }
  }
  if (most < kAlikeDeg) {
    findings.push_back({false, text("the pictures are too alike (boards differ by %.0f degrees at "
                                    "most); tilt the board by 30 degrees in different directions",
                                    most)});
  }
}

void check_corners(const std::vector<BoardView>& views, int width, int height,
                   std::vector<Finding>& findings) {
  const char* names[2][2] = {{"upper left", "upper right"}, {"lower left", "lower right"}};
  std::string missing;
  for (int down = 0; down < 2; ++down) {
    for (int across = 0; across < 2; ++across) {
      bool reached = false;
      for (const BoardView& view : views) {
        for (const Point2& p : view.image_px) {
          const double x = across == 0 ? p.x : width - 1 - p.x;
          const double y = down == 0 ? p.y : height - 1 - p.y;
          reached = reached || (x < 0.2 * width && y < 0.2 * height);
        }
      }
      if (!reached) missing += std::string(missing.empty() ? "" : ", ") + names[down][across];
    }
  }
  if (missing.empty()) return;
  findings.push_back({false, "no board reaches into the picture's corners (" + missing +
                                 "); distortion there is only extrapolated"});
}

void check_numbers(const CameraFit& fit, int width, int height, std::vector<Finding>& findings) {
  const double fx = fit.values[0];
  const double fy = fit.values[1];
  const double side = std::max(width, height);
  if (fx < 0.2 * side || fx > 30 * side || std::abs(fx / fy - 1) > 0.1) {
    findings.push_back({false, text("the focal length is out of reason (%.1f, %.1f pixels for a "
                                    "picture %d wide); check the board's numbers and the pictures",
                                    fx, fy, width)});
  }
  if (std::abs(fit.values[2] - width / 2.0) > 0.2 * width ||
      std::abs(fit.values[3] - height / 2.0) > 0.2 * height) {
    findings.push_back({false, text("the optical axis meets the picture far from its middle "
                                    "(%.1f, %.1f); is it cut from a larger one?",
                                    fit.values[2], fit.values[3])});
  }
  if (fit.standard_deviations[0] > kUncertainFocal * fx) {
    findings.push_back({false, text("the focal length is uncertain (%.1f +- %.1f); take pictures "
                                    "with the board tilted more",
                                    fx, fit.standard_deviations[0])});
  }
  CameraModel lens;
  lens.image_width = width;
  lens.image_height = height;
  lens.lens = fit.lens;
  if (auto sound = check_camera_model(lens, "the lens"); !sound) {
    findings.push_back({true, sound.error().message});
  }
}

}  // namespace

double coverage(const std::vector<BoardView>& views, int width, int height) {
  std::set<std::pair<int, int>> cells;
  for (const BoardView& view : views) {
    for (const Point2& p : view.image_px) {
      cells.insert({std::clamp(static_cast<int>(p.x * kCellsAcross / width), 0, kCellsAcross - 1),
                    std::clamp(static_cast<int>(p.y * kCellsDown / height), 0, kCellsDown - 1)});
    }
  }
  return static_cast<double>(cells.size()) / (kCellsAcross * kCellsDown);
}

double tilt_deg(const BoardPose& pose) {
  return std::acos(std::clamp(std::abs(pose.rotation[8]), 0.0, 1.0)) / kDegree;
}

int outstanding_view(const CameraFit& fit) {
  if (fit.view_rms_px.size() < 4) return -1;
  const auto worst = std::max_element(fit.view_rms_px.begin(), fit.view_rms_px.end());
  std::vector<double> others = fit.view_rms_px;
  others.erase(others.begin() + (worst - fit.view_rms_px.begin()));
  std::sort(others.begin(), others.end());
  const bool stands_out = *worst > 3 * others[others.size() / 2] && *worst > 0.3;
  return stands_out ? static_cast<int>(worst - fit.view_rms_px.begin()) : -1;
}

bool is_mirrored(const BoardView& view) {
  std::vector<PointPair> pairs;
  for (std::size_t i = 0; i < view.board_mm.size(); ++i) {
    pairs.push_back({view.board_mm[i], view.image_px[i]});
  }
  const auto fit = fit_homography(pairs);
  Jacobian2 j{};
  if (!fit || !apply(fit->homography, view.board_mm[view.board_mm.size() / 2], &j)) return false;
  return j[0] * j[3] - j[1] * j[2] < 0;
}

std::vector<Finding> check_calibration(const std::vector<BoardView>& views, const CameraFit& fit,
                                       int width, int height) {
  std::vector<Finding> findings;
  for (const BoardView& view : views) {
    if (!is_mirrored(view)) continue;
    findings.push_back({true, view.name + ": the board is wrong side up or the picture mirrored"});
  }
  check_variety(views, fit, findings);
  if (const int worst = outstanding_view(fit); worst >= 0) {
    const auto i = static_cast<std::size_t>(worst);
    findings.push_back({false, views[i].name + ": its error stands out " +
                                   text("(%.2f px, all together %.2f); blurred, bent or wrongly "
                                        "found? --leave-out does without it",
                                        fit.view_rms_px[i], fit.rms_px)});
  }
  check_corners(views, width, height, findings);
  check_numbers(fit, width, height, findings);
  return findings;
}

}  // namespace patternd::calibrate
