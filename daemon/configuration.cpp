#include "daemon/configuration.h"

#include <algorithm>
#include <cmath>

#include "daemon/configuration_keys.h"
#include "pipeline/image_file.h"
#include "pipeline/pattern_calibration.h"
#include "pipeline/utf8.h"
#include "pipeline/yaml_reader.h"

namespace patternd {
namespace {

constexpr std::size_t kMostPatterns = 256;
constexpr const char* kLater = "comes with a later version of patternd";

// One section of the file; the bounds of its keys come from the table.
class Section {
 public:
  Section(YamlNode node, std::string table_path)
      : node_(std::move(node)), table_path_(std::move(table_path)) {}

  [[nodiscard]] const YamlNode& node() const { return node_; }
  [[nodiscard]] Section section(std::string_view key) const {
    return {node_[key], table_path_ + std::string(key) + "."};
  }
  // The key, which must be in the table.
  [[nodiscard]] YamlNode at(std::string_view key) const {
    (void)row(key);
    return node_[key];
  }
  [[nodiscard]] const ConfigurationKey& row(std::string_view key) const {
    return configuration_key(table_path_ + std::string(key));
  }
  void read(std::string_view key, double& value) const {
    value = at(key).number(value, row(key).low, row(key).high);
  }
  void read(std::string_view key, bool& value) const { value = at(key).boolean(value); }
  template <class Integer>
  void read_integer(std::string_view key, Integer& value) const {
    value = static_cast<Integer>(at(key).integer(value, static_cast<std::int64_t>(row(key).low),
                                                 static_cast<std::int64_t>(row(key).high)));
  }
  // True where the key is absent or says the word (`auto`, `all`).
  [[nodiscard]] bool is_word(std::string_view key, std::string_view word) const {
    const YamlNode node = at(key);
    return !node.present() || (node.is_scalar() && node.text("") == word);
  }
  void refuse_later(std::string_view key) const {
    if (node_[key].present()) node_[key].fault(kLater, "leave the key out");
  }

