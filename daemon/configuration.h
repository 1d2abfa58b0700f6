// The service's configuration: read strictly, every fault at once, all its files loaded.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibration/camera_model.h"
#include "cuda/setting_names.h"
#include "daemon/access.h"
#include "daemon/address.h"
#include "daemon/listener.h"
#include "pipeline/components.h"
#include "pipeline/drift_watch.h"
#include "pipeline/match.h"
#include "pipeline/pattern.h"
#include "pipeline/result.h"
#include "pipeline/source.h"

namespace patternd {

struct ComputeConfig {
  enum class Backend { kAuto, kCpu, kCuda };
  Backend backend = Backend::kAuto;
  int device = 0;
  std::string memory = "auto";
  int streams = 2;
  int threads = 0;
  std::string image = "auto";
  cuda::SettingNames names;  // what the user wrote, for messages
};

enum class LogLevel { kDebug, kInfo, kWarning, kError };

struct Configuration {
  struct PatternEntry {
    std::string name;
    std::string file;
    SearchParams params;
    std::shared_ptr<const Pattern> pattern;  // never null once loaded
  };

  std::string file;
  CameraConfig camera;
  std::string calibration_file;  // empty: none
  std::optional<CameraModel> calibration;
  std::vector<PatternEntry> patterns;
  std::optional<BlobParams> blobs;
  std::string dark_frame_file;              // for blobs.reference dark; empty: none
  std::shared_ptr<const Image> dark_frame;  // never null where there is a file
  std::optional<FiducialParams> fiducials;
  ComputeConfig compute;
  std::vector<Address> listen{Address{}};
  std::shared_ptr<const Access> tcp_access = std::make_shared<Access>();  // never null
  SocketFile unix_file;
  std::string latency_log;  // empty: none
  // What is allowed, but may not be meant; a line each.
  std::vector<std::string> notes;
  LogLevel log_level = LogLevel::kInfo;
};

// What the command line changes about a configuration.
struct ConfigurationOverrides {
  std::optional<std::string> replay;  // take frames from here instead of the camera
  bool loop = false;                  // with `replay`
  bool fast = false;                  // with `replay`: not at the recorded pace
  std::optional<ComputeConfig::Backend> backend;
};

// Reads the file and everything that it names. All faults of all files in one error, a line each:
//   FILE:LINE:COLUMN: key.path: what is wrong; what is accepted
// Relative paths count from the file that names them, `replay` from the working directory.
[[nodiscard]] Result<Configuration> load_configuration(
    const std::string& path, const ConfigurationOverrides& overrides = {});

// The whole configuration as YAML, defaults included; load_configuration reads it back to the same.
[[nodiscard]] std::string to_yaml(const Configuration& configuration);

// Where the corners of the rectified picture lie in the camera's, a line each, for `--check`; empty
// without a calibration.
[[nodiscard]] std::string rectified_corners(const Configuration& configuration);

[[nodiscard]] const char* name_of(CameraConfig::Kind kind);
[[nodiscard]] const char* name_of(ComputeConfig::Backend backend);
[[nodiscard]] const char* name_of(LogLevel level);

}  // namespace patternd
