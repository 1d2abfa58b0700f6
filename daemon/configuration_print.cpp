#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "daemon/configuration.h"
#include "daemon/line_writer.h"

namespace patternd {
namespace {

std::string number(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return std::string(text, end.ptr);
}

// A JSON string is a YAML string too; plain words are left without quotes.
std::string word(const std::string& text) {
  const bool plain =
      !text.empty() &&
      text.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
          "0123456789_./-") == std::string::npos &&
      text.find_first_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/") == 0 &&
      text != "null";
  if (plain) return text;
  std::string memory(json_text_bound(text.size()), '\0');
  LineWriter line(memory.data(), memory.size());
  line.text(text);
  return std::string(line.view());
}

// Paths in the output count from wherever it is stored, so they are written absolute.
std::string path_word(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  return word(error ? path : absolute.lexically_normal().string());
}

std::string truth(bool value) { return value ? "true" : "false"; }
std::string range(const Range& r) { return "[" + number(r.low) + ", " + number(r.high) + "]"; }
std::string size_or_auto(double value) { return value == 0 ? "auto" : number(value); }

std::string roi(const std::optional<Roi>& area) {
  if (!area) return "all";
  return "[" + number(area->x) + ", " + number(area->y) + ", " + number(area->width) + ", " +
         number(area->height) + "]";
}

std::string angles(const std::vector<Range>& ranges) {
  if (ranges.empty()) return "all";
  if (ranges.size() == 1) return range(ranges[0]);
  std::string list = "[";
  for (const Range& r : ranges) list += (list.size() > 1 ? ", " : "") + range(r);
  return list + "]";
}

std::string camera_yaml(const CameraConfig& camera) {
  std::string out = "camera:\n  name: " + word(camera.name) + "\n  source: " + name_of(camera.kind);
  if (camera.kind == CameraConfig::Kind::kV4l2) {
    out += "\n  device: " + path_word(camera.device) + "\n  controls: {";
    for (const auto& [name, value] : camera.controls) {
      if (out.back() != '{') out += ", ";
      out += word(name) + ": " + std::to_string(value);
    }
    out += "}";
  } else if (camera.kind == CameraConfig::Kind::kGstreamer) {
    out += "\n  pipeline: " + word(camera.pipeline);
  } else {
    out += "\n  path: " + path_word(camera.path) + "\n  loop: " + truth(camera.loop) +
           "\n  realtime: " + truth(camera.realtime);
  }
  if (camera.kind != CameraConfig::Kind::kReplay) {
    out += "\n  max_silence_s: " +
           (camera.max_silence_s > 0 ? number(camera.max_silence_s) : std::string("none"));
  }
  return out + "\n  width: " + size_or_auto(camera.width) +
         "\n  height: " + size_or_auto(camera.height) + "\n  format: " + word(camera.format) +
         "\n  fps: " + size_or_auto(camera.fps) + "\n";
}

std::string pattern_yaml(const Configuration::PatternEntry& entry) {
  const SearchParams& p = entry.params;
  return "  - name: " + word(entry.name) + "\n    pattern: " + path_word(entry.file) +
         "\n    min_score: " + number(p.min_score) +
         "\n    max_matches: " + std::to_string(p.max_matches) +
         "\n    angle: " + angles(p.angle_deg) + "\n    scale: " + range(p.scale) +
         "\n    max_overlap: " + number(p.max_overlap) +
         "\n    min_visible: " + number(p.min_visible) +
         "\n    min_contrast: " + number(p.min_contrast) +
         "\n    polarity: " + (p.polarity == Polarity::kAny ? "any" : "same") +
         "\n    symmetry: " + std::to_string(p.symmetry) +
         "\n    levels: " + (p.levels ? std::to_string(*p.levels) : "auto") +
         "\n    angle_step: " + (p.angle_step_deg ? number(*p.angle_step_deg) : "auto") +
         "\n    roi: " + roi(p.roi) + "\n";
}

std::string limit_or_none(double value, double none) {
  return value >= none ? "none" : number(value);
}

std::string blob_filters_yaml(const BlobParams& blobs) {
  const BlobParams open;  // what lets every component through
  return "\n  min_area: " + std::to_string(blobs.min_area) + "\n  max_area: " +
         limit_or_none(static_cast<double>(blobs.max_area), static_cast<double>(open.max_area)) +
         "\n  min_width: " + std::to_string(blobs.min_width) +
         "\n  max_width: " + limit_or_none(blobs.max_width, open.max_width) +
         "\n  min_height: " + std::to_string(blobs.min_height) +
         "\n  max_height: " + limit_or_none(blobs.max_height, open.max_height) +
         "\n  min_elongation: " + number(blobs.min_elongation) +
         "\n  max_elongation: " + limit_or_none(blobs.max_elongation, open.max_elongation) +
         "\n  min_peak: " + number(blobs.min_peak);
}

std::string fiducials_yaml(const Configuration& configuration) {
  const FiducialParams& fiducials = *configuration.fiducials;
  std::string names;
  std::string places;
  for (std::size_t i = 0; i < fiducials.patterns.size(); ++i) {
    const auto pattern = static_cast<std::size_t>(fiducials.patterns[i]);
    names.append(i > 0 ? ", " : "").append(word(configuration.patterns[pattern].name));
    places.append(i > 0 ? ", " : "")
        .append(range({fiducials.places_mm[i].x, fiducials.places_mm[i].y}));
  }
  return "fiducials:\n  patterns: [" + names + "]\n  places_mm: [" + places +
         "]\n  limit_mm: " + number(fiducials.limit_mm) +
         "\n  every: " + std::to_string(fiducials.every) + "\n";
}

std::string blobs_yaml(const BlobParams& blobs, const std::string& dark_frame_file) {
  constexpr const char* kReferences[] = {"off", "dark", "alternate"};
  std::string out = "blobs:\n";
  switch (blobs.mode) {
    case BlobParams::Mode::kThreshold:
      out += "  threshold: " + number(blobs.threshold) + "\n";
      break;
    case BlobParams::Mode::kOtsu:
      out += "  threshold: otsu\n";
      break;
    case BlobParams::Mode::kAdaptive:
      out += "  threshold: {adaptive: [" + std::to_string(blobs.adaptive_radius) + ", " +
             number(blobs.adaptive_offset) + "]}\n";
      break;
    case BlobParams::Mode::kSimilarity:
      out += "  similarity: " + number(blobs.similarity) + "\n";
      break;
  }
  if (blobs.mode != BlobParams::Mode::kSimilarity) out += "  below: " + truth(blobs.below) + "\n";
  return out + "  connectivity: " + std::to_string(blobs.connectivity) + blob_filters_yaml(blobs) +
         "\n  max_blobs: " + std::to_string(blobs.max_blobs) +
         "\n  reference: " + kReferences[static_cast<std::size_t>(blobs.reference)] +
         (dark_frame_file.empty() ? "" : "\n  dark_frame: " + path_word(dark_frame_file)) +
         "\n  roi: " + roi(blobs.roi) + "\n";
}

std::string compute_yaml(const ComputeConfig& compute) {
  return std::string("compute:\n  backend: ") + name_of(compute.backend) +
         "\n  device: " + std::to_string(compute.device) + "\n  memory: " + compute.memory +
         "\n  streams: " + std::to_string(compute.streams) +
         "\n  threads: " + std::to_string(compute.threads) + "\n  image: " + compute.image + "\n";
}

std::string access_yaml(const Access& access) {
  std::string out;
  std::string networks;
  for (const Network& network : access.allow)
    networks.append(networks.empty() ? "" : ", ").append("\"" + shown(network) + "\"");
  if (!networks.empty()) out += "    allow: [" + networks + "]\n";
  if (!access.token_file.empty()) out += "    token_file: " + path_word(access.token_file) + "\n";
  if (access.tls == nullptr) return out;
  out += "    tls:\n      cert: " + path_word(access.certificate_file) +
         "\n      key: " + path_word(access.key_file) + "\n";
  if (!access.client_authorities_file.empty())
    out += "      client_ca: " + path_word(access.client_authorities_file) + "\n";
  return out;
}

std::string socket_file_yaml(const SocketFile& file) {
  char mode[8];
  std::snprintf(mode, sizeof mode, "%04o", file.mode);
  return std::string("    mode: \"") + mode + "\"\n" +
         (file.group.empty() ? "" : "    group: " + word(file.group) + "\n");
}

std::string publish_yaml(const Configuration& configuration) {
  std::string out = "publish:\n";
  for (const Address& address : configuration.listen) {
    out += address.kind == Address::Kind::kTcp
               ? "  tcp:\n    listen: \"" + shown(address) + "\"\n" +
                     access_yaml(*configuration.tcp_access)
               : "  unix:\n    path: " + path_word(address.path) + "\n" +
                     socket_file_yaml(configuration.unix_file);
  }
  return out;
}

}  // namespace