 private:
  YamlNode node_;
  std::string table_path_;
};

std::string read_name(const YamlNode& node, const std::string& fallback) {
  std::string name = node.text(fallback);
  if (!is_name(name)) node.fault("is " + in_quotes(name), name_rule());
  return name;
}

std::string read_path(const YamlNode& node, const YamlReader& reader) {
  if (!node.present()) return "";
  const std::string path = node.text(".");
  if (!path.empty()) return reader.resolve(path);
  node.fault("is empty", "must be a path");
  return "";
}

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

constexpr const char* kRange = "must be [low, high]";
constexpr const char* kAngleRange =
    "must be [low, high]; a range across 180 degrees is written as [170, 190]";

// [low, high] with low <= high; `accepted` says so.
std::optional<Range> read_range(const YamlNode& node, const ConfigurationKey& row,
                                const char* accepted) {
  const auto ends = node.numbers(2, row.low, row.high);
  if (!ends) return std::nullopt;
  if ((*ends)[0] <= (*ends)[1]) return Range{(*ends)[0], (*ends)[1]};
  node.fault("its first number is larger than its second", accepted);
  return std::nullopt;
}

std::vector<Range> read_angles(const Section& pattern) {
  if (pattern.is_word("angle", "all")) return {};
  const YamlNode node = pattern.at("angle");
  const ConfigurationKey& row = pattern.row("angle");
  std::vector<Range> ranges;
  if (node.size() == 0) {
    if (node.is_sequence()) node.fault("is an empty list", "must be a range, or all");
    return ranges;
  }
  if (!node.item(0).is_sequence()) {
    if (const auto range = read_range(node, row, kAngleRange)) ranges.push_back(*range);
    return ranges;
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (const auto range = read_range(node.item(i), row, kAngleRange)) ranges.push_back(*range);
  }
  return ranges;
}

std::optional<Roi> read_roi(const Section& section) {
  if (section.is_word("roi", "all")) return std::nullopt;
  const YamlNode node = section.at("roi");
  const auto numbers = node.numbers(4, section.row("roi").low, section.row("roi").high);
  if (!numbers) return std::nullopt;
  const Roi roi{(*numbers)[0], (*numbers)[1], (*numbers)[2], (*numbers)[3]};
  if (roi.width > 0 && roi.height > 0) return roi;
  node.fault("has no area", "must be [x, y, width, height] with a width and height above 0");
  return std::nullopt;
}

SearchParams read_search(const Section& pattern) {
  SearchParams params;
  pattern.read("min_score", params.min_score);
  pattern.read_integer("max_matches", params.max_matches);
  params.angle_deg = read_angles(pattern);
  const ConfigurationKey& scale = pattern.row("scale");
  params.scale = read_range(pattern.at("scale"), scale, kRange).value_or(params.scale);
  pattern.read("max_overlap", params.max_overlap);
  pattern.read("min_visible", params.min_visible);
  pattern.read("min_contrast", params.min_contrast);
  params.polarity = static_cast<Polarity>(pattern.at("polarity").choice(0, {"same", "any"}));
  pattern.read_integer("symmetry", params.symmetry);
  if (!pattern.is_word("levels", "auto")) {
    int levels = 0;
    pattern.read_integer("levels", levels);
    params.levels = levels;
  }
  if (!pattern.is_word("angle_step", "auto")) {
    double step = 1;
    pattern.read("angle_step", step);
    params.angle_step_deg = step;
  }
  params.roi = read_roi(pattern);
  return params;
}

std::vector<Configuration::PatternEntry> read_patterns(const YamlNode& root,
                                                       const YamlReader& reader) {
  std::vector<Configuration::PatternEntry> entries;
  const YamlNode list = root["patterns"];
  if (list.size() > kMostPatterns)
    list.fault("has " + std::to_string(list.size()) + " patterns", "must be at most 256");
  for (std::size_t i = 0; i < std::min(list.size(), kMostPatterns); ++i) {
    const Section pattern(list.item(i), "patterns[].");
    Configuration::PatternEntry entry;
    const YamlNode name = pattern.node().required("name", "each pattern has a name of its own");
    if (name.present()) entry.name = read_name(name, "");
    for (const auto& other : entries) {
      if (name.present() && other.name == entry.name)
        name.fault("is " + in_quotes(entry.name) + " a second time",
                   "must differ for each pattern");
    }
    entry.file = read_path(
        pattern.node().required("pattern", "must be a file from patternctl teach, or a picture"),
        reader);
    entry.params = read_search(pattern);
    entries.push_back(std::move(entry));
  }
  return entries;
}

void read_threshold(const Section& blobs, BlobParams& params) {
  const YamlNode node = blobs.at("threshold");
  const ConfigurationKey& row = blobs.row("threshold");
  if (node.is_map()) {
    params.mode = BlobParams::Mode::kAdaptive;
    const YamlNode adaptive = node.required("adaptive", "must be [radius, offset]");
    if (const auto numbers = adaptive.numbers(2, -row.high, row.high)) {
      params.adaptive_offset = (*numbers)[1];
      params.adaptive_radius =
          static_cast<int>(adaptive.item(0).integer(params.adaptive_radius, 1, 1000));
    }
  } else if (node.is_scalar() && node.text("") == "otsu") {
    params.mode = BlobParams::Mode::kOtsu;
  } else if (node.is_scalar() && node.text("").find_first_of("0123456789") == std::string::npos) {
    node.fault("is " + in_quotes(node.text("")),
               "must be a number from 0 to 65535, otsu or {adaptive: [radius, offset]}");
  } else {
    blobs.read("threshold", params.threshold);
  }
}

// Which components are left out.
void read_blob_filters(const Section& blobs, BlobParams& params) {
  blobs.read_integer("min_area", params.min_area);
  if (!blobs.is_word("max_area", "none")) blobs.read_integer("max_area", params.max_area);
  blobs.read_integer("min_width", params.min_width);
  if (!blobs.is_word("max_width", "none")) blobs.read_integer("max_width", params.max_width);
  blobs.read_integer("min_height", params.min_height);
  if (!blobs.is_word("max_height", "none")) blobs.read_integer("max_height", params.max_height);
  blobs.read("min_elongation", params.min_elongation);
  if (!blobs.is_word("max_elongation", "none")) blobs.read("max_elongation", params.max_elongation);
  blobs.read("min_peak", params.min_peak);
  const auto check_order = [&blobs](const char* key, auto low, auto high) {
    if (low > high)
      blobs.at(key).fault("is less than the least", "must not be below its min_ counterpart");
  };
  check_order("max_area", params.min_area, params.max_area);
  check_order("max_width", params.min_width, params.max_width);
  check_order("max_height", params.min_height, params.max_height);
  check_order("max_elongation", params.min_elongation, params.max_elongation);
}

std::optional<BlobParams> read_blobs(const YamlNode& root) {
  if (!root["blobs"].present()) return std::nullopt;
  const Section blobs(root["blobs"], "blobs.");
  BlobParams params;
  read_threshold(blobs, params);
  if (blobs.at("similarity").present()) {
    params.mode = BlobParams::Mode::kSimilarity;
    blobs.read("similarity", params.similarity);
    for (const char* other : {"threshold", "below"}) {
      if (blobs.at(other).present())
        blobs.at(other).fault("stands beside similarity", "keep one of the two");
    }
  }
  blobs.read("below", params.below);
  params.connectivity = blobs.at("connectivity").choice(0, {"8", "4"}) == 0 ? 8 : 4;
  read_blob_filters(blobs, params);
  blobs.read_integer("max_blobs", params.max_blobs);
  params.reference = static_cast<BlobParams::Reference>(
      blobs.at("reference").choice(0, {"off", "dark", "alternate"}));
  params.roi = read_roi(blobs);
  return params;
}

std::string read_dark_frame(const YamlNode& root, const YamlReader& reader,
                            const std::optional<BlobParams>& params) {
  if (!params) return "";
  const Section blobs(root["blobs"], "blobs.");
  const YamlNode file = blobs.at("dark_frame");
  const bool is_dark = params->reference == BlobParams::Reference::kDark;
  if (file.present() && !is_dark)
    file.fault("stands without reference: dark", "leave it out, or set reference: dark");
  if (!file.present() && is_dark)
    (void)blobs.node().required("dark_frame",
                                "reference: dark needs a picture taken without light");
  return read_path(file, reader);
}

std::optional<FiducialParams> read_fiducials(
    const YamlNode& root, const std::vector<Configuration::PatternEntry>& patterns) {
  if (!root["fiducials"].present()) return std::nullopt;
  const Section fiducials(root["fiducials"], "fiducials.");
  FiducialParams params;
  const YamlNode names =
      fiducials.node().required("patterns", "must be a list of names of patterns");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = names.item(i).text("");
    const auto entry = std::find_if(patterns.begin(), patterns.end(),
                                    [&](const auto& pattern) { return pattern.name == name; });
    const auto index = static_cast<int>(entry - patterns.begin());
    const bool known = entry != patterns.end();
    const bool twice = known && std::find(params.patterns.begin(), params.patterns.end(), index) !=
                                    params.patterns.end();
    if (!known || twice) {
      names.item(i).fault("is " + in_quotes(name) + (twice ? " a second time" : ""),
                          "must be the name of one of the patterns, none twice");
    }
    params.patterns.push_back(index);
  }
  const YamlNode places =
      fiducials.node().required("places_mm", "must be a list of [x, y], one a pattern");
  const ConfigurationKey& row = fiducials.row("places_mm");
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto place = places.item(i).numbers(2, row.low, row.high);
    params.places_mm.push_back(place ? Point2{(*place)[0], (*place)[1]} : Point2{});
  }
  if (names.present() && places.present() &&
      (params.patterns.empty() || params.patterns.size() != params.places_mm.size())) {
    fiducials.node().fault("names " + std::to_string(params.patterns.size()) + " patterns and " +
                               std::to_string(params.places_mm.size()) + " places",
                           "must be as many places as patterns, at least one");
  }
  fiducials.read("limit_mm", params.limit_mm);
  fiducials.read_integer("every", params.every);
  return params;
}

