#include "daemon/configuration.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cuda/device_image.h"
#include "daemon/configuration_sections.h"
#include "pipeline/image_file.h"
#include "pipeline/latency_log.h"
#include "pipeline/pattern_calibration.h"
#include "pipeline/pattern_pyramid.h"
#include "pipeline/pyramid.h"
#include "pipeline/utf8.h"

namespace patternd {
namespace {

void read_controls(const Section& camera, CameraConfig& config) {
  const ConfigurationKey& row = camera.row("controls");
  for (const auto& [name, value] : camera.at("controls").entries()) {
    config.controls[name] =
        value.integer(0, static_cast<std::int64_t>(row.low), static_cast<std::int64_t>(row.high));
  }
}

// Recordings are never silent.
void check_silence(const Section& camera, CameraConfig::Kind kind) {
  const YamlNode node = camera.at("max_silence_s");
  if (node.present() && kind == CameraConfig::Kind::kReplay)
    node.fault("is a key of cameras", "leave it out with source replay");
}

// A key that only one source has stands under that source alone, and there it must.
void check_belongs(const Section& camera, CameraConfig::Kind kind) {
  struct Owned {
    const char* key;
    CameraConfig::Kind kind;
    const char* required;  // null where it may be left out
  };
  constexpr Owned kOwned[] = {
      {"device", CameraConfig::Kind::kV4l2, "source v4l2 needs the device's path"},
      {"pipeline", CameraConfig::Kind::kGstreamer,
       "source gstreamer needs a gst-launch description"},
      {"path", CameraConfig::Kind::kReplay, "source replay needs a file or folder"},
      {"loop", CameraConfig::Kind::kReplay, nullptr},
      {"realtime", CameraConfig::Kind::kReplay, nullptr},
      {"controls", CameraConfig::Kind::kV4l2, nullptr},
  };
  for (const Owned& owned : kOwned) {
    const YamlNode node = camera.at(owned.key);
    if (node.present() && kind != owned.kind) {
      node.fault(std::string("is a key of source ") + name_of(owned.kind),
                 std::string("leave it out with source ") + name_of(kind));
    }
    if (!node.present() && kind == owned.kind && owned.required != nullptr)
      (void)camera.node().required(owned.key, owned.required);
  }
}

CameraConfig read_camera(const YamlNode& root, const YamlReader& reader) {
  const Section camera(root.required("camera",
                                     "a map with at least source must say where frames "
                                     "come from"),
                       "camera.");
  CameraConfig config;
  config.name = read_name(camera.at("name"), config.name);
  const YamlNode source = camera.node().required("source", "must be v4l2, gstreamer or replay");
  constexpr std::size_t kFaulty = 3;
  const std::size_t kind = source.choice(kFaulty, {"v4l2", "gstreamer", "replay"});
  if (kind < kFaulty) config.kind = static_cast<CameraConfig::Kind>(kind);
  if (source.present() && kind < kFaulty) {
    check_belongs(camera, config.kind);
    check_silence(camera, config.kind);
  }
  const bool is_device = config.kind == CameraConfig::Kind::kV4l2;
  if (is_device) config.device = read_path(camera.at("device"), reader);
  if (!is_device) config.pipeline = camera.at("pipeline").text("");
  if (camera.at("pipeline").is_scalar() && config.pipeline.empty() && !is_device)
    camera.at("pipeline").fault("is empty", "must be a gst-launch description");
  config.path = read_path(camera.at("path"), reader);
  camera.read("loop", config.loop);
  camera.read("realtime", config.realtime);
  if (!camera.is_word("width", "auto")) camera.read_integer("width", config.width);
  if (!camera.is_word("height", "auto")) camera.read_integer("height", config.height);
  if (!camera.is_word("fps", "auto")) camera.read("fps", config.fps);
  if (camera.is_word("max_silence_s", "none")) {
    if (camera.at("max_silence_s").present()) config.max_silence_s = 0;
  } else {
    camera.read("max_silence_s", config.max_silence_s);
  }
  config.format = read_name(camera.at("format"), config.format);
  read_controls(camera, config);
  return config;
}

// Where the keys of `compute` stand.
cuda::SettingNames names_in(const Section& compute) {
  cuda::SettingNames names;
  const auto take = [&compute](std::string_view key, std::string& name) {
    if (const YamlNode node = compute.at(key); node.present()) name = node.place();
  };
  take("backend", names.backend);
  take("device", names.device);
  take("memory", names.memory);
  take("image", names.image);
  return names;
}

ComputeConfig read_compute(const YamlNode& root) {
  const Section compute(root["compute"], "compute.");
  ComputeConfig config;
  config.backend =
      static_cast<ComputeConfig::Backend>(compute.at("backend").choice(0, {"auto", "cpu", "cuda"}));
  compute.read_integer("device", config.device);
  constexpr const char* kMemories[] = {"auto", "copy", "mapped", "managed"};
  config.memory = kMemories[compute.at("memory").choice(0, {"auto", "copy", "mapped", "managed"})];
  compute.read_integer("streams", config.streams);
  compute.read_integer("threads", config.threads);
  config.image = compute.at("image").text(config.image);
  if (!cuda::is_image_word(config.image))
    compute.at("image").fault("is " + in_quotes(config.image), cuda::image_word_rule());
  config.names = names_in(compute);
  return config;
}

// Adds the faults of another file: they have their own places.
void append_line(std::string& faults, const std::string& more) {
  if (!faults.empty()) faults += '\n';
  faults += more;
}

// Loads a file that the configuration names; what is wrong inside it stands with its own place, a
// file that cannot be had at the key that names it.
template <class T>
void adopt(Result<T> loaded, const YamlNode& key, std::string& faults, T& target) {
  if (loaded) {
    target = std::move(*loaded);
  } else if (loaded.error().code == ErrorCode::kParse) {
    append_line(faults, loaded.error().message);
  } else {
    key.fault(loaded.error().message, "");
  }
}

// How many levels there may be is known once the pattern is.
void check_levels(const YamlNode& key, const SearchParams& params, const Pattern& pattern) {
  if (!params.levels || pattern.picture.empty()) return;
  const ImageView picture = pattern.picture.view();
  const auto pyramid = make_pattern_pyramid(pattern, deepest_level(picture.width, picture.height));
  const int deepest = static_cast<int>(pyramid.size()) - 1;
  if (*params.levels <= deepest) return;
  key.fault("is " + std::to_string(*params.levels),
            "a pattern of this size has 0 to " + std::to_string(deepest));
}

void load_parts(const YamlNode& root, Configuration& configuration, std::string& faults) {
  if (!configuration.calibration_file.empty()) {
    CameraModel model;
    adopt(load_camera_model(configuration.calibration_file), root["calibration"], faults, model);
    configuration.calibration = model;
    const CameraConfig& camera = configuration.camera;
    const bool width_fits = camera.width == 0 || camera.width == model.image_width;
    const bool height_fits = camera.height == 0 || camera.height == model.image_height;
    if (model.image_width > 0 && !(width_fits && height_fits)) {
      root["calibration"].fault(configuration.calibration_file + " is for pictures of " +
                                    std::to_string(model.image_width) + "x" +
                                    std::to_string(model.image_height),
                                "must be for the camera's width and height");
    }
  }
  const auto& calibration = configuration.calibration;
  if (configuration.fiducials &&
      !(calibration && calibration->plane && calibration->plane->mm_per_px > 0)) {
    root["fiducials"].fault("needs millimetres",
                            "must stand beside a calibration whose plane has mm_per_px");
  }
  if (!configuration.dark_frame_file.empty()) {
    Image dark;
    adopt(read_image(configuration.dark_frame_file), root["blobs"]["dark_frame"], faults, dark);
    configuration.dark_frame = std::make_shared<const Image>(std::move(dark));
  }
  for (std::size_t i = 0; i < configuration.patterns.size(); ++i) {
    Configuration::PatternEntry& entry = configuration.patterns[i];
    if (entry.file.empty()) continue;
    Pattern pattern;
    adopt(load_pattern(entry.file, entry.name), root["patterns"].item(i)["pattern"], faults,
          pattern);
    check_levels(root["patterns"].item(i)["levels"], entry.params, pattern);
    const std::string note = other_calibration(pattern, entry.file, configuration.calibration_file);
    if (!note.empty()) configuration.notes.push_back(note);
    entry.pattern = std::make_shared<const Pattern>(std::move(pattern));
  }
}

// The log is appended to: it must be none of the files that are read, nor one with other content.
void check_latency_log(const YamlNode& key, const Configuration& configuration) {
  const std::string& log = configuration.latency_log;
  if (log.empty()) return;
  const Access& access = *configuration.tcp_access;
  std::vector<std::string> others = {configuration.file,
                                     configuration.calibration_file,
                                     configuration.dark_frame_file,
                                     configuration.camera.device,
                                     configuration.camera.path,
                                     access.token_file,
                                     access.certificate_file,
                                     access.key_file,
                                     access.client_authorities_file};
  for (const auto& pattern : configuration.patterns) others.push_back(pattern.file);
  for (const Address& address : configuration.listen) others.push_back(address.path);
  const std::filesystem::path path(log);
  const auto is_log = [&path](const std::string& other) {
    std::error_code unknown;
    return !other.empty() &&
           (path.lexically_normal() == std::filesystem::path(other).lexically_normal() ||
            std::filesystem::equivalent(path, other, unknown));
  };
  if (std::any_of(others.begin(), others.end(), is_log))
    return key.fault("is " + log + ", which has another use here", "must be a file of its own");
  if (const auto ours = LatencyLog::is_ours(log); !ours) key.fault(ours.error().message, "");
}

void apply(const ConfigurationOverrides& overrides, Configuration& configuration) {
  if (overrides.backend) {
    configuration.compute.backend = *overrides.backend;
    configuration.compute.names.backend = "patternd: --backend";
  }
  if (!overrides.replay) return;
  CameraConfig replay;
  replay.name = configuration.camera.name;
  replay.path = *overrides.replay;
  replay.loop = overrides.loop;
  replay.realtime = !overrides.fast;
  if (configuration.camera.kind == CameraConfig::Kind::kReplay)
    replay.fps = configuration.camera.fps;
  configuration.camera = replay;
}

}  // namespace

Result<Configuration> load_configuration(const std::string& path,
                                         const ConfigurationOverrides& overrides) {
  auto reader = YamlReader::load(path);
  if (!reader) return tl::make_unexpected(reader.error());
  const YamlNode root = reader->root();
  Configuration configuration;
  configuration.file = path;
  configuration.camera = read_camera(root, *reader);
  configuration.calibration_file = read_path(root["calibration"], *reader);
  configuration.patterns = read_patterns(root, *reader);
  configuration.blobs = read_blobs(root);
  configuration.dark_frame_file = read_dark_frame(root, *reader, configuration.blobs);
  configuration.fiducials = read_fiducials(root, configuration.patterns);
  configuration.compute = read_compute(root);
  configuration.listen = read_publish(root, *reader, configuration);
  configuration.latency_log = read_path(Section(root["latency"], "latency.").at("log"), *reader);
  configuration.log_level = static_cast<LogLevel>(
      Section(root["log"], "log.").at("level").choice(1, {"debug", "info", "warning", "error"}));
  Section(root, "").refuse_later("recording");
  apply(overrides, configuration);
  check_latency_log(root["latency"]["log"], configuration);
  std::string other_files;
  load_parts(root, configuration, other_files);
  std::string faults;
  if (auto good = reader->finish(); !good) faults = good.error().message;
  if (!other_files.empty()) append_line(faults, other_files);
  if (!faults.empty()) return fail(ErrorCode::kInvalidArgument, std::move(faults));
  return configuration;
}

const char* name_of(CameraConfig::Kind kind) {
  constexpr const char* kNames[] = {"v4l2", "gstreamer", "replay"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* name_of(ComputeConfig::Backend backend) {
  constexpr const char* kNames[] = {"auto", "cpu", "cuda"};
  return kNames[static_cast<std::size_t>(backend)];
}

const char* name_of(LogLevel level) {
  constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<std::size_t>(level)];
}

}  // namespace patternd