std::string to_yaml(const Configuration& configuration) {
  std::string out = camera_yaml(configuration.camera);
  if (!configuration.calibration_file.empty())
    out += "calibration: " + path_word(configuration.calibration_file) + "\n";
  out += configuration.patterns.empty() ? "patterns: []\n" : "patterns:\n";
  for (const auto& entry : configuration.patterns) out += pattern_yaml(entry);
  if (configuration.fiducials) out += fiducials_yaml(configuration);
  if (configuration.blobs) out += blobs_yaml(*configuration.blobs, configuration.dark_frame_file);
  out += compute_yaml(configuration.compute);
  out += publish_yaml(configuration);
  if (!configuration.latency_log.empty())
    out += "latency:\n  log: " + path_word(configuration.latency_log) + "\n";
  return out + "log:\n  level: " + name_of(configuration.log_level) + "\n";
}

std::string rectified_corners(const Configuration& configuration) {
  if (!configuration.calibration) return "";
  const CameraModel& model = *configuration.calibration;
  const double right = model.output_width() - 1;
  const double bottom = model.output_height() - 1;
  const bool has_mm = model.plane && model.plane->mm_per_px > 0;
  std::string out;
  for (const Point2 corner :
       {Point2{0, 0}, Point2{right, 0}, Point2{right, bottom}, Point2{0, bottom}}) {
    char line[200];
    std::snprintf(line, sizeof line, "# rectified (%g, %g)", corner.x, corner.y);
    out += line;
    if (has_mm) {
      const Point2 mm = model.to_mm(corner);
      std::snprintf(line, sizeof line, " = (%.2f, %.2f) mm", mm.x, mm.y);
      out += line;
    }
    const auto input = model.to_input(corner);
    if (!input) {
      out += " lies behind the camera or where its lens folds back\n";
      continue;
    }
    const bool inside = input->x >= 0 && input->y >= 0 && input->x <= model.image_width - 1 &&
                        input->y <= model.image_height - 1;
    std::snprintf(line, sizeof line, " comes from camera (%.2f, %.2f)%s\n", input->x, input->y,
                  inside ? "" : ", outside the picture: the border's value");
    out += line;
  }
  return out;
}

}  // namespace patternd