bool is_device_image(const std::string& image) {
  return image.size() >= 5 && image.size() <= 7 && image.compare(0, 3, "sm_") == 0 &&
         image.find_first_not_of("0123456789", 3) == std::string::npos;
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
  if (config.image != "auto" && config.image != "universal" && !is_device_image(config.image)) {
    compute.at("image").fault("is " + in_quotes(config.image),
                              "must be auto, universal or sm_NN, such as sm_87");
  }
  return config;
}

// Loads a file that the key names; what is wrong with it is a fault of the key.
template <class Load>
std::string read_credential_file(const YamlNode& key, const YamlReader& reader, const Load& load) {
  std::string path = read_path(key, reader);
  if (path.empty()) return path;
  if (const auto loaded = load(path); !loaded) key.fault(loaded.error().message, "");
  return path;
}

void read_tls(const Section& tls, const YamlReader& reader, Access& access) {
  if (!tls.node().present()) return;
  auto created = TlsContext::create(TlsContext::Side::kServer);
  if (!created) return tls.node().fault(created.error().message, "");
  const std::shared_ptr<TlsContext> context = *created;
  (void)tls.node().required("cert", "must be the service's certificate, a PEM file");
  (void)tls.node().required("key", "must be the certificate's private key, a PEM file");
  access.certificate_file =
      read_credential_file(tls.at("cert"), reader,
                           [&](const std::string& path) { return context->use_certificate(path); });
  access.key_file = read_credential_file(
      tls.at("key"), reader, [&](const std::string& path) { return context->use_key(path); });
  access.client_authorities_file =
      read_credential_file(tls.at("client_ca"), reader,
                           [&](const std::string& path) { return context->require_peer(path); });
  access.tls = context;
}

