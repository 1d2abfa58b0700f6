// What is searched for: `patterns`, and the `fiducials` among them.
#include <algorithm>

#include "daemon/configuration_sections.h"
#include "pipeline/utf8.h"

namespace patternd {
namespace {

constexpr std::size_t kMostPatterns = 256;
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

}  // namespace

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

}  // namespace patternd
