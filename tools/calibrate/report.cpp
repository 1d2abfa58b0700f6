#include "tools/calibrate/report.h"

#include <cstdarg>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace patternd::calibrate {
namespace {

__attribute__((format(printf, 2, 3))) void add(std::string& text, const char* format, ...) {
  char buffer[600];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  text += buffer;
}

void add_fit(std::string& text, const Outcome& outcome) {
  const CameraFit& fit = *outcome.fit;
  add(text, "%s, RMS %.3f px over %zu pictures, %.0f %% of the picture covered\n",
      name_of(fit.lens.model), fit.rms_px, fit.poses.size(), outcome.coverage * 100);
  for (const StreamProgress& stream : outcome.streams) {
    add(text, "  %s: %llu frames looked at, the board in %llu, %zu views taken\n",
        stream.name.c_str(), static_cast<unsigned long long>(stream.frames),
        static_cast<unsigned long long>(stream.with_board), stream.taken);
  }
  for (std::size_t i = 0; i < fit.names.size(); ++i) {
    add(text, "  %-3s %14.6f  +- %.6f\n", fit.names[i].c_str(), fit.values[i],
        fit.standard_deviations[i]);
  }
  for (const PictureReport& picture : outcome.pictures) {
    if (picture.left_out.empty()) {
      add(text, "  %s: %zu points, RMS %.3f px, %.0f %% covered, tilted %.0f degrees\n",
          picture.name.c_str(), picture.points, picture.rms_px, picture.coverage * 100,
          picture.tilt_deg);
    } else {
      add(text, "  %s: left out\n", picture.name.c_str());
    }
  }
}

}  // namespace

std::string report_text(const Outcome& outcome, const std::string& file) {
  std::string text;
  add(text, "%s: %dx%d pixels\n", file.c_str(), outcome.model.image_width,
      outcome.model.image_height);
  if (outcome.fit) add_fit(text, outcome);
  if (outcome.plane && outcome.model.plane) {
    const Plane& plane = *outcome.model.plane;
    add(text,
        "plane: %dx%d pixels of %.6g mm, (0, 0) mm at pixel (%g, %g); points fit to %.3f px, "
        "%.4f mm\n",
        plane.width, plane.height, plane.mm_per_px, plane.origin_px.x, plane.origin_px.y,
        outcome.plane->rms_px, outcome.plane->rms_mm);
  }
  for (const Finding& finding : outcome.findings) {
    add(text, "%s: %s\n", finding.fault ? "fault" : "warning", finding.message.c_str());
  }
  return text;
}

std::string report_json(const Outcome& outcome, const std::string& file) {
  nlohmann::json root = {{"type", "calibration"},
                         {"file", file},
                         {"image_size", {outcome.model.image_width, outcome.model.image_height}},
                         {"model", name_of(outcome.model.lens.model)}};
  if (outcome.fit) {
    const CameraFit& fit = *outcome.fit;
    root["rms_px"] = fit.rms_px;
    root["noise_px"] = fit.noise_px;
    root["coverage"] = outcome.coverage;
    for (std::size_t i = 0; i < fit.names.size(); ++i) {
      root["parameters"][fit.names[i]] = {{"value", fit.values[i]},
                                          {"std", fit.standard_deviations[i]}};
    }
  }
  root["pictures"] = nlohmann::json::array();
  for (const PictureReport& picture : outcome.pictures) {
    nlohmann::json line = {{"image", picture.name}, {"used", picture.left_out.empty()}};
    if (picture.left_out.empty()) {
      line.update({{"points", picture.points},
                   {"rms_px", picture.rms_px},
                   {"coverage", picture.coverage},
                   {"tilt_deg", picture.tilt_deg}});
    } else {
      line["reason"] = picture.left_out;
    }
    root["pictures"].push_back(line);
  }
  for (const StreamProgress& stream : outcome.streams) {
    root["streams"].push_back({{"name", stream.name},
                               {"frames", stream.frames},
                               {"with_board", stream.with_board},
                               {"taken", stream.taken}});
  }
  if (outcome.plane && outcome.model.plane) {
    const Plane& plane = *outcome.model.plane;
    root["plane"] = {{"width", plane.width},
                     {"height", plane.height},
                     {"mm_per_px", plane.mm_per_px},
                     {"origin_px", {plane.origin_px.x, plane.origin_px.y}},
                     {"rms_px", outcome.plane->rms_px},
                     {"rms_mm", outcome.plane->rms_mm},
                     {"outliers", outcome.plane->outliers}};
  }
  root["warnings"] = nlohmann::json::array();
  for (const Finding& finding : outcome.findings) root["warnings"].push_back(finding.message);
  return root.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace patternd::calibrate
