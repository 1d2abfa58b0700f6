#include "pipeline/pattern.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "pipeline/image_file.h"
#include "pipeline/yaml_reader.h"

namespace patternd {
namespace {

namespace fs = std::filesystem;

bool is_yaml(const std::string& path) {
  const std::string extension = fs::path(path).extension().string();
  return extension == ".yaml" || extension == ".yml";
}

// A YAML double-quoted scalar.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string number(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.10g", value);
  return buffer;
}

// What a pattern file says, before its pictures are read.
struct PatternFile {
  std::string picture;
  std::string mask;
  TeachOptions options;
};

Result<PatternFile> read_pattern_file(const std::string& path) {
  auto reader = YamlReader::load(path);
  if (!reader) return tl::make_unexpected(reader.error());
  const YamlNode root = reader->root();
  for (const char* key : {"image_size", "lens", "plane"}) {
    if (!root[key].present()) continue;
    root[key].fault("is a key of a calibration",
                    "must be a pattern's file, as patternctl teach writes it");
    (void)root.entries();  // its other keys are no faults of their own
    return tl::make_unexpected(reader->finish().error());
  }
  PatternFile file;
  file.picture = root.required("picture", "the pattern's picture is needed").text("");
  file.mask = root["mask"].text("");
  file.options.calibration = root["calibration"].text("");
  if (auto point = root["reference_px"].numbers(2, -kMaxImageSide, kMaxImageSide)) {
    file.options.ref_x = (*point)[0];
    file.options.ref_y = (*point)[1];
  }
  if (root["levels"].present())
    file.options.levels = static_cast<int>(root["levels"].integer(0, 0, 12));
  if (root["angle_step_deg"].present())
    file.options.angle_step_deg =
        root["angle_step_deg"].number(1, kAngleStepLimits.low, kAngleStepLimits.high);
  // What teaching found out, for the reader; it is found out anew when the file is loaded.
  static_cast<void>(root["contrast"].number(0, 0, 255));
  static_cast<void>(root["round"].boolean(false));
  if (auto ok = reader->finish(); !ok) return tl::make_unexpected(ok.error());
  if (file.picture.empty())
    return fail(ErrorCode::kParse, path + ": picture: empty; the pattern's picture is needed");
  file.picture = reader->resolve(file.picture);
  if (!file.mask.empty()) file.mask = reader->resolve(file.mask);
  return file;
}

Result<Pattern> load_taught(const std::string& path, const std::string& name) {
  auto file = read_pattern_file(path);
  if (!file) return tl::make_unexpected(file.error());
  auto picture = read_image(file->picture);
  if (!picture) return tl::make_unexpected(picture.error());
  Image mask;
  if (!file->mask.empty()) {
    auto read = read_image(file->mask);
    if (!read) return tl::make_unexpected(read.error());
    mask = std::move(*read);
  }
  auto pattern = teach_pattern(name, picture->view(), mask.view(), file->options);
  if (!pattern) return fail(pattern.error().code, path + ": " + pattern.error().message);
  return pattern;
}

}  // namespace

Result<Pattern> load_pattern(const std::string& path, const std::string& name) {
  if (is_yaml(path)) return load_taught(path, name);
  auto picture = read_image(path);
  if (!picture) return tl::make_unexpected(picture.error());
  auto pattern = teach_pattern(name, picture->view(), {}, {});
  if (!pattern) return fail(pattern.error().code, path + ": " + pattern.error().message);
  return pattern;
}

Result<PatternFiles> pattern_files(const std::string& path, bool masked) {
  if (!is_yaml(path))
    return fail(ErrorCode::kInvalidArgument,
                path + ": a pattern file's name must end in .yaml or .yml");
  const std::string stem = fs::path(path).replace_extension().string();
  PatternFiles files{path, stem + ".png", masked ? stem + "_mask.png" : ""};
  std::error_code ignored;
  if (fs::exists(path, ignored)) return files;  // taught anew
  for (const std::string& picture : {files.picture, files.mask}) {
    if (picture.empty() || !fs::exists(picture, ignored)) continue;
    return fail(ErrorCode::kInvalidArgument,
                picture +
                    ": is there already, and the pattern's picture would be written over it; "
                    "give the pattern another name, or remove the file");
  }
  return files;
}

Result<void> save_pattern(const std::string& path, const Pattern& pattern) {
  const auto files = pattern_files(path, !pattern.mask.empty());
  if (!files) return tl::make_unexpected(files.error());
  if (auto ok = write_image(files->picture, pattern.picture.view()); !ok) return ok;
  if (!files->mask.empty()) {
    if (auto ok = write_image(files->mask, pattern.mask.view()); !ok) return ok;
  }
  std::string text = "picture: " + quoted(fs::path(files->picture).filename().string()) + "\n";
  if (!files->mask.empty())
    text += "mask: " + quoted(fs::path(files->mask).filename().string()) + "\n";
  text += "reference_px: [" + number(pattern.ref_x) + ", " + number(pattern.ref_y) + "]\n";
  if (!pattern.calibration.empty()) text += "calibration: " + quoted(pattern.calibration) + "\n";
  text += "levels: " + std::to_string(pattern.levels) + "\n";
  text += "angle_step_deg: " + number(pattern.angle_step_deg) + "\n";
  text += std::string("round: ") + (pattern.round ? "true" : "false") + "\n";
  text += "contrast: " + number(pattern.contrast) + "\n";
  return write_file(path, text);
}

}  // namespace patternd