std::shared_ptr<const Access> read_access(const Section& tcp, const YamlReader& reader) {
  auto access = std::make_shared<Access>();
  const YamlNode allow = tcp.at("allow");
  for (std::size_t i = 0; i < allow.size(); ++i) {
    const auto network = parse_network(allow.item(i).text("::/0"));
    if (network)
      access->allow.push_back(*network);
    else
      allow.item(i).fault(network.error().message, "");
  }
  if (allow.is_sequence() && allow.size() == 0)
    allow.fault("lists no network", "must list those that may connect, or be left out");
  access->token_file =
      read_credential_file(tcp.at("token_file"), reader, [&](const std::string& path) {
        auto token = Token::load(path);
        if (token) access->token = *token;
        return token;
      });
  read_tls(tcp.section("tls"), reader, *access);
  return access;
}

// What an address that other machines can reach lacks; empty where it is fit.
std::string lacks(const Section& tcp) {
  const bool guarded = tcp.at("token_file").present() || tcp.node()["tls"]["client_ca"].present();
  const bool listed = tcp.at("allow").present();
  std::string missing = listed ? "" : "allow with the networks that may connect";
  if (!guarded) {
    missing += std::string(listed ? "" : ", and ") +
               "token_file or tls.client_ca, for the commands that change something";
  }
  return missing;
}

Address read_tcp(const Section& tcp) {
  const YamlNode listen = tcp.at("listen");
  const std::string text = listen.text(tcp.row("listen").fallback);
  const auto address = parse_tcp_address(text);
  if (!address) {
    listen.fault(in_quotes(text) + " is no address",
                 "must be ADDRESS:PORT, such as 127.0.0.1:5577 or [::1]:5577");
    return {};
  }
  const std::string missing = is_loopback(*address) ? "" : lacks(tcp);
  if (!missing.empty()) {
    listen.fault(
        "is " + in_quotes(text) + ", which other machines can reach",
        "must have beside it " + missing + "; or be a loopback address such as 127.0.0.1:5577");
  }
  return *address;
}

SocketFile read_socket_file(const Section& socket) {
  SocketFile file;
  file.group = socket.at("group").text(file.group);
  const YamlNode mode = socket.at("mode");
  const std::string digits = mode.text(socket.row("mode").fallback);
  const bool octal = (digits.size() == 3 || (digits.size() == 4 && digits[0] == '0')) &&
                     digits.find_first_not_of("01234567") == std::string::npos;
  if (!octal) {
    mode.fault("is " + in_quotes(digits), "must be three octal digits such as \"0660\"");
    return file;
  }
  file.mode = static_cast<unsigned>(std::stoul(digits, nullptr, 8));
  return file;
}

std::vector<Address> read_publish(const YamlNode& root, const YamlReader& reader,
                                  Configuration& configuration) {
  if (!root["publish"].present()) return {Address{}};
  const Section publish(root["publish"], "publish.");
  publish.refuse_later("http");
  publish.refuse_later("mqtt");
  std::vector<Address> addresses;
  if (publish.node()["tcp"].present()) {
    addresses.push_back(read_tcp(publish.section("tcp")));
    configuration.tcp_access = read_access(publish.section("tcp"), reader);
  }
  const Section socket = publish.section("unix");
  if (socket.node().present()) {
    Address address;
    address.kind = Address::Kind::kUnix;
    address.path = read_path(socket.node().required("path", "must be the socket's path"), reader);
    if (address.path.size() > kMaxUnixPath) {
      socket.at("path").fault("is " + std::to_string(address.path.size()) + " bytes long",
                              "must be at most 107 bytes, the folder included");
    }
    configuration.unix_file = read_socket_file(socket);
    addresses.push_back(std::move(address));
  }
  if (addresses.empty() && publish.node().is_map())
    publish.node().fault("gives results out nowhere", "must have tcp or unix, or be left out");
  return addresses;
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
    const std::string note = other_calibration(pattern, entry.file, configuration.calibration_file);
    if (!note.empty()) configuration.notes.push_back(note);
    entry.pattern = std::make_shared<const Pattern>(std::move(pattern));
  }
}

void apply(const ConfigurationOverrides& overrides, Configuration& configuration) {
  if (overrides.backend) configuration.compute.backend = *overrides.backend;
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
