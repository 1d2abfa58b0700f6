// The calibration file: YAML to a camera model and back.
#include <algorithm>
#include <array>
#include <charconv>

#include "calibration/camera_model.h"
#include "calibration/camera_model_check.h"
#include "pipeline/yaml_reader.h"

namespace patternd {
namespace {

constexpr std::array<LensModel, 4> kModels = {LensModel::kBrownConrady, LensModel::kFisheye,
                                              LensModel::kUnitPolynomial, LensModel::kNone};

std::string joined(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) result += (result.empty() ? "" : ", ") + word;
  return result;
}

// `distortion` by names ({k1: …}), or as a list in OpenCV's order.
void read_distortion(const YamlNode& node, Lens& lens) {
  const std::vector<std::string>& names = coefficient_names(lens.model);
  if (!node.present()) return;
  if (node.is_sequence()) {
    const std::size_t count = node.size();
    const bool fits = lens.model == LensModel::kBrownConrady
                          ? count == 4 || count == 5 || count == 8
                          : count == names.size();
    if (!fits) {
      node.fault(std::to_string(count) + " coefficients",
                 std::string(name_of(lens.model)) + " takes " + joined(names) +
                     (lens.model == LensModel::kBrownConrady ? " (the first 4, 5 or all 8)" : ""));
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      lens.distortion[i] = node.item(i).number(0, -kMaxCoefficient, kMaxCoefficient);
    return;
  }
  if (names.empty()) {
    node.fault("model none has no distortion", "leave it out, or name the model it belongs to");
    (void)node.entries();
    return;
  }
  for (const auto& [name, value] : node.entries()) {
    std::size_t i = 0;
    while (i < names.size() && names[i] != name) ++i;
    if (i == names.size()) {
      value.fault("no coefficient of model " + std::string(name_of(lens.model)), joined(names));
    } else {
      lens.distortion[i] = value.number(0, -kMaxCoefficient, kMaxCoefficient);
    }
  }
}

Lens read_lens(const YamlNode& node) {
  Lens lens;
  if (!node.present()) return lens;
  std::vector<std::string_view> words;
  words.reserve(kModels.size());
  for (const LensModel model : kModels) words.emplace_back(name_of(model));
  lens.model = kModels[node.required("model", joined({words.begin(), words.end()}))
                           .choice(kModels.size() - 1, words)];
  const bool needs_matrix =
      lens.model == LensModel::kBrownConrady || lens.model == LensModel::kFisheye;
  const char* form = "[fx, 0, cx, 0, fy, cy, 0, 0, 1] in pixels";
  const YamlNode matrix =
      needs_matrix ? node.required("camera_matrix", form) : node["camera_matrix"];
  if (lens.model == LensModel::kUnitPolynomial && matrix.present()) {
    matrix.fault("unit_polynomial has no camera matrix",
                 "leave it out: its coordinates are normalised by the picture's size");
  } else if (const auto numbers = matrix.numbers(9, -kMaxFocalPx, kMaxFocalPx)) {
    std::copy(numbers->begin(), numbers->end(), lens.camera_matrix.begin());
  }
  read_distortion(node["distortion"], lens);
  return lens;
}

Plane read_plane(const YamlNode& node) {
  Plane plane;
  const auto h =
      node.required("homography", "nine numbers by rows, output (plane) pixel to undistorted pixel")
          .numbers(9, -kMaxHomography, kMaxHomography);
  if (h) std::copy(h->begin(), h->end(), plane.homography.begin());
  plane.width = static_cast<int>(
      node.required("width", "the output's width in pixels").integer(1, 1, kMaxModelSide));
  plane.height = static_cast<int>(
      node.required("height", "the output's height in pixels").integer(1, 1, kMaxModelSide));
  plane.mm_per_px = node["mm_per_px"].number(0, 1e-9, kMaxMmPerPx);
  if (const auto origin = node["origin_px"].numbers(2, -kMaxOriginPx, kMaxOriginPx)) {
    plane.origin_px = {(*origin)[0], (*origin)[1]};
  }
  return plane;
}

// The node that a fault's key names, for its place in the file.
YamlNode find_node(YamlNode root, const std::string& key) {
  std::size_t start = 0;
  while (start < key.size()) {
    const std::size_t dot = std::min(key.find('.', start), key.size());
    const YamlNode next = root[key.substr(start, dot - start)];
    if (!next.present()) break;
    root = next;
    start = dot + 1;
  }
  return root;
}

std::string number_text(double value) {
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

std::string list_text(const double* values, std::size_t count) {
  std::string result = "[";
  for (std::size_t i = 0; i < count; ++i) result += (i > 0 ? ", " : "") + number_text(values[i]);
  return result + "]";
}

std::string distortion_text(const Lens& lens) {
  const std::vector<std::string>& names = coefficient_names(lens.model);
  // The rational terms only where they are used.
  std::size_t count = std::min<std::size_t>(names.size(), 5);
  for (std::size_t i = count; i < names.size(); ++i) {
    if (lens.distortion[i] != 0) count = names.size();
  }
  std::string result = "{";
  for (std::size_t i = 0; i < count; ++i) {
    result += (i > 0 ? ", " : "") + names[i] + ": " + number_text(lens.distortion[i]);
  }
  return result + "}";
}

}  // namespace

Result<CameraModel> load_camera_model(const std::string& path) {
  auto reader = YamlReader::load(path);
  if (!reader) return tl::make_unexpected(reader.error());
  const YamlNode root = reader->root();
  CameraModel model;
  const YamlNode size = root.required("image_size", "[width, height] of the camera's picture");
  if (const auto sides = size.numbers(2, 1, kMaxModelSide)) {
    model.image_width = static_cast<int>(size.item(0).integer(1, 1, kMaxModelSide));
    model.image_height = static_cast<int>(size.item(1).integer(1, 1, kMaxModelSide));
  }
  model.lens = read_lens(root["lens"]);
  if (const YamlNode plane = root["plane"]; plane.present()) {
    model.plane = read_plane(plane);
    model.border = plane["border"].number(0, -kMaxBorder, kMaxBorder);
  }
  if (auto sound = reader->finish(); !sound) return tl::make_unexpected(sound.error());

  for (const ModelFault& fault : find_faults(model)) {
    find_node(root, fault.key).fault(fault.wrong, fault.accepted);
  }
  if (auto sound = reader->finish(); !sound) return tl::make_unexpected(sound.error());
  return model;
}

std::string to_yaml(const CameraModel& model) {
  const Lens& lens = model.lens;
  std::string text = "image_size: [" + std::to_string(model.image_width) + ", " +
                     std::to_string(model.image_height) + "]\n";
  text += "lens:\n  model: " + std::string(name_of(lens.model)) + "\n";
  if (lens.model == LensModel::kBrownConrady || lens.model == LensModel::kFisheye) {
    text += "  camera_matrix: " + list_text(lens.camera_matrix.data(), 9) + "\n";
  }
  if (lens.model != LensModel::kNone) text += "  distortion: " + distortion_text(lens) + "\n";
  if (!model.plane) return text;
  const Plane& plane = *model.plane;
  const std::array<double, 2> origin = {plane.origin_px.x, plane.origin_px.y};
  text += "plane:\n";
  text += "  homography: " + list_text(plane.homography.data(), 9) +
          "  # output (plane) pixel -> undistorted image pixel\n";
  text += "  width: " + std::to_string(plane.width) + "\n";
  text += "  height: " + std::to_string(plane.height) + "\n";
  if (plane.mm_per_px > 0) text += "  mm_per_px: " + number_text(plane.mm_per_px) + "\n";
  text += "  origin_px: " + list_text(origin.data(), 2) + "\n";
  text += "  border: " + number_text(model.border) + "\n";
  return text;
}

}  // namespace patternd
