#include "pipeline/pattern_calibration.h"

#include <filesystem>

#include "pipeline/input_file.h"

namespace patternd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{4} << 20;

bool same_calibration(const fs::path& taught, const fs::path& searched) {
  std::error_code unknown;
  if (fs::equivalent(taught, searched, unknown)) return true;
  const auto content = read_file(taught.string(), kMostBytes);
  if (!content) return taught.filename() == searched.filename();
  const auto other = read_file(searched.string(), kMostBytes);
  return other && *content == *other;
}

}  // namespace

std::string other_calibration(const Pattern& pattern, const std::string& pattern_file,
                              const std::string& calibration_file) {
  if (pattern.calibration.empty()) return "";
  const fs::path taught = fs::path(pattern_file).parent_path() / pattern.calibration;
  if (!calibration_file.empty() && same_calibration(taught, calibration_file)) return "";
  return "pattern " + pattern.name + " was taught with calibration " +
         taught.lexically_normal().string() + ", but is searched " +
         (calibration_file.empty() ? "without one" : "with " + calibration_file) +
         "; its size and shape may not fit the pictures: teach it again, or search with the "
         "calibration it was taught with";
}

}  // namespace patternd
